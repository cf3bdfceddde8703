"""What a smoke run costs: 16 ranks with all checks, against torchrun with scripts that do nothing in as many ranks.

    python benchmarks/smoke.py [RANKS]

Judged is against a script whose only line imports torch, as that of every real use does: the smoke run imports it once,
torchrun's script once for each rank. An empty file, which nobody starts torchrun for, is told beside it. Printed are
wall and CPU seconds (children included) and their ratios, each the better of two runs taken in turn, because other work
on the machine slows all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROUNDS = 2
MOST_WALL, MOST_CPU = 0.5, 0.25
"""Of torchrun's."""

SCRIPTS = {"imports-torch.py": "import torch\n", "empty.py": ""}
"""What torchrun starts; the first is judged."""

MODEL = {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
    "torch_dtype": "bfloat16",
}


class Cost(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


def measured(command: list[str], folder: Path) -> Cost:
    """What a command takes. Raises RuntimeError for one that fails."""
    before, start = os.times(), time.monotonic()
    run = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    after = os.times()
    if run.returncode:
        raise RuntimeError(run.stdout + run.stderr)
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(time.monotonic() - start, used)


def main() -> int:
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 16
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for script, code in SCRIPTS.items():
            (folder / script).write_text(code)
        (folder / "models.json").write_text(json.dumps({"org/experts": MODEL}))
        words = f"vllm serve org/experts -tp 2 -pp 2 -dp {ranks // 4} --enable-expert-parallel\n"
        (folder / "serve.sh").write_text(words)
        python = [sys.executable, "-W", "ignore", "-m"]
        smoke = [*python, "shardlint", "smoke", "serve.sh", "--models", "models.json"]
        torchrun = [*python, "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        commands = [smoke, *([*torchrun, script] for script in SCRIPTS)]
        rounds = [[measured(command, folder) for command in commands] for _ in range(ROUNDS)]
    ours, judged, told = (
        Cost(*(min(cost[part] for cost in costs) for part in (0, 1))) for costs in zip(*rounds, strict=True)
    )
    print(f"{ranks} ranks, all checks:                        {_said(ours)}")
    print(f"{ranks} ranks of torchrun, `import torch` alone:  {_said(judged)}")
    print(f"{ranks} ranks of torchrun, an empty file:         {_said(told)}")
    wall, cpu = ours.wall / judged.wall, ours.cpu / judged.cpu
    print(
        f"judged, against `import torch` alone: {wall:.2f} of the wall time (at most {MOST_WALL}), "
        f"{cpu:.2f} of the CPU time (at most {MOST_CPU})"
    )
    wall_told, cpu_told = ours.wall / told.wall, ours.cpu / told.cpu
    print(f"told, against an empty file: {wall_told:.2f} of the wall time, {cpu_told:.2f} of the CPU time")
    return int(wall > MOST_WALL or cpu > MOST_CPU)


def _said(cost: Cost) -> str:
    return f"{cost.wall:6.1f} s wall, {cost.cpu:6.1f} s CPU"


if __name__ == "__main__":
    sys.exit(main())
