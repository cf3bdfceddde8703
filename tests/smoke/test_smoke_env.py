"""Processes that a launcher has started are the nodes: what it sets in their environment says which is which."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from smoke_plans import DENSE, deployment

from shardlint.front.main import main
from shardlint.smoke.job import PORT, NowhereToMeet, Seat, launched_hosts, launched_seat

MANIFEST = deployment("pair", 2, "--tensor-parallel-size", "2")
SMOKE = ["smoke", "pair.yaml", "--models", "models.json"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pair.yaml").write_text(MANIFEST)
    (tmp_path / "models.json").write_text(json.dumps({"org/one": DENSE}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def test_two_bare_processes_meet_by_their_environment(folder: Path) -> None:
    there = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port()), "WORLD_SIZE": "2"}
    command = [sys.executable, "-m", "shardlint", *SMOKE]
    started = [
        subprocess.Popen(command, env=os.environ | there | {"RANK": rank}, stdout=subprocess.PIPE, text=True)
        for rank in ("1", "0")
    ]
    said = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    for text in said:
        assert text.startswith("Deployment/pair (TP 2) on CPU (2 processes of one host, gloo, torch ")
        assert "proven: membership, " in text


OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "4"}
SRUN = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0"}


@pytest.mark.parametrize(
    ("environment", "first_gpu", "hosts"),
    [
        ({"RANK": "3", "WORLD_SIZE": "4"}, 0, 4),
        ({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}, 2, 2),
        ({"RANK": "3", "WORLD_SIZE": "4", **OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, 0, 4),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_RANK": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, 6, 1),
        ({**SRUN, "SLURM_STEP_NUM_NODES": "2"}, 2, 2),
        ({**SRUN, "SLURM_STEP_NUM_NODES": "1", **HYDRA}, 2, 1),
        (HYDRA, 0, 4),
        ({**HYDRA, "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "3"}, 0, 2),
    ],
)
def test_each_launcher_says_it_in_its_own_words(environment: Mapping[str, str], first_gpu: int, hosts: int) -> None:
    there = {**environment, "MASTER_ADDR": "node0"}
    assert launched_hosts(there) == hosts
    seat = launched_seat(there, 8)
    assert seat == Seat(3, 4, "node0", PORT, first_gpu, together=hosts == 1)
    assert launched_seat({**there, "MASTER_PORT": "29500"}, 8) == seat._replace(port=29500)
    with pytest.raises(NowhereToMeet, match=r"=3 and .*=4 say that this is one of 4 processes, and MASTER_ADDR is not"):
        launched_seat(environment, 8)


@pytest.mark.parametrize(
    "environment",
    [
        {"MASTER_ADDR": "node0"},
        {"MASTER_ADDR": "node0", "RANK": "0", "WORLD_SIZE": "1"},
        {"MASTER_ADDR": "node0", "RANK": "0"},
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"MASTER_ADDR": "node0", **SRUN, "SLURM_STEP_ID": "batch"},
        {"MASTER_ADDR": "node0", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"},  # of a batch script
    ],
)
def test_a_process_that_is_alone_has_no_seat(environment: Mapping[str, str]) -> None:
    assert launched_seat(environment, 8) is None
    assert launched_hosts(environment) == 1


def test_the_port_that_torchrun_listens_on_is_left_to_it() -> None:
    beside = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
    assert launched_seat({**beside, "TORCHELASTIC_USE_AGENT_STORE": "True"}, 8) == Seat(1, 2, "node0", 29501, 4)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"RANK": "first"}, "what a launcher has set is of no use: RANK=first is no number from 0 on"),
        ({"RANK": "-1"}, "what a launcher has set is of no use: RANK=-1 is no number from 0 on"),
        ({"WORLD_SIZE": "0"}, "what a launcher has set is of no use: WORLD_SIZE=0 is no number from 1 on"),
        ({"LOCAL_WORLD_SIZE": "0"}, "what a launcher has set is of no use: LOCAL_WORLD_SIZE=0 is no number from 1 on"),
        ({"MASTER_PORT": "65536"}, "65536 is no port for nodes to meet at: they go from 1 to 65535"),
    ],
)
def test_numbers_that_are_none_end_with_2(
    environment: Mapping[str, str], why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"MASTER_ADDR": "node0", "RANK": "0", "WORLD_SIZE": "2", **environment}.items():
        monkeypatch.setenv(name, value)
    assert main(SMOKE) == 2
    assert capsys.readouterr().err == f"shardlint: {why}\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("environment", "why"),
    [
        (
            {"RANK": "0", "WORLD_SIZE": "2"},
            "RANK=0 and WORLD_SIZE=2 say that this is one of 2 processes, and MASTER_ADDR is not set: it has to be the "
            "address of rank 0 in all of them; --nodes 1 tries the whole layout in this one",
        ),
        (SRUN, "SLURM_PROCID=3 and SLURM_NTASKS=4 say that this is one of 4 processes, and MASTER_ADDR is not set: "),
        (
            {"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "node0"},
            "the plan needs 2 ranks, which do not divide by the 3 processes that a launcher has started",
        ),
    ],
)
def test_one_of_several_processes_does_not_try_everything_by_itself(
    environment: Mapping[str, str], why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main([*SMOKE, "--level", "pre"]) == 2
    assert capsys.readouterr().err.startswith(f"shardlint: {why}")
    assert main([*SMOKE, "--level", "pre", "--nodes", "1"]) == 0


def test_nodes_may_hold_unequal_numbers_of_ranks() -> None:
    seat = Seat(1, 3, held=(3, 1, 4))
    assert [list(seat.ranks(8, node)) for node in range(3)] == [[0, 1, 2], [3], [4, 5, 6, 7]]
    assert (list(seat.ranks(8)), [seat.node_of(rank, 8) for rank in (2, 3, 4)]) == ([3], [0, 1, 2])
    even = Seat(1, 2)
    assert (list(even.ranks(8)), even.node_of(3, 8), even.node_of(4, 8)) == ([4, 5, 6, 7], 0, 1)
