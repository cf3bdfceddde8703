"""Numbers and advice in words, the same for every rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shardlint.deployment.spelling import FLAGS as FLAGS
from shardlint.deployment.spelling import respelled as respelled
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located
from shardlint.findings.words import counted as counted
from shardlint.layout import Legal, Uneven

GIB = 2**30
KIB = 2**10

SHORT = {
    "tensor_parallel_size": "TP",
    "pipeline_parallel_size": "PP",
    "data_parallel_size": "DP",
    "prefill_context_parallel_size": "PCP",
}


def listed(values: Iterable[object]) -> str:
    """`7, 7, 8`."""
    return ", ".join(str(value) for value in values)


def gib(number: float) -> str:
    """Bytes as `15.0 GiB`."""
    return f"{number / GIB:.1f} GiB"


def kib(number: float) -> str:
    """Bytes as `16 KiB`, with a decimal only where there is one."""
    return f"{number / KIB:g} KiB" if number % KIB == 0 else f"{number / KIB:.1f} KiB"


def respelled_all(size: Located[Any] | None, values: Sequence[int], degree: str, most: int = 3) -> tuple[str, ...]:
    """The first few of the values, each as `respelled` gives it."""
    return tuple(respelled(size, value, degree) for value in values[:most])


def heads_do_not_divide(pieces: Iterable[Uneven]) -> bool:
    """Whether heads of any kind are among the pieces: other widths, uneven for the same reason, are not told too."""
    return any(piece.piece in ("query_head", "vision_head", "state_head", "state_group") for piece in pieces)


def product(*sizes: tuple[str, int]) -> str:
    """`TP 2 x PP 2 = 4`; sizes of 1 are left out unless all are."""
    result = 1
    for _, size in sizes:
        result *= size
    factors = [f"{name} {size}" for name, size in sizes if size != 1] or [f"{sizes[-1][0]} {sizes[-1][1]}"]
    return " x ".join(factors) + (f" = {result}" if len(factors) > 1 else "")


def named(engine: Engine, version: Located[Version]) -> str:
    """`vLLM 0.33.0`."""
    return f"{engine.label} {version.value}"


def tensor_advice(legal: Legal | None, size: Located[int]) -> tuple[str, ...]:
    """The legal tensor parallel sizes nearest to what was written, in its author's spelling."""
    if legal is None:
        return ()
    nearest = legal.nearest("tensor_parallel_size", size.value)
    return respelled_all(size, nearest, "tensor_parallel_size")
