"""Sizes in the fields of a manifest that its controller hands to no engine."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import counted

ONE = Located(1, origin="default")


def applies(deployment: Deployment) -> bool:
    return bool(deployment.server.primary.unused_sizes)


def judge(
    deployment: Deployment, world_size: Located[int] = ONE, data_parallel_size: Located[int] = ONE
) -> Iterator[Problem]:
    ranks = world_size.value * data_parallel_size.value
    for size in deployment.server.primary.unused_sizes:
        yield Problem(
            at=size,
            message=f"this {size.value} reaches no engine: without a `worker` the controller makes one pod for each "
            f"copy, whose command takes the tensor size alone, and {counted(ranks, 'rank')} in it",
            sum=f"1 pod with {counted(ranks, 'rank')}",
            help=("a `worker` with its containers, for several pods", "the flag in VLLM_ADDITIONAL_ARGS, for one pod"),
        )


RULE = Rule("SL820", "unused-sizes", "multinode-shape", "warning", "misbehaves", judge, applies, engines=())
