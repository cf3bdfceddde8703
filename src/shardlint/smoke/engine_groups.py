"""The planned groups beside those that the vLLM of this machine makes: by its own code, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shardlint.smoke.observations import Observation
from shardlint.smoke.plan import Plan

NAME = "engine-groups"
KINDS = ("tp", "dcp", "pcp", "pp", "dp", "ep")
MOST_SECONDS = 120.0
"""vLLM takes long to import."""

# The package's own folder goes last on the path: it only matters where the parent's path was made by hand.
START = """
import sys
sys.path.append(sys.argv[1])
from shardlint.smoke.ranks.vllm_groups import main
main()
"""


class NotCompared(Exception):
    """Why vLLM's groups could not be had. Who asked for them is not to take a run without them for an answer."""


def engine_groups(plan: Plan, most_seconds: float = MOST_SECONDS) -> Iterator[Observation]:
    """What vLLM's groups are beside the plan's. Raises NotCompared."""
    answer = _ask(plan, most_seconds)
    if isinstance(answer, str):
        raise NotCompared(f"the groups are not compared with those of vLLM: {answer}; run it in the image that serves")
    version, made = f"vLLM {answer['version']}", answer["groups"]
    other = [kind for kind in KINDS if _of_vllm(plan, made.get(kind)) != _planned(plan, kind)]
    for kind in other:
        theirs, ours = (_shown(table) for table in (_of_vllm(plan, made.get(kind)), _planned(plan, kind)))
        yield Observation(NAME, "error", "", f"{kind}: {version} makes {theirs}, and the plan has {ours}", "")
    if not other:
        yield Observation(
            NAME, "note", "", f"{version} makes the planned groups: {', '.join(plan.groups) or 'none'}", ""
        )


def _ask(plan: Plan, most_seconds: float) -> dict[str, Any] | str:
    """What the process says in its last line, or why it says nothing of use."""
    if find_spec("vllm") is None:
        return "vLLM is not installed"
    package = str(Path(__file__).resolve().parents[2])
    try:
        done = subprocess.run(
            # -P: a folder called vllm where the user stands is not the engine
            [sys.executable, "-P", "-W", "ignore", "-c", START, package],
            input=json.dumps(plan.to_json()),
            capture_output=True,
            text=True,
            timeout=most_seconds,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired:
        return f"vLLM was not imported within {most_seconds:g} s"
    try:
        answer = json.loads((done.stdout.splitlines() or [""])[-1])
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        return f"vLLM cannot be asked: {(done.stderr.strip().splitlines() or ['it says nothing'])[-1]}"
    return str(answer["cannot"]) if "cannot" in answer else answer


def _planned(plan: Plan, kind: str) -> list[list[int]]:
    return sorted(map(list, plan.groups.get(kind, ())))


def _of_vllm(plan: Plan, made: list[list[int]] | None) -> list[list[int]]:
    """The groups of more than one rank of all worlds; vLLM makes those of one."""
    groups = [group for group in made or () if len(group) > 1]
    return sorted([world[0] + rank for rank in group] for world in plan.worlds for group in groups)


def _shown(table: list[list[int]]) -> str:
    return " ".join(str(group) for group in table[:4]) + (" ..." if len(table) > 4 else "") if table else "none"
