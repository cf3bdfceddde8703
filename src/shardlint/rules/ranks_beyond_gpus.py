"""More ranks of SGLang on a host than it has GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._sglang import copies, ranks
from shardlint.rules._words import counted, named

SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


def judge(
    told: Told, gpus_per_node: Located[int], nodes: Located[int], engine: Engine, engine_version: Located[Version]
) -> Iterator[Problem]:
    hosts, there = max(told.nnodes or 1, nodes.value, 1), gpus_per_node.value
    needed = -(-ranks(told) * copies(told) // hosts)
    if needed <= there or ranks(told) < 1:
        return
    written = [told.located(name) for name in SIZES]
    sizes = [size for size in written if size is not None and size.origin == "written" and size.value > 1]
    of = " x ".join(
        f"{name} {size.value}"
        for name, size in zip(("TP", "PP", "DP"), written, strict=True)
        if size is not None and size.value > 1 and (name != "DP" or not told.enable_dp_attention)
    )
    yield Problem(
        at=sizes[0] if sizes else None,
        message=f"{counted(needed, 'rank')} on each node need a GPU of their own, and it has {there}: "
        f"{named(engine, engine_version)} stops its workers before they load",
        sum=f"{of}{f' / {hosts} nodes' if hosts > 1 else ''} = {needed} > {there}",
        help=(f"{needed} GPUs",),
        related=((gpus_per_node, f"{counted(there, 'GPU')} here"),),
    )


RULE = Rule("SL819", "ranks-beyond-gpus", "world-vs-gpus", "error", "fails-while-loading", judge, engines=("sglang",))
