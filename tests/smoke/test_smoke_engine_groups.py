"""The plan's groups beside those of an installed vLLM; a package of that name stands in for it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from smoke_plans import DENSE, EXPERTS, LATENT, plan

from shardlint.smoke import Trial, run
from shardlint.smoke.engine_groups import NotCompared, engine_groups
from shardlint.smoke.job import LEVELS, Level
from shardlint.smoke.observations import Observation

STAND_IN = """
import torch.distributed

def get_world_group():
    raise RuntimeError("no process group was made")

def init_model_parallel_group(group_ranks, local_rank, backend, use_message_queue_broadcaster=False, group_name=None):
    raise RuntimeError("no process group was made")

def initialize_model_parallel(
    tensor_model_parallel_size, pipeline_model_parallel_size, prefill_context_model_parallel_size,
    decode_context_model_parallel_size, backend
):
    from vllm.config import get_current_vllm_config
    tp, pp = tensor_model_parallel_size, pipeline_model_parallel_size
    world = range(torch.distributed.get_world_size())
    make = lambda name, key: init_model_parallel_group(
        [[rank for rank in world if key(rank) == value] for value in sorted(set(map(key, world)))],
        get_world_group().local_rank, backend, group_name=name)
    make("tp", lambda rank: rank // tp)
    make("pp", lambda rank: (rank // (tp * pp), rank % tp))
    config = get_current_vllm_config()
    if config.model_config.is_moe:
        make("dp", lambda rank: rank % (tp * pp))
        make("ep", lambda rank: rank // tp % pp)
"""


def _install(folder: Path, monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    """A vLLM of version 0.33.0 in that folder, some of its files otherwise."""
    files = {
        "vllm/__init__.py": "__version__ = '0.33.0'\nprint('INFO: a word of its own')",
        "vllm/config.py": "def get_current_vllm_config(): raise RuntimeError('not set')",
        "vllm/distributed/__init__.py": "",
        "vllm/distributed/parallel_state.py": STAND_IN,
    }
    for name, text in (files | changed).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(str(folder))


def test_groups_of_vllm_are_those_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, monkeypatch)
    (found,) = engine_groups(plan(DENSE, tp=2, pp=2, dp=2))
    assert found == Observation("engine-groups", "note", "", "vLLM 0.33.0 makes the planned groups: tp, pp")


def test_other_groups_of_vllm_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swapped = STAND_IN.replace('make("tp"', 'make("swapped"').replace('make("pp"', 'make("tp"')
    _install(tmp_path, monkeypatch, **{"vllm/distributed/parallel_state.py": swapped})
    found = list(engine_groups(plan(EXPERTS, tp=2, pp=2)))
    assert [(seen.severity, seen.message) for seen in found] == [
        ("error", "tp: vLLM 0.33.0 makes [0, 2] [1, 3], and the plan has [0, 1] [2, 3]"),
        ("error", "pp: vLLM 0.33.0 makes none, and the plan has [0, 2] [1, 3]"),
    ]


def test_a_vllm_that_cannot_be_asked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = STAND_IN.replace("decode_context_", "other_")
    _install(tmp_path, monkeypatch, **{"vllm/distributed/parallel_state.py": other})
    why = r"vLLM cannot be asked: TypeError: initialize_model_parallel\(\) got an unexpected keyword argument"
    with pytest.raises(NotCompared, match=why):
        list(engine_groups(plan(DENSE, tp=2)))


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("level", LEVELS)
def test_where_there_is_no_vllm_the_run_could_not_be(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    result = run(plan(DENSE, tp=2), Trial(level=level, against_vllm=True))
    assert (result.exit_code, result.could_not_run) == (
        2,
        "the groups are not compared with those of vLLM: vLLM is not installed; run it in the image that serves",
    )


def test_a_vllm_that_takes_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, monkeypatch, **{"vllm/__init__.py": "import time; time.sleep(600)"})
    with pytest.raises(NotCompared, match=r"vLLM was not imported within 0.5 s"):
        list(engine_groups(plan(DENSE, tp=2), most_seconds=0.5))


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_the_installed_vllm_makes_the_planned_groups() -> None:
    for found in (plan(EXPERTS, tp=2, pp=3, dp=2), plan(LATENT, tp=4, pcp=2, dcp=8, pp=2, dp=2)):
        assert [seen.severity for seen in engine_groups(found)] == ["note"]
