"""Under torchrun: its processes are the nodes, each with its share of the ranks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from smoke_plans import DENSE, deployment

MANIFEST = deployment("four", 4, "--tensor-parallel-size", "2", "--pipeline-parallel-size", "2")


def test_the_processes_of_torchrun_share_the_ranks(tmp_path: Path) -> None:
    (tmp_path / "four.yaml").write_text(MANIFEST)
    (tmp_path / "models.json").write_text(json.dumps({"org/one": DENSE}))
    torchrun = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = subprocess.run(
        [*torchrun, "-m", "shardlint", "smoke", "four.yaml", "--models", "models.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    headlines = [line for line in run.stdout.splitlines() if line.startswith("Deployment/four (PP 2 × TP 2) on CPU")]
    assert len(headlines) == 1
    assert "(4 processes of one host, gloo, " in headlines[0]
