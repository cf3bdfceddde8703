"""The groups that vLLM would make of a plan, asked of its own code without starting a rank.

`initialize_model_parallel` works out the tables and hands them to a function that makes process groups; here that
function writes them down instead. Everything else that it asks for is what the first rank of a world would have.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch.distributed as dist

from shardlint.smoke.plan import Plan


def main() -> None:
    """A plan from standard input; on standard output, as the last line, vLLM's version and groups, or why there are
    none."""
    plan = Plan.from_json(json.loads(sys.stdin.readline()))
    try:
        answer: Mapping[str, Any] = groups_of_vllm(plan)
    except Exception as failure:  # whatever a release does otherwise, it is told and not taken for a difference
        answer = {"cannot": f"vLLM cannot be asked: {type(failure).__name__}: {failure}".splitlines()[0]}
    sys.stdout.write(f"\n{json.dumps(answer)}\n")
    sys.stdout.flush()
    os._exit(0)  # nothing that vLLM says at its end may follow


def groups_of_vllm(plan: Plan) -> dict[str, Any]:
    """Of one world of the plan, counted from 0."""
    import vllm
    import vllm.config
    from vllm.distributed import parallel_state

    made: dict[str, list[list[int]]] = {}

    def write_down(group_ranks: list[list[int]], *_rest: Any, group_name: str = "", **_more: Any) -> SimpleNamespace:
        made[group_name] = group_ranks
        return SimpleNamespace(world_size=len(group_ranks[0]), rank_in_group=0)

    config = _config(plan)
    vllm.config.get_current_vllm_config = lambda: config
    parallel_state.init_model_parallel_group = write_down
    parallel_state.get_world_group = lambda: SimpleNamespace(local_rank=0, rank=0, device_group=None)
    dist.is_initialized = lambda: True
    dist.get_world_size = lambda *_group: len(plan.worlds[0])
    dist.get_rank = lambda *_group: 0
    sizes = plan.sizes
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=sizes.tensor_parallel_size,
        pipeline_model_parallel_size=sizes.pipeline_parallel_size,
        prefill_context_model_parallel_size=sizes.prefill_context_parallel_size,
        decode_context_model_parallel_size=sizes.decode_context_parallel_size,
        backend="gloo",
    )
    return {"version": str(vllm.__version__), "groups": made}


def _config(plan: Plan) -> SimpleNamespace:
    """What vLLM looks up in its configuration on the way: a model with experts has all replicas in one world."""
    in_one_world = len(plan.worlds) == 1
    parallel = SimpleNamespace(
        data_parallel_size=plan.sizes.data_parallel_size if in_one_world else 1,
        enable_elastic_ep=False,
        enable_eplb=False,
        use_all2all=False,
    )
    model = SimpleNamespace(is_moe="ep" in plan.groups, architecture="")
    return SimpleNamespace(parallel_config=parallel, model_config=model, engram_config=None)
