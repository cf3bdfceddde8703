"""What a newcomer sees: each mistake that the documents name is found in its example, and its twin is left alone."""

import json
from pathlib import Path

import pytest

from shardlint.front.main import main

EXAMPLES = Path(__file__).parent.parent / "examples"

FOUND = {
    "expert-parallel-dense.yaml": {"expert-parallel-dense"},
    "idle-gpus.yaml": {"idle-gpus"},
    "impatient-probe.yaml": {"impatient-probe"},
    "kv-cache-kserve.yaml": {"kv-cache"},
    "kv-heads-compose.yaml": {"kv-heads", "sharded-widths"},
    "kv-heads-replicated.yaml": {"kv-heads-replicated"},
    "layer-partition-count.sh": {"layer-partition"},
    "layer-partition-sum.yaml": {"layer-partition"},
    "no-headroom-skypilot.yaml": {"no-headroom"},
    "pipeline-support.yaml": {"pipeline-support"},
    "query-heads-docker.sh": {"query-heads", "kv-heads"},
    "query-heads.yaml": {"query-heads", "kv-heads"},
    "refined-blocks.yaml": {"refined-blocks"},
    "refused-flag-skypilot.yaml": {"refused-flag"},
    "replica-memory.yaml": {"replica-memory"},
    "shared-gpu-compose.yaml": {"shared-gpu"},
    "sliced-gpus.yaml": {"sliced-gpus"},
    "small-shared-memory.yaml": {"small-shared-memory"},
    "tensor-parallel-across-nodes-lws.yaml": {"tensor-parallel-across-nodes", "kv-heads-replicated"},
    "tensor-parallel-without-nvlink.yaml": {"tensor-parallel-without-nvlink"},
    "uneven-stages.yaml": {"uneven-stages"},
    "world-size-compose.yaml": {"world-size"},
}


@pytest.fixture(autouse=True)
def _no_models_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))


def rules_of(capsys: pytest.CaptureFixture[str], path: Path) -> set[str]:
    main(["check", "--format", "json", str(path)])
    return {finding["rule"] for finding in json.loads(capsys.readouterr().out)["findings"]}


@pytest.mark.parametrize("name", sorted(FOUND))
def test_the_mistake_is_found(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert rules_of(capsys, EXAMPLES / "mistakes" / name) == FOUND[name]


@pytest.mark.parametrize("name", sorted(FOUND))
def test_the_mended_twin_is_left_alone(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert rules_of(capsys, EXAMPLES / "mended" / name) == set()


def test_every_example_is_tested() -> None:
    for folder in ("mistakes", "mended"):
        assert sorted(path.name for path in (EXAMPLES / folder).iterdir()) == sorted(FOUND)
