"""An actor of Ray Serve that holds a GPU which its own engine's ranks need."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import RayApplication
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import SHORT, counted, product

ONE = Located(1, origin="default")


def applies(ray_application: RayApplication) -> bool:
    return ray_application.actor_cards is not None


def judge(
    ray_application: RayApplication, tensor_parallel_size: Located[int], pipeline_parallel_size: Located[int] = ONE
) -> Iterator[Problem]:
    held, there = ray_application.actor_cards, ray_application.cluster_cards
    ranks = tensor_parallel_size.value * pipeline_parallel_size.value
    if not isinstance(held, Located) or not isinstance(there, Located) or not 0 < held.value < ranks:
        return
    if ranks + held.value <= there.value:
        return
    layout = product(
        (SHORT["tensor_parallel_size"], tensor_parallel_size.value),
        (SHORT["pipeline_parallel_size"], pipeline_parallel_size.value),
    )
    yield Problem(
        at=held,
        message=f"the actor that starts the engine holds {counted(held.value, 'GPU')}, its {ranks} ranks need {ranks} "
        f"more, and the cluster has {there.value}: Ray waits for GPUs that never come, unless the ranks run inside "
        "the actor, which sees too few",
        sum=f"{held.value} + {ranks} ({layout}) = {held.value + ranks} > {counted(there.value, 'GPU')}",
        help=("num_gpus: 0", "a placement group with one bundle for the actor and one GPU in each for the ranks"),
        related=((tensor_parallel_size, f"TP {tensor_parallel_size.value}"),),
    )


RULE = Rule("SL813", "greedy-actor", "world-vs-gpus", "warning", "hangs", judge, applies)
