"""Options of LoRA adapters that the model, the layout or each other do not go with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.engines.vllm.architectures import can
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._conditions import Condition, judged

DEFAULT_RANK = 16
DEFAULT_LORAS = 1
MEGA_BACKENDS = ("deep_gemm_mega_moe", "flashinfer_moe_ep_mega_deep_gemm", "aiter_mega_moe")


def _count(value: Any, default: int) -> int:
    return value if isinstance(value, int) else default


def _at_once(told: Told) -> int:
    return _count(told.max_loras, DEFAULT_LORAS)


def _rank(told: Told) -> int:
    return _count(told.max_lora_rank, DEFAULT_RANK)


CONDITIONS = (
    Condition(
        ("enable_lora",),
        lambda t: can(t.architecture, "lora") is False and not t.hf_overrides and t.model_impl in (None, "auto"),
        lambda t: f"{t.architecture} takes no adapters",
        help=lambda t: ("leave --enable-lora out, and merge the adapter into the weights",),
        since="0.33.0",
    ),
    Condition(
        ("max_cpu_loras", "max_loras"),
        lambda t: 0 < _count(t.max_cpu_loras, 0) < _at_once(t),
        lambda t: f"{t.max_cpu_loras} adapters are kept in the host's memory and {_at_once(t)} are used at a time",
        sum=lambda t: f"{t.max_cpu_loras} < {_at_once(t)}",
        help=lambda t: (f"--max-cpu-loras {_at_once(t)}", f"--max-loras {t.max_cpu_loras}"),
    ),
    Condition(
        ("moe_backend", "enable_lora"),
        lambda t: t.moe_backend in MEGA_BACKENDS,
        lambda t: f"the experts' backend {t.moe_backend} has no adapters",
        help=lambda t: ("--moe-backend auto",),
        since="0.33.0",
    ),
    Condition(
        ("tensor_parallel_size", "max_lora_rank", "fully_sharded_loras"),
        lambda t: bool(t.fully_sharded_loras) and _rank(t) % t.tensor_parallel_size != 0,
        lambda t: (
            f"adapters of rank {_rank(t)} are cut over {t.tensor_parallel_size} ranks by --fully-sharded-loras, and "
            "that does not come out even"
        ),
        sum=lambda t: f"{_rank(t)} % {t.tensor_parallel_size} = {_rank(t) % t.tensor_parallel_size}",
        help=lambda t: ("leave --fully-sharded-loras out",),
        effect="fails-while-loading",
    ),
)


def judge(told: Told, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem | Undecided]:
    if told.enable_lora:
        yield from judged(CONDITIONS, told, engine, engine_version)


RULE = Rule("SL911", "adapter-options", "lora", "error", "refuses-at-start", judge)
