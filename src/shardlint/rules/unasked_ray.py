"""A Ray cluster beside a command that does not ask for Ray."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Launch
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.facts import Accelerator
from shardlint.findings import Located, Problem, Rule
from shardlint.layout.placement import Placement
from shardlint.rules._ray import needs_ray
from shardlint.rules._words import SHORT, counted, named, product

ONE = Located(1, origin="default")


def applies(ray_starts: tuple[Launch, ...], tensor_parallel_size: Located[int]) -> bool:
    return bool(ray_starts)


def judge(
    ray_starts: tuple[Launch, ...],
    placement: Located[Placement],
    engine: Engine,
    engine_version: Located[Version],
    platform: Located[str],
    tensor_parallel_size: Located[int],
    pipeline_parallel_size: Located[int] = ONE,
    gpus_per_node: Located[int] | None = None,
    ray_cards: Located[int] | None = None,
    accelerators: Located[tuple[Accelerator, ...]] | None = None,
) -> Iterator[Problem]:
    cards = gpus_per_node or ray_cards
    vendors = {card.vendor for card in accelerators.value} if accelerators is not None else {"nvidia"}
    if cards is None or vendors != {"nvidia"} or platform.value != "cuda":
        return
    if not needs_ray(placement.value, cards.value, engine_version.value):
        return
    needed = placement.value.replica_size
    sizes = {"tensor_parallel_size": tensor_parallel_size, "pipeline_parallel_size": pipeline_parallel_size}
    to_blame = pipeline_parallel_size if tensor_parallel_size.value <= cards.value else tensor_parallel_size
    yield Problem(
        at=to_blame,
        message=f"a replica needs {counted(needed, 'GPU')}, the node has {cards.value}, and nothing tells "
        f"{named(engine, engine_version)} to use the Ray cluster that is started beside it: it refuses to start",
        sum=f"{product(*((SHORT[name], size.value) for name, size in sizes.items()))} > {counted(cards.value, 'GPU')}",
        help=("--distributed-executor-backend ray",),
        related=((cards, f"{counted(cards.value, 'GPU')} here"), (ray_starts[0].at, "the cluster is started here")),
    )


RULE = Rule("SL811", "unasked-ray", "executor-backend", "error", "refuses-at-start", judge, applies)
