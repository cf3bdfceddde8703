"""How often a published layout is legal, and among the first of the plan for its GPUs.

    python scripts/score_plans.py RECIPES.jsonl [--show]

Each line of the file is a layout that somebody published: model, gpu, gpus_per_node, nodes, tp, pp, dp, ep, flags,
objective, derived.world.  Counted are those of vLLM whose model and card are known and whose sizes are stated.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from shardlint.check import Settings
from shardlint.check.command import read_command
from shardlint.check.trying import Trial
from shardlint.facts import hardware_spec
from shardlint.findings import Unknown
from shardlint.planning import Candidate, Machines, Objective, Plan, plan
from shardlint.text import Library, Source

FIRST = 3
FLAGS = ("max_model_len", "gpu_memory_utilization", "kv_cache_dtype", "max_num_seqs", "max_num_batched_tokens")


class NoFiles(Library):
    """Models are those of the catalogue."""

    def sibling(self, path: str) -> Source | Unknown:
        return Unknown(f"no {path}")

    def model(self, model_id: str) -> Any:
        return Unknown(f"no {model_id}")


class Published(NamedTuple):
    """One layout of the file."""

    recipe: Mapping[str, Any]
    machines: Machines
    card: str
    layout: Candidate


def main(path: str, show: bool) -> None:
    """Prints the figures, and with `show` each layout that is not among the first."""
    legal = first = 0
    counted: list[Published] = []
    skipped: dict[str, int] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        recipe = json.loads(line)
        read = published(recipe)
        made = read if isinstance(read, str) else planned(read)
        if isinstance(made, str) or isinstance(read, str):
            skipped[str(made)] = skipped.get(str(made), 0) + 1
            continue
        counted.append(read)
        place = next(
            (number for number, item in enumerate(made.ranked) if same(item.option.candidate, read.layout)), None
        )
        legal += place is not None
        first += place is not None and place < FIRST
        if show and (place is None or place >= FIRST):
            print(*told(read, made, place), sep="\n")
    share = len(counted) or 1
    print(f"counted {len(counted)}, left out {sum(skipped.values())}:")
    print(*(f"    {number} {why}" for why, number in sorted(skipped.items())), sep="\n")
    print(f"legal {legal} = {legal / share:.1%}, among the first {FIRST} {first} = {first / share:.1%}")


def published(recipe: Mapping[str, Any]) -> Published | str:
    """A line as machines and a layout, or why it does not count."""
    if recipe["engine"] != "vllm":
        return "another engine"
    sizes = [recipe.get(size) or 1 for size in ("tp", "pp", "dp", "dcp")]
    world = (recipe.get("derived") or {}).get("world")
    if not isinstance(world, int):
        return "no number of ranks"
    per_node = recipe.get("gpus_per_node") or world
    nodes = max(1, -(-world // per_node))
    machines = Machines(world // nodes, nodes)
    layout = Candidate(sizes[0], sizes[1], sizes[2], 1, bool(recipe.get("ep")), sizes[3])
    if layout.world_size != machines.gpus:
        return "the sizes do not make the world"
    return Published(recipe, machines, card(recipe["gpu"] or ""), layout)


def card(text: str) -> str:
    """The first card of the words that a source writes."""
    return re.split(r" or |/|,|\(", text)[0].strip()


def planned(read: Published) -> Plan | str:
    """The plan for the machines of a layout, with its flags."""
    hardware = hardware_spec.parse(f"{read.machines.nodes}x{read.machines.gpus_per_node}x{read.card}")
    if isinstance(hardware, str) or hardware.nodes[0].smallest is None:
        return "the card is not known"
    settings = Settings(hardware=hardware)
    flags = read.recipe.get("flags") or {}
    words = ["vllm", "serve", read.recipe["model"].split()[0]]
    words += [part for name in FLAGS if flags.get(name) is not None for part in (f"--{name}", str(flags[name]))]
    library = NoFiles()
    reading = read_command(words, library, settings)
    found = plan(Trial(reading.deployments[0], library, settings), read.machines, objective(read.recipe))
    if isinstance(found, Unknown):
        return "the model is not known"
    return found


def objective(recipe: Mapping[str, Any]) -> Objective:
    """What the source says that it wants, in our words."""
    said = (recipe["objective"] or "").lower()
    if "throughput" in said or "high concurrency" in said:
        return "throughput"
    return "latency" if "latency" in said or "low concurrency" in said else "fits"


def same(mine: Candidate, theirs: Candidate) -> bool:
    """Whether two layouts are one; expert parallelism of one rank is none."""
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "enable_expert_parallel")
    return all(getattr(mine, size) == getattr(theirs, size) for size in sizes) and (
        theirs.decode_context_parallel_size in (1, mine.decode_context_parallel_size)
    )


def told(read: Published, made: Plan, place: int | None) -> Iterator[str]:
    """One layout that the plan does not put first, and what it puts there."""
    recipe = read.recipe
    where = f"{read.machines.nodes} x {read.machines.gpus_per_node} {read.card}"
    yield f"{recipe['id']} {recipe['model']} on {where}: {short(read.layout)}, {recipe['objective']}"
    if place is None:
        own = [option for option in made.refused if same(option.candidate, read.layout)]
        yield f"    refused: {own[0].refusals[0].message if own else 'no such candidate'}"
    else:
        yield f"    place {place + 1} of {len(made.ranked)}"
    yield from (
        f"    {short(item.option.candidate)} holds {item.option.holds:.1f}: {item.why}" for item in made.ranked[:3]
    )


def short(candidate: Candidate) -> str:
    expert = " EP" if candidate.enable_expert_parallel else ""
    context = f" DCP {candidate.decode_context_parallel_size}" if candidate.decode_context_parallel_size > 1 else ""
    sizes = f"{candidate.tensor_parallel_size} PP {candidate.pipeline_parallel_size} DP {candidate.data_parallel_size}"
    return f"TP {sizes}{expert}{context}"


if __name__ == "__main__":
    main(sys.argv[1], "--show" in sys.argv)
