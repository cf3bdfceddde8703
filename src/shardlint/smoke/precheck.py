"""What will stop or slow the ranks before the first of them starts: a host's surroundings against the plan.

gloo and NCCL choose their network interface by variables of different grammars. `GLOO_SOCKET_IFNAME` is a list of
exact names, all of which have to exist. `NCCL_SOCKET_IFNAME` is a list of prefixes; `=` before it makes them exact, `^`
leaves them out. `NCCL_IB_HCA` is like it, for RDMA devices, each with a port behind `:` where one is meant.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from shardlint.findings.words import counted
from shardlint.smoke.observations import Observation, Weight
from shardlint.smoke.surroundings import Surroundings

MIB = 2**20
SEGMENT_BYTES = 240 * MIB
"""The answers of one rank, vllm/distributed/device_communicators/shm_broadcast.py: 10 chunks of 24 MiB."""
ENOUGH_SHARED_MEMORY = 1024 * MIB
OPEN_FILES, OPEN_FILES_PER_RANK = 1024, 32
"""gloo connects every rank with every other, in the world and in each group; the rest is torch's and vLLM's own."""

LEFTOVERS = {
    "NCCL_P2P_DISABLE": "GPUs then exchange through the host's memory",
    "NCCL_SHM_DISABLE": "ranks of one host then exchange through sockets",
    "NCCL_IB_DISABLE": "nodes then exchange through TCP sockets",
    "CUDA_LAUNCH_BLOCKING": "every kernel is then waited for",
    "TORCH_DISTRIBUTED_DEBUG": "every collective is then checked by another",
}
LOUD = ("TRACE",)
OFF = ("", "0", "OFF", "INFO")
OWN_OF_A_NODE = ("CUDA_VISIBLE_DEVICES", "VLLM_HOST_IP", "VLLM_DP_RANK", "VLLM_DP_RANK_LOCAL", "NCCL_HOSTID")
"""Variables that may differ between nodes."""


class Needs(NamedTuple):
    """What the plan wants of one host."""

    ranks: int
    """Of the whole plan."""
    ranks_here: int
    nodes: int = 1


def precheck(needs: Needs, around: Surroundings) -> tuple[Observation, ...]:
    """All that is to be said of one host before a rank starts there, errors first."""
    found = (
        *_devices(needs, around),
        *_address(needs, around),
        *_gloo_names(around),
        *_nccl_names(needs, around),
        *_shared_memory(needs, around),
        *_rdma(needs, around),
        *_limits(needs, around),
        *_leftovers(around),
    )
    return tuple(sorted(found, key=lambda each: ("error", "warning", "note").index(each.severity)))


def differences(hosts: Sequence[Surroundings]) -> Iterator[Observation]:
    """Variables that are not the same on all nodes, and drivers."""
    names = sorted({name for host in hosts for name in host.environment} - set(OWN_OF_A_NODE))
    for name in names:
        if said := _unlike([(host.environment.get(name), host.host) for host in hosts]):
            yield Observation("environment", "warning", "", f"{name} is {said}", f"set {name} alike on all nodes")
    if said := _unlike([(host.driver, host.host) for host in hosts if host.driver]):
        yield Observation("versions", "warning", "", f"NVIDIA's driver is {said}", "one driver on all nodes")


def _unlike(values: Iterable[tuple[str | None, str]]) -> str:
    """What is where; empty where all have the same."""
    where: dict[str | None, list[str]] = {}
    for value, host in values:
        where.setdefault(value, []).append(host)
    return ", ".join(f"{_value(value)} on {_list(on)}" for value, on in where.items()) if len(where) > 1 else ""


def _value(value: str | None) -> str:
    return "unset" if value is None else value


def _devices(needs: Needs, around: Surroundings) -> Iterator[Observation]:
    if not around.gpus:
        return
    usable = _visible(around)
    if len(usable) >= needs.ranks_here:
        return
    hidden = [number for number in around.gpus if number not in usable]
    expected = range(max(around.gpus[-1] + 1, needs.ranks_here))
    missing = [number for number in expected if number not in around.gpus]
    reasons = []
    if missing:
        reasons.append(f"missing {_numbers(missing)}")
    if hidden:
        reasons.append(f"CUDA_VISIBLE_DEVICES={around.environment['CUDA_VISIBLE_DEVICES']} hides {_numbers(hidden)}")
    why = f" ({'; '.join(reasons)})" if reasons else ""
    yield Observation(
        "devices",
        "error",
        around.host,
        f"{counted(len(usable), 'GPU')} can be used, {needs.ranks_here} are planned for this host{why}",
        "give the pod or container all of its GPUs, or plan for fewer ranks",
    )


def _visible(around: Surroundings) -> list[int]:
    """The GPUs that CUDA gives a process. It counts those that are there, in a container from /dev/nvidia4 on perhaps;
    what follows an invalid number is hidden too."""
    variable = around.environment.get("CUDA_VISIBLE_DEVICES")
    if variable is None:
        return list(around.gpus)
    words = [word.strip() for word in variable.split(",")]
    if any(word.startswith(("GPU-", "MIG-")) for word in words):
        return list(around.gpus)[: len(words)]
    usable: list[int] = []
    for word in words:
        if not word.isdecimal() or int(word) >= len(around.gpus) or around.gpus[int(word)] in usable:
            break
        usable.append(around.gpus[int(word)])
    return usable


def _address(needs: Needs, around: Surroundings) -> Iterator[Observation]:
    """gloo listens where the host's name leads, unless it is told an interface."""
    if needs.nodes < 2 or around.environment.get("GLOO_SOCKET_IFNAME"):
        return
    advice = f"set GLOO_SOCKET_IFNAME to the interface that reaches the other nodes ({_list(around.interfaces)})"
    if not around.addresses:
        message = f'the hostname "{around.host}" does not resolve, and GLOO_SOCKET_IFNAME is unset: gloo has no address'
        yield Observation("hostname", "error", around.host, message, advice)
    elif not around.own_addresses:
        message = (
            f'the hostname "{around.host}" resolves to {_list(around.elsewhere)}, which no interface of this host has, '
            "and GLOO_SOCKET_IFNAME is unset: gloo would listen on loopback, and the nodes cannot meet"
        )
        yield Observation("hostname", "error", around.host, message, advice)
    elif ipaddress.ip_address(around.own_addresses[0]).is_loopback:
        message = (
            f'the hostname "{around.host}" resolves to {around.own_addresses[0]} and GLOO_SOCKET_IFNAME is unset: '
            "gloo would listen on loopback, and the nodes cannot meet"
        )
        yield Observation("hostname", "error", around.host, message, advice)


def _gloo_names(around: Surroundings) -> Iterator[Observation]:
    names = around.environment.get("GLOO_SOCKET_IFNAME", "")
    if not names:
        return
    said = f"GLOO_SOCKET_IFNAME={names}"
    advice = f"name one of {_list(around.interfaces)}"
    if names[0] in "^=":
        sign = "exclusion" if names[0] == "^" else "sign for exact names"
        message = f"{said}: gloo knows no {sign} (NCCL does), and takes it as a part of the name"
        yield Observation("gloo-interface", "error", around.host, message, advice)
        return
    absent = [name for name in names.split(",") if name not in around.interfaces]
    if absent:
        message = f"{said}: there is no interface {_list(absent)}, and gloo wants all of them, by their exact names"
        yield Observation("gloo-interface", "error", around.host, message, advice)


def _nccl_names(needs: Needs, around: Surroundings) -> Iterator[Observation]:
    names = around.variable("NCCL_SOCKET_IFNAME") or ""
    if names and not chosen(names, around.interfaces):
        severity: Weight = "error" if needs.ranks > 1 else "note"
        message = f"NCCL_SOCKET_IFNAME={names} leaves NCCL none of the interfaces {_list(around.interfaces)}"
        advice = "name a prefix of an interface, =NAME for an exact name, ^NAME to leave one out"
        yield Observation("nccl-interface", severity, around.host, message, advice)
    devices = tuple(dict.fromkeys(port.device for port in around.ports))
    adapters = around.variable("NCCL_IB_HCA") or ""
    if adapters and devices and not chosen(adapters, devices):
        message = f"NCCL_IB_HCA={adapters} leaves NCCL none of the RDMA devices {_list(devices)}: it will use TCP"
        yield Observation("nccl-adapter", "warning", around.host, message, f"name one of {_list(devices)}")


def chosen(pattern: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that NCCL takes by a pattern such as `eth,ib`, `=eth0` or `^docker,lo`."""
    without = pattern.startswith("^")
    rest = pattern.removeprefix("^")
    exact = rest.startswith("=")
    words = [word.partition(":")[0] for word in rest.removeprefix("=").split(",") if word]
    return tuple(
        name for name in names if any(name == word if exact else name.startswith(word) for word in words) != without
    )


def _shared_memory(needs: Needs, around: Surroundings) -> Iterator[Observation]:
    free = around.shared_memory_free
    if needs.ranks_here < 2 or (free is not None and free >= ENOUGH_SHARED_MEMORY):
        return
    has = "there is no /dev/shm" if free is None else f"/dev/shm has {free // MIB} MiB free"
    tight = free is not None and free >= SEGMENT_BYTES
    severity: Weight = "warning" if tight or not around.gpus else "error"
    message = f"{has}: vLLM makes a segment of {SEGMENT_BYTES // MIB} MiB there for each rank" + (
        ", and NCCL its buffers" if tight else " and stops where there is less room"
    )
    advice = "in a pod, an emptyDir of medium Memory at /dev/shm; docker run --shm-size=10g or --ipc=host"
    yield Observation("shared-memory", severity, around.host, message, advice)


def _rdma(needs: Needs, around: Surroundings) -> Iterator[Observation]:
    """Only between nodes; a machine without RDMA devices is meant to go by TCP."""
    if needs.nodes < 2 or not around.ports:
        return
    rates = _list(dict.fromkeys(f"{port.device} {port.rate}".strip() for port in around.ports))
    if not around.rdma_usable:
        message = f"the machine has RDMA ({rates}), and there is no /dev/infiniband here: NCCL will use TCP silently"
        advice = "give the container the devices: a resource of the RDMA device plugin, or --device /dev/infiniband"
        yield Observation("rdma", "warning", around.host, message, advice)
    elif around.locked_memory is not None:
        message = f"{around.locked_memory // 1024} KiB of memory can be locked: RDMA cannot register NCCL's buffers"
        advice = "securityContext.capabilities.add: [IPC_LOCK], or docker run --ulimit memlock=-1"
        yield Observation("locked-memory", "warning", around.host, message, advice)
    down = [port.device for port in around.ports if "ACTIVE" not in port.state]
    if down and len(down) < len(around.ports):
        message = f"RDMA ports that are not active: {_list(down)}"
        yield Observation("rdma-port", "warning", around.host, message, "have the cable and the switch looked at")


def _limits(needs: Needs, around: Surroundings) -> Iterator[Observation]:
    wanted = OPEN_FILES + OPEN_FILES_PER_RANK * needs.ranks
    if around.open_files is not None and around.open_files < wanted:
        message = f"a process may open {around.open_files} files, and a full mesh of {needs.ranks} ranks wants {wanted}"
        yield Observation("open-files", "warning", around.host, message, "ulimit -n 65536")


def _leftovers(around: Surroundings) -> Iterator[Observation]:
    """Settings that somebody tried while looking for a fault, and that cost speed ever since."""
    for settings, where in ((around.environment, ""), (_only(around), " in NCCL's settings file")):
        for name, effect in LEFTOVERS.items():
            value = settings.get(name, "")
            if value.upper() not in OFF:
                message = f"{name}={value} is set{where}: a leftover? {effect}"
                yield Observation("leftover", "warning", around.host, message, f"unset {name}, or say why it is needed")
        if settings.get("NCCL_DEBUG", "").upper() in LOUD:
            message = f"NCCL_DEBUG={settings['NCCL_DEBUG']} is set{where}: NCCL writes lines for every call"
            yield Observation("leftover", "warning", around.host, message, "NCCL_DEBUG=WARN")


def _only(around: Surroundings) -> Mapping[str, str]:
    """What NCCL's file says and the environment does not."""
    return {name: value for name, value in around.nccl_settings.items() if name not in around.environment}


def _numbers(numbers: Sequence[int]) -> str:
    return f"{'index' if len(numbers) == 1 else 'indices'} {_list(map(str, numbers))}"


def _list(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"
