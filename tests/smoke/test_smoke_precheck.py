"""What is said of a host before a rank starts there, each thing beside its nearest miss."""

from __future__ import annotations

import os
from typing import Any

import pytest

from shardlint.smoke.observations import Observation
from shardlint.smoke.precheck import MIB, Needs, chosen, differences, precheck
from shardlint.smoke.surroundings import Port, Surroundings, read

SOUND = Surroundings(
    host="node1",
    addresses=("10.0.0.2",),
    interfaces={"lo": "127.0.0.1", "eth0": "10.0.0.2", "docker0": "172.17.0.1"},
    shared_memory_free=4096 * MIB,
    gpus=(0, 1, 2, 3),
    locked_memory=None,
    open_files=1048576,
)
TWO_NODES = Needs(ranks=8, ranks_here=4, nodes=2)
ONE_NODE = Needs(ranks=4, ranks_here=4)
ADAPTER = Port("mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)")


def _seen(needs: Needs = TWO_NODES, **otherwise: Any) -> list[Observation]:
    return list(precheck(needs, SOUND._replace(**otherwise)))


def _messages(needs: Needs = TWO_NODES, **otherwise: Any) -> list[str]:
    return [f"{seen.severity}: {seen.message}" for seen in _seen(needs, **otherwise)]


def test_a_sound_host_is_passed_in_silence() -> None:
    assert _seen() == _seen(ONE_NODE) == []


@pytest.mark.parametrize(
    ("gpus", "variable", "why"),
    [
        ((0, 1, 2), None, "3 GPUs can be used, 4 are planned for this host (missing index 3)"),
        ((0, 2, 3), None, "3 GPUs can be used, 4 are planned for this host (missing index 1)"),
        (
            (0, 1, 2, 3),
            "0,1",
            "2 GPUs can be used, 4 are planned for this host (CUDA_VISIBLE_DEVICES=0,1 hides indices 2, 3)",
        ),
        (
            (0, 1, 2, 3),
            "0,9,1,2",
            "1 GPU can be used, 4 are planned for this host (CUDA_VISIBLE_DEVICES=0,9,1,2 hides indices 1, 2, 3)",
        ),
    ],
)
def test_gpus_that_are_missing_or_hidden_are_counted(gpus: tuple[int, ...], variable: str | None, why: str) -> None:
    environment = {} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}
    assert _messages(gpus=gpus, environment=environment) == [f"error: {why}"]


def test_enough_gpus_and_a_host_without_any_are_no_fault() -> None:
    assert _seen(gpus=(0, 1, 2, 3), environment={"CUDA_VISIBLE_DEVICES": "3,2,1,0"}) == []
    assert _seen(gpus=(4, 5, 6, 7), environment={"CUDA_VISIBLE_DEVICES": "0,1,2,3"}) == []
    assert _seen(gpus=()) == []


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.1.1", "::1"])
def test_a_hostname_that_leads_to_loopback_keeps_nodes_apart(address: str) -> None:
    (seen,) = _seen(addresses=(address,))
    assert (seen.name, seen.severity) == ("hostname", "error")
    assert seen.message == (
        f'the hostname "node1" resolves to {address} and GLOO_SOCKET_IFNAME is unset: '
        "gloo would listen on loopback, and the nodes cannot meet"
    )
    assert seen.advice == ("set GLOO_SOCKET_IFNAME to the interface that reaches the other nodes (lo, eth0, docker0)")
    assert _seen(ONE_NODE, addresses=(address,)) == []
    assert _seen(addresses=(address,), environment={"GLOO_SOCKET_IFNAME": "eth0"}) == []


def test_a_hostname_that_leads_to_another_host_keeps_nodes_apart() -> None:
    (seen,) = _seen(addresses=("10.9.9.9",), elsewhere=("10.9.9.9",))
    assert (seen.name, seen.severity) == ("hostname", "error")
    assert seen.message == (
        'the hostname "node1" resolves to 10.9.9.9, which no interface of this host has, and GLOO_SOCKET_IFNAME is '
        "unset: gloo would listen on loopback, and the nodes cannot meet"
    )
    assert _seen(addresses=("10.9.9.9", "10.0.0.2"), elsewhere=("10.9.9.9",)) == []


def test_a_hostname_that_does_not_resolve_is_told() -> None:
    (seen,) = _seen(addresses=())
    assert seen.message == 'the hostname "node1" does not resolve, and GLOO_SOCKET_IFNAME is unset: gloo has no address'


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("^lo,docker0", "gloo knows no exclusion (NCCL does), and takes it as a part of the name"),
        ("=eth0", "gloo knows no sign for exact names (NCCL does), and takes it as a part of the name"),
        ("eth", "there is no interface eth, and gloo wants all of them, by their exact names"),
        ("eth0,ib0", "there is no interface ib0, and gloo wants all of them, by their exact names"),
    ],
)
def test_names_that_gloo_does_not_take(names: str, why: str) -> None:
    assert _messages(ONE_NODE, environment={"GLOO_SOCKET_IFNAME": names}) == [
        f"error: GLOO_SOCKET_IFNAME={names}: {why}"
    ]


@pytest.mark.parametrize("names", ["eth0", "eth0,lo"])
def test_names_that_gloo_takes(names: str) -> None:
    assert _seen(environment={"GLOO_SOCKET_IFNAME": names}) == []


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("eth", ("eth0", "eth1")),
        ("eth1,ib", ("eth1", "ib0")),
        ("=eth", ()),
        ("=eth0,ib0", ("eth0", "ib0")),
        ("^eth", ("lo", "ib0")),
        ("^=eth0", ("lo", "eth1", "ib0")),
        ("ib0:1", ("ib0",)),
    ],
)
def test_nccl_chooses_by_prefix_exact_name_or_exclusion(pattern: str, taken: tuple[str, ...]) -> None:
    assert chosen(pattern, ("lo", "eth0", "eth1", "ib0")) == taken


def test_a_pattern_that_leaves_nccl_no_interface_is_told_wherever_it_stands() -> None:
    message = "error: NCCL_SOCKET_IFNAME==eth leaves NCCL none of the interfaces lo, eth0, docker0"
    assert _messages(environment={"NCCL_SOCKET_IFNAME": "=eth"}) == [message]
    assert _messages(nccl_settings={"NCCL_SOCKET_IFNAME": "=eth"}) == [message]
    assert _seen(environment={"NCCL_SOCKET_IFNAME": "eth"}, nccl_settings={"NCCL_SOCKET_IFNAME": "=eth"}) == []


def test_shared_memory_is_measured_by_what_a_rank_makes_there() -> None:
    small = "error: /dev/shm has 64 MiB free: vLLM makes a segment of 240 MiB there for each rank"
    assert _messages(shared_memory_free=64 * MIB) == [f"{small} and stops where there is less room"]
    assert _messages(shared_memory_free=239 * MIB)[0].startswith("error: ")
    assert _messages(shared_memory_free=240 * MIB)[0].startswith("warning: /dev/shm has 240 MiB free")
    assert _seen(shared_memory_free=1024 * MIB) == []
    assert _seen(Needs(1, 1), shared_memory_free=64 * MIB) == []
    assert _messages(shared_memory_free=64 * MIB, gpus=())[0].startswith("warning: "), "no server is to run here"


def test_rdma_that_the_machine_has_and_the_container_has_not() -> None:
    assert _messages(ports=(ADAPTER,)) == [
        "warning: the machine has RDMA (mlx5_0 400 Gb/sec (4X NDR)), and there is no /dev/infiniband here: "
        "NCCL will use TCP silently"
    ]
    assert _messages(ports=(ADAPTER,), rdma_usable=True, locked_memory=8 * MIB) == [
        "warning: 8192 KiB of memory can be locked: RDMA cannot register NCCL's buffers"
    ]
    assert _seen(ports=(ADAPTER,), rdma_usable=True) == []
    assert _seen(ONE_NODE, ports=(ADAPTER,), locked_memory=8 * MIB) == []


def test_rdma_ports_that_are_down_beside_others_that_are_not() -> None:
    down = Port("mlx5_1", "1: DOWN", "10 Gb/sec (4X SDR)")
    assert _messages(ports=(ADAPTER, down), rdma_usable=True) == ["warning: RDMA ports that are not active: mlx5_1"]


def test_an_adapter_that_is_not_there() -> None:
    named = _messages(ports=(ADAPTER,), rdma_usable=True, environment={"NCCL_IB_HCA": "mlx5_7"})
    assert named == ["warning: NCCL_IB_HCA=mlx5_7 leaves NCCL none of the RDMA devices mlx5_0: it will use TCP"]
    assert _seen(ports=(ADAPTER,), rdma_usable=True, environment={"NCCL_IB_HCA": "mlx5_0:1"}) == []


def test_leftovers_of_a_search_for_faults_are_asked_about() -> None:
    assert _messages(
        ONE_NODE, environment={"NCCL_P2P_DISABLE": "1", "NCCL_IB_DISABLE": "0", "NCCL_DEBUG": "trace"}
    ) == [
        "warning: NCCL_P2P_DISABLE=1 is set: a leftover? GPUs then exchange through the host's memory",
        "warning: NCCL_DEBUG=trace is set: NCCL writes lines for every call",
    ]
    assert _messages(nccl_settings={"NCCL_SHM_DISABLE": "1"}) == [
        "warning: NCCL_SHM_DISABLE=1 is set in NCCL's settings file: a leftover? "
        "ranks of one host then exchange through sockets"
    ]


def test_errors_come_first() -> None:
    seen = _seen(environment={"NCCL_P2P_DISABLE": "1"}, shared_memory_free=0)
    assert [each.severity for each in seen] == ["error", "warning"]


def test_files_are_counted_by_the_ranks_that_connect() -> None:
    message = "warning: a process may open 1279 files, and a full mesh of 8 ranks wants 1280"
    assert _messages(open_files=1279) == [message]
    assert _seen(open_files=1280) == []


def test_variables_that_differ_between_nodes_are_shown_with_their_values() -> None:
    one = SOUND._replace(host="a", environment={"NCCL_ALGO": "Ring", "VLLM_HOST_IP": "10.0.0.1"})
    two = SOUND._replace(host="b", environment={"VLLM_HOST_IP": "10.0.0.2"})
    assert [seen.message for seen in differences([one, two])] == ["NCCL_ALGO is Ring on a, unset on b"]
    assert list(differences([one, one._replace(host="b")])) == []
    drivers = [one._replace(driver="570.86.15"), one._replace(host="b", driver="560.35.03"), one._replace(host="c")]
    assert [(seen.name, seen.message) for seen in differences(drivers)] == [
        ("versions", "NVIDIA's driver is 570.86.15 on a, 560.35.03 on b")
    ]


def test_this_host_is_read() -> None:
    given = {"NCCL_ALGO": "Ring", "VLLM_API_KEY": "x", "VLLM_PROXY": "http://me:secret@proxy:80", "HOME": "/root"}
    around = read({**os.environ, **given})
    assert around.host
    assert around.interfaces["lo"] == "127.0.0.1"
    assert around.environment["NCCL_ALGO"] == "Ring"
    assert around.environment["VLLM_PROXY"] == "http://...@proxy:80"
    assert not {"VLLM_API_KEY", "HOME"} & set(around.environment)
    assert around.shared_memory_free is None or around.shared_memory_free > 0


def test_the_settings_file_of_nccl_is_read(tmp_path: Any) -> None:
    (tmp_path / "nccl.conf").write_text("# ours\nNCCL_P2P_DISABLE = 1 # why\nnonsense\n")
    around = read({"NCCL_CONF_FILE": str(tmp_path / "nccl.conf")})
    assert around.nccl_settings == {"NCCL_P2P_DISABLE": "1"}
