"""Options of expert parallelism, its load balancing and its transfers that do not go together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._conditions import Condition, judged
from shardlint.rules._launching import microbatches
from shardlint.rules._sglang import EXPERTS
from shardlint.rules._words import listed

GONE = ("naive", "pplx")
"""Backends whose names are still taken, for allgather_reducescatter."""
FOR_MICROBATCHES = ("deepep_low_latency", "deepep_high_throughput", "nixl_ep")
NEEDS_NCCL = ("torch_nccl", "pynccl")
ABOVE_ZERO = ("window_size", "step_interval", "log_balancedness_interval")
USUAL = "allgather_reducescatter"


def _expert_ranks(told: Told) -> int:
    """Ranks that share the experts: TP x PCP x DP."""
    size = told.tensor_parallel_size * (told.prefill_context_parallel_size or 1)
    return int(size * (told.flag("data_parallel_size") or 1))


def _context_ranks(told: Told) -> int:
    return max(int(told.decode_context_parallel_size or 1), int(told.prefill_context_parallel_size or 1))


def _backend(told: Told) -> str:
    backend = told.all2all_backend
    return USUAL if backend is None or backend in GONE else str(backend)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _redundant(told: Told) -> int:
    return _number(told.num_redundant_experts)


def _is_async(told: Told) -> bool:
    return told.part("eplb_config", "use_async") is not False


def _thresholds(told: Told) -> tuple[int, int]:
    decode, prefill = told.dbo_decode_token_threshold, told.dbo_prefill_token_threshold
    return 32 if decode is None else decode, 512 if prefill is None else prefill


def _too_small(told: Told) -> str:
    """The first setting of the load balancing that must be above 0 and is not."""
    for key in ABOVE_ZERO:
        value = told.part("eplb_config", key)
        if isinstance(value, int) and value <= 0:
            return f"{key} of --eplb-config is {value} and must be more than 0"
    return ""


CONDITIONS = (
    Condition(
        ("eplb_config",),
        lambda t: bool(_too_small(t)),
        _too_small,
        since="0.33.0",
    ),
    Condition(
        ("enable_return_routed_experts",),
        lambda t: bool(t.enable_return_routed_experts) and t.num_experts == 0,
        lambda t: f"--enable-return-routed-experts is for models with experts, and this one has {t.num_experts}",
        help=lambda t: ("leave --enable-return-routed-experts out",),
        since="0.33.0",
    ),
    Condition(
        ("enable_return_routed_experts", "pipeline_parallel_size"),
        lambda t: bool(t.enable_return_routed_experts) and t.pipeline_parallel_size > 1,
        lambda t: f"--enable-return-routed-experts has no pipeline stages, and there are {t.pipeline_parallel_size}",
        sum=lambda t: f"PP {t.pipeline_parallel_size} > 1",
        help=lambda t: ("--pipeline-parallel-size 1",),
        since="0.33.0",
    ),
    Condition(
        ("enable_return_routed_experts", "decode_context_parallel_size", "prefill_context_parallel_size"),
        lambda t: bool(t.enable_return_routed_experts) and _context_ranks(t) > 1,
        lambda t: f"--enable-return-routed-experts has no context parallelism, and there is one of {_context_ranks(t)}",
        help=lambda t: ("leave --enable-return-routed-experts out",),
        since="0.33.0",
    ),
    Condition(
        ("enable_eplb",),
        lambda t: bool(t.enable_eplb) and not t.enable_expert_parallel,
        lambda t: "--enable-eplb moves whole experts between ranks, and expert parallelism is off",
        help=lambda t: ("--enable-expert-parallel as well", "leave --enable-eplb out"),
        since="0.10.0",
    ),
    Condition(
        ("enable_eplb", "tensor_parallel_size", "data_parallel_size"),
        lambda t: bool(t.enable_eplb) and bool(t.enable_expert_parallel) and _expert_ranks(t) <= 1,
        lambda t: f"--enable-eplb moves experts between ranks, and TP x PCP x DP is {_expert_ranks(t)}",
        sum=lambda t: f"TP x PCP x DP = {_expert_ranks(t)}; more than 1 is needed",
        help=lambda t: ("leave --enable-eplb out",),
        since="0.10.0",
    ),
    Condition(
        ("num_redundant_experts",),
        lambda t: not t.enable_eplb and _redundant(t) != 0,
        lambda t: f"num_redundant_experts is {_redundant(t)}, and load balancing of experts (EPLB) is off",
        help=lambda t: ("--enable-eplb --enable-expert-parallel", "leave num_redundant_experts out"),
        since="0.10.0",
    ),
    Condition(
        ("eplb_config",),
        lambda t: _is_async(t) and t.part("eplb_config", "communicator") in NEEDS_NCCL,
        lambda t: (
            f"the communicator {t.part('eplb_config', 'communicator')} is not for load balancing beside the work "
            "(use_async), which is on"
        ),
        help=lambda t: ("torch_gloo", "nixl", '"use_async": false'),
        since="0.33.0",
    ),
    Condition(
        ("eplb_config",),
        lambda t: _is_async(t) and t.part("eplb_config", "policy") not in (None, "default"),
        lambda t: (
            f"the policy {t.part('eplb_config', 'policy')} is not for load balancing beside the work (use_async), "
            "which is on"
        ),
        help=lambda t: ('"policy": "default"', '"use_async": false'),
        since="0.33.0",
    ),
    Condition(
        ("enable_elastic_ep",),
        lambda t: bool(t.enable_elastic_ep) and not t.enable_eplb,
        lambda t: "--enable-elastic-ep needs the load balancing of experts, and it is off",
        help=lambda t: ("--enable-eplb --enable-expert-parallel",),
        since="0.17.0",
    ),
    Condition(
        ("enable_elastic_ep", "pipeline_parallel_size"),
        lambda t: bool(t.enable_elastic_ep) and t.pipeline_parallel_size > 1,
        lambda t: f"--enable-elastic-ep has no pipeline stages, and there are {t.pipeline_parallel_size}",
        sum=lambda t: f"PP {t.pipeline_parallel_size} > 1",
        help=lambda t: ("--pipeline-parallel-size 1",),
        since="0.17.0",
    ),
    Condition(
        ("enable_elastic_ep", "data_parallel_hybrid_lb"),
        lambda t: bool(t.enable_elastic_ep) and bool(t.data_parallel_hybrid_lb) and t.data_parallel_size_local != 1,
        lambda t: "--enable-elastic-ep has one API server or one for each rank, and not --data-parallel-hybrid-lb",
        help=lambda t: ("leave --data-parallel-hybrid-lb out",),
        since="0.33.0",
    ),
    Condition(
        ("elastic_ep_max_dp_size", "data_parallel_size"),
        lambda t: (
            bool(t.enable_elastic_ep)
            and t.elastic_ep_max_dp_size is not None
            and t.elastic_ep_max_dp_size < (t.data_parallel_size or 1)
        ),
        lambda t: (
            f"--elastic-ep-max-dp-size {t.elastic_ep_max_dp_size} is less than the {t.data_parallel_size} data "
            "parallel ranks to begin with"
        ),
        sum=lambda t: f"{t.elastic_ep_max_dp_size} < DP {t.data_parallel_size}",
        help=lambda t: (f"--elastic-ep-max-dp-size {t.data_parallel_size}",),
        since="0.33.0",
    ),
    Condition(
        ("enable_dbo", "ubatch_size", "all2all_backend"),
        lambda t: (
            microbatches(t) > (0 if t.enable_dbo else 1)
            and _backend(t) not in FOR_MICROBATCHES
            and not (t.platform == "rocm" and _backend(t) == USUAL)
        ),
        lambda t: (
            f"microbatches ({microbatches(t)} of a batch) need one of the transfers {listed(FOR_MICROBATCHES)}, and "
            f"--all2all-backend is {_backend(t)}"
        ),
        help=lambda t: tuple(f"--all2all-backend {backend}" for backend in FOR_MICROBATCHES),
        since="0.18.0",
    ),
    Condition(
        ("dbo_decode_token_threshold", "dbo_prefill_token_threshold", "enable_dbo", "ubatch_size"),
        lambda t: microbatches(t) > 1 and min(_thresholds(t)) < microbatches(t),
        lambda t: (
            f"a batch of {min(_thresholds(t))} tokens, the lower of the two thresholds, cannot be cut into "
            f"{microbatches(t)} microbatches"
        ),
        sum=lambda t: f"{min(_thresholds(t))} tokens < {microbatches(t)} microbatches",
        since="0.33.0",
    ),
    Condition(
        ("all2all_backend", "enable_eplb"),
        lambda t: t.all2all_backend == "moonep" and bool(t.enable_eplb),
        lambda t: "the transfers of moonep have no load balancing of experts, and --enable-eplb asks for it",
        help=lambda t: ("leave --enable-eplb out", f"--all2all-backend {USUAL}"),
        since="0.33.0",
    ),
    Condition(
        ("all2all_backend", "expert_placement_strategy"),
        lambda t: t.all2all_backend == "moonep" and t.expert_placement_strategy not in (None, "linear"),
        lambda t: f"the transfers of moonep need linear placement, and it is {t.expert_placement_strategy}",
        help=lambda t: ("--expert-placement-strategy linear", f"--all2all-backend {USUAL}"),
        since="0.33.0",
    ),
    Condition(
        ("all2all_backend",),
        lambda t: t.all2all_backend == "moonep" and t.quant_method is not None,
        lambda t: f"the transfers of moonep are for weights that are not quantised, and they are {t.quant_method}",
        help=lambda t: (f"--all2all-backend {USUAL}",),
        since="0.33.0",
    ),
)


def judge(told: Told, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem | Undecided]:
    return judged(EXPERTS if engine.name == "sglang" else CONDITIONS, told, engine, engine_version)


RULE = Rule("SL404", "expert-options", "ep-moe", "error", "refuses-at-start", judge, engines=("vllm", "sglang"))
