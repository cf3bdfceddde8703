"""What a smoke run costs: 16 ranks with all checks, against torchrun with an empty script of as many ranks.

    python benchmarks/smoke.py [RANKS]

Both import torch; the smoke run once, torchrun once for each rank. Printed are wall and CPU seconds (children
included) and their ratios, each the better of two runs taken in turn, because other work on the machine slows both.
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

EMPTY = "import torch\n"
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
        (folder / "empty.py").write_text(EMPTY)
        (folder / "models.json").write_text(json.dumps({"org/experts": MODEL}))
        words = f"vllm serve org/experts -tp 2 -pp 2 -dp {ranks // 4} --enable-expert-parallel\n"
        (folder / "serve.sh").write_text(words)
        python = [sys.executable, "-W", "ignore", "-m"]
        smoke = [*python, "shardlint", "smoke", "serve.sh", "--models", "models.json"]
        torchrun = [*python, "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "empty.py"]
        costs = [(measured(smoke, folder), measured(torchrun, folder)) for _ in range(ROUNDS)]
    ours = Cost(*(min(cost[0][part] for cost in costs) for part in (0, 1)))
    theirs = Cost(*(min(cost[1][part] for cost in costs) for part in (0, 1)))
    print(f"{ranks} ranks, all checks:  {ours.wall:6.1f} s wall, {ours.cpu:6.1f} s CPU")
    print(f"{ranks} ranks of torchrun: {theirs.wall:6.1f} s wall, {theirs.cpu:6.1f} s CPU, with an empty script")
    wall, cpu = ours.wall / theirs.wall, ours.cpu / theirs.cpu
    print(f"ratio: {wall:.2f} of the wall time (at most {MOST_WALL}), {cpu:.2f} of the CPU time (at most {MOST_CPU})")
    return int(wall > MOST_WALL or cpu > MOST_CPU)


if __name__ == "__main__":
    sys.exit(main())
