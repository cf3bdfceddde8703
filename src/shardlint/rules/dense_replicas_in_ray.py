"""Data parallel ranks of a dense model in an application of Ray Serve that does not place such ranks."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import RayApplication
from shardlint.facts import Geometry
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import counted

PLAIN = "build_openai_app"
"""The builder of plain applications; that of data parallel ones is `build_dp_openai_app`."""


def applies(ray_application: RayApplication, data_parallel_size: Located[int]) -> bool:
    builder = ray_application.builder
    return builder is not None and builder.value.endswith(f":{PLAIN}") and data_parallel_size.value > 1


def judge(data_parallel_size: Located[int], geometry: Geometry, num_experts: Located[int]) -> Iterator[Problem]:
    if num_experts.value:
        return
    size = data_parallel_size.value
    yield Problem(
        at=data_parallel_size,
        message=f"{geometry.model_id} has no experts, so that its {counted(size, 'data parallel rank')} are plain "
        f"replicas, and {PLAIN} of Ray Serve gives an engine the GPUs of one: nobody places the others",
        sum=f"DP {size} > 1",
        help=(f"num_replicas: {size} under deployment_config, without data_parallel_size",),
    )


RULE = Rule("SL302", "dense-replicas-in-ray", "dp-semantics", "warning", "misbehaves", judge, applies)
