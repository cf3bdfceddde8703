"""The MegaMoE kernels of DeepSeek V4, which want expert parallelism and as many experts on each rank."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Legal
from shardlint.rules._words import named, tensor_advice

BACKENDS = ("deep_gemm_mega_moe", "aiter_mega_moe")
CLASSES = ("DeepseekV4", "DeepSeekV4")
"""What the names of the classes begin with that have such kernels of their own."""


def applies(told: Told, architecture: Located[str]) -> bool:
    return architecture.value.startswith(CLASSES) and told.moe_backend in BACKENDS


def judge(
    told: Told, engine: Engine, engine_version: Located[Version], num_experts: Located[int], legal: Legal | None = None
) -> Iterator[Problem]:
    backend, tensor = told.located("moe_backend"), told.located("tensor_parallel_size")
    if backend is None or tensor is None:
        return
    who = named(engine, engine_version)
    if not told.enable_expert_parallel:
        yield Problem(
            at=backend,
            message=f"{backend.value} is for expert parallelism, which is off: {who} stops while it builds the model",
            help=("--enable-expert-parallel", "leave --moe-backend out"),
        )
        return
    data, prefill = told.data_parallel_size or 1, told.prefill_context_parallel_size or 1
    copies = max(0, told.num_redundant_experts or 0)
    ranks, experts = tensor.value * data * prefill, num_experts.value + copies
    if ranks < 1 or experts % ranks == 0:
        return
    missing = -experts % ranks
    yield Problem(
        at=tensor if tensor.value > 1 else told.located("data_parallel_size"),
        message=f"{backend.value} wants as many experts on each of {ranks} expert parallel ranks, and there are "
        f"{experts}: {who} fails while it builds the first layer with experts",
        sum=f"{experts} experts % {ranks} ranks = {experts % ranks}",
        help=(
            *tensor_advice(legal, tensor)[:2],
            f"--enable-eplb --eplb-config '{{\"num_redundant_experts\": {copies + missing}}}'",
        ),
        related=((num_experts, f"{num_experts.value} experts"),),
    )


RULE = Rule("SL406", "mega-moe", "ep-moe", "error", "fails-while-loading", judge, applies)
