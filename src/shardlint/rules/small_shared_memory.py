"""Several ranks and a /dev/shm that does not hold what they exchange."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Container
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._words import SHORT, counted, named, product

MIB = 2**20
ONE = Located(1, origin="default")
CHECKED_SINCE = Version.of("0.33.0")
"""From here on each segment is compared with the free space before it is made."""
SEGMENT_BYTES = 10 * 24 * MIB
"""The answers of one rank, vllm/distributed/device_communicators/shm_broadcast.py: 10 chunks of 24 MiB."""
LEAST_BYTES = 64 * MIB
"""What containers get by default, and what the ranks of every release outgrow."""


def applies(container: Container, world_size: Located[int]) -> bool:
    return container.shared_memory is not None and world_size.value > 1


def judge(
    world_size: Located[int],
    tensor_parallel_size: Located[int],
    container: Container,
    engine: Engine,
    engine_version: Located[Version],
    pipeline_parallel_size: Located[int] = ONE,
    prefill_context_parallel_size: Located[int] = ONE,
) -> Iterator[Problem | Undecided]:
    size = container.shared_memory
    if not isinstance(size, Located):
        if size is not None:
            yield Undecided("shared_memory", size)
        return
    checked = engine.name == "vllm" and engine_version.value >= CHECKED_SINCE
    if size.value >= SEGMENT_BYTES or (size.value > LEAST_BYTES and not checked):
        return
    degrees = {
        "tensor_parallel_size": tensor_parallel_size,
        "pipeline_parallel_size": pipeline_parallel_size,
        "prefill_context_parallel_size": prefill_context_parallel_size,
    }
    largest = max(degrees.values(), key=lambda degree: degree.value)
    ranks = counted(world_size.value, "rank")
    layout = product(*((SHORT[name], degree.value) for name, degree in degrees.items()))
    why = f" ({size.source})" if size.source else ""
    outcome = (
        f"makes a segment of {SEGMENT_BYTES // MIB} MiB there for each rank, and stops where there is less room"
        if checked
        else "and NCCL outgrow it: a bus error, or ranks that wait for each other"
    )
    yield Problem(
        at=size if size.span is not None else largest,
        message=f"/dev/shm has {_mib(size.value)}{why} for {ranks}: {named(engine, engine_version)} {outcome}",
        sum=f"{_mib(size.value)} < {_mib(SEGMENT_BYTES)}; {layout}" if checked else f"{_mib(size.value)} for {layout}",
        help=container.more_shared_memory,
        related=((largest, f"{ranks} by {layout}"),),
        effect="fails-while-loading" if checked else "hangs",
    )


def _mib(number: int) -> str:
    return f"{number / MIB:g} MiB"


RULE = Rule(
    "SL806",
    "small-shared-memory",
    "shm-ipc",
    "warning",
    "fails-while-loading",
    judge,
    applies,
    engines=("vllm", "sglang"),
)
