"""In a Ray cluster: a real one of two nodes on this host, whose four GPUs are made up, so that gloo is used."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from smoke_plans import DENSE, deployment, plan
from smoke_processes import none_left_within, processes_of

from shardlint.front.main import main
from shardlint.smoke import Plan, SmokeResult, Trial
from shardlint.smoke.node import CannotTry, silent
from shardlint.smoke.plan import Deviation
from shardlint.smoke.ray_process import NO_RAY, ray_cluster
from shardlint.smoke.report import first_cause

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")

MANIFEST = deployment("three", 6, "--tensor-parallel-size", "2", "--data-parallel-size", "3")
SMOKE = ["smoke", "three.yaml", "--models", "models.json", "--launch", "ray"]

CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(True, head_node_args={"num_cpus": 1, "num_gpus": 3, "include_dashboard": False})
cluster.add_node(num_cpus=1, num_gpus=1)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture(scope="module")
def files() -> Iterator[Path]:
    """How the names begin of the folders in which the supervisors of the cluster keep their files."""
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:  # a short name: Ray's sockets are below it
        yield Path(folder, "shardlint-smoke-")


@pytest.fixture(scope="module")
def address(files: Path) -> Iterator[str]:
    """Of the cluster, which lives as long as these tests."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(files.parent)},
    ) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        where = cluster.stdout.readline().strip()
        assert where, "the cluster did not start"
        yield where
        cluster.stdin.close()
        assert cluster.wait(30) == 0


@pytest.fixture
def joined(address: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test that runs in the cluster, and leaves nothing there."""
    monkeypatch.setenv("RAY_ADDRESS", address)
    yield
    assert none_left_within(files, 10)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "three.yaml").write_text(MANIFEST)
    (tmp_path / "models.json").write_text(json.dumps({"org/one": DENSE}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(tried: Plan) -> SmokeResult:
    with ray_cluster(30, silent) as cluster:
        assert cluster.gpus == 4
        return cluster.run(tried, Trial(stall_seconds=30.0))


@needs_ray
@pytest.mark.usefixtures("joined", "folder")
def test_as_many_replicas_as_the_cluster_has_gpus_for_are_tried_where_ray_puts_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun = time.monotonic()
    assert main([*SMOKE, "--format", "json"]) == 0
    whole = time.monotonic() - begun
    data = json.loads(capsys.readouterr().out)
    assert data["headline"].startswith("Deployment/three (DP 2 × TP 2) on CPU (4 processes of one host, gloo, torch ")
    assert data["headline"].endswith(", several nodes, data_parallel_size 3 (tried with 2)")
    assert "NCCL" in data["not_proven"]
    assert whole / 2 < data["environment"]["seconds"] < whole  # to join the cluster counts
    assert [host["node"] for host in data["hosts"]] == [0, 1]
    (placement,) = (seen["message"] for seen in data["observations"] if seen["name"] == "placement")
    name = r"[^ ]+ \([^ ]+, Ray node [0-9a-f]{8}\)"
    assert re.fullmatch(f"ranks 0 to 2 on {name}; rank 3 on {name}", placement)


@needs_ray
@pytest.mark.usefixtures("joined")
def test_a_killed_rank_is_named_and_its_node_has_the_gpus_and_variables_of_vllm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UCX_TLS", "tcp")
    monkeypatch.setenv("VLLM_HOST_IP", "192.0.2.9")
    result = _run(plan(DENSE, Deviation("end", (3,), ("split-mlp", "SIGKILL")), tp=2, pp=2))
    assert (result.exit_code, result.kind) == (1, "rank-lost")
    assert re.fullmatch(r"rank 3 \(process \d+ on .+\) was ended by SIGKILL in split-mlp", first_cause(result) or "")
    settings = [host.around.environment for host in result.hosts]
    assert [each["CUDA_VISIBLE_DEVICES"] for each in settings] == ["0,1,2", "0"]  # each node counts its own
    assert [each.get("UCX_TLS") for each in settings] == ["tcp", "tcp"]
    assert [each.get("VLLM_HOST_IP") for each in settings] == [None, None]  # which is one node's own


@needs_ray
@pytest.mark.usefixtures("joined")
def test_a_supervisor_that_dies_is_missed_by_the_other(files: Path) -> None:
    waits = plan(DENSE, Deviation("end", (0,), ("split-mlp", "sleep")), tp=2, pp=2)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(_run, waits)
        os.kill(_a_supervisor(files), signal.SIGKILL)
        result = running.result()
    assert (result.exit_code, result.kind) == (1, "rank-lost")
    assert re.fullmatch(r"rank \d.*: node \d .+ left the run", first_cause(result) or "")


def _a_supervisor(files: Path) -> int:
    """One that has forked its ranks, which all are there: two processes beside them, of which it is a parent."""
    end = time.monotonic() + 30
    while len(there := processes_of(files)) < 6 and time.monotonic() < end:
        time.sleep(0.1)
    parents = [int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]) for process in there]
    return next(parent for parent in parents if parent not in there)


@needs_ray
@pytest.mark.usefixtures("joined")
def test_a_cluster_with_too_few_gpus_is_refused() -> None:
    with pytest.raises(CannotTry, match=r"^the plan needs 8 GPUs, and the Ray cluster has 4$"):
        _run(plan(DENSE, tp=8))


NOT_TRIED = "shardlint: Deployment/three (DP 3 × TP 2) was not tried: "


@needs_ray
@pytest.mark.usefixtures("folder")
def test_a_cluster_that_does_not_answer_is_not_waited_for_beyond_the_deadline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert main([*SMOKE, "--deadline", "1"]) == 2
    assert capsys.readouterr().err == f"{NOT_TRIED}the Ray cluster 127.0.0.1:1 did not answer within 1 s\n"


@needs_ray
@pytest.mark.usefixtures("folder")
def test_an_address_that_is_none_of_a_cluster_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:8265")
    assert main(SMOKE) == 2
    assert capsys.readouterr().err.startswith(f"{NOT_TRIED}no Ray cluster can be joined from here: Invalid Ray address")


@pytest.mark.usefixtures("folder")
def test_without_ray_nothing_is_tried(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as where it is not installed
    assert main(SMOKE) == 2
    assert capsys.readouterr().err == f"{NOT_TRIED}{NO_RAY}\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", [["--nodes", "2"], ["--node-rank", "0"], ["--master", "host:1"]])
def test_ray_is_not_told_which_node_it_is(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMOKE, *words]) == 2
    why = "--nodes, --node-rank and --master are for Ray to say: they do not go with --launch ray"
    assert capsys.readouterr().err == f"shardlint: {why}\n"
