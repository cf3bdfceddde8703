"""A placement group of Ray that vLLM does not take."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import RayApplication
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import SHORT, counted, listed, named, product

ONE = Located(1, origin="default")


def applies(ray_application: RayApplication) -> bool:
    return bool(ray_application.bundles)


def judge(
    ray_application: RayApplication,
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    pipeline_parallel_size: Located[int] = ONE,
) -> Iterator[Problem]:
    bundles = [bundle for bundle in ray_application.bundles if isinstance(bundle, Located)]
    if len(bundles) < len(ray_application.bundles):
        return
    ranks = tensor_parallel_size.value * pipeline_parallel_size.value
    who = named(engine, engine_version)
    one_each = f"{ranks} bundles of one GPU each: bundles: [{listed(['{GPU: 1}'] * ranks)}]"
    large = next((bundle for bundle in bundles if bundle.value > 1), None)
    if large is not None:
        yield Problem(
            at=large,
            message=f"a bundle of the placement group holds {large.value} GPUs, and {who} puts one rank into each and "
            "takes none with more than 1",
            sum=f"{large.value} GPUs > 1 GPU in a bundle",
            help=(one_each,),
        )
    with_cards = [bundle for bundle in bundles if bundle.value]
    if large is None and len(with_cards) < ranks:
        layout = product((SHORT["tensor_parallel_size"], tensor_parallel_size.value),
                         (SHORT["pipeline_parallel_size"], pipeline_parallel_size.value))  # fmt: skip
        yield Problem(
            at=tensor_parallel_size if tensor_parallel_size.value > 1 else pipeline_parallel_size,
            message=f"{counted(ranks, 'rank')} need a bundle of one GPU each, and the placement group has "
            f"{counted(len(with_cards), 'bundle')} with a GPU: {who} stops",
            sum=f"{layout} > {counted(len(with_cards), 'bundle')}",
            help=(one_each,),
            related=tuple((bundle, f"{counted(bundle.value, 'GPU')}") for bundle in with_cards[:1]),
        )


RULE = Rule("SL812", "placement-bundles", "world-vs-gpus", "error", "fails-while-loading", judge, applies)
