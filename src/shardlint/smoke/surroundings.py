"""What this host offers to the ranks of a server, read in a few milliseconds and without torch."""

from __future__ import annotations

import os
import re
import resource
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PREFIXES = ("NCCL_", "GLOO_", "VLLM_", "CUDA_", "TORCH_", "UCX_", "NVSHMEM_")
"""Variables that decide how ranks talk to each other; those of a user's own are nobody's business."""

SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")
NCCL_SETTINGS = "/etc/nccl.conf"
IPC_LOCK = 14
"""The bit of CAP_IPC_LOCK, capability.h."""


class Port(NamedTuple):
    """A port of an RDMA device: `mlx5_0`, `4: ACTIVE`, `400 Gb/sec (4X NDR)`."""

    device: str
    state: str
    rate: str


class Surroundings(NamedTuple):
    """One host (or container) as its processes see it."""

    host: str
    addresses: tuple[str, ...] = ()
    """What the host's own name resolves to; none where it does not."""
    interfaces: tuple[str, ...] = ()
    shared_memory_free: int | None = None
    """Bytes of /dev/shm; None where there is none."""
    gpus: tuple[int, ...] = ()
    """The numbers of /dev/nvidiaN."""
    ports: tuple[Port, ...] = ()
    """Of the machine's RDMA devices, which a container sees in /sys whether it may use them or not."""
    rdma_usable: bool = False
    """There is /dev/infiniband."""
    locked_memory: int | None = None
    """Bytes that a process may lock; None where nothing bounds it."""
    open_files: int | None = None
    environment: Mapping[str, str] = {}
    """Of the variables with PREFIXES, secrets left out."""
    nccl_settings: Mapping[str, str] = {}
    """Of the file that NCCL reads."""
    machine: str = ""
    """The kernel's boot id: two containers of one machine have the same."""
    memory_domain: str = ""
    """What /dev/shm and the IPC namespace are: processes of one can share memory."""
    network: str = ""
    """The network namespace."""

    def variable(self, name: str) -> str | None:
        """A setting of NCCL or gloo, as NCCL looks for it: the environment wins over the file."""
        return self.environment.get(name, self.nccl_settings.get(name))


def read(environment: Mapping[str, str]) -> Surroundings:
    """The host that this process runs on."""
    host = socket.gethostname()
    return Surroundings(
        host=host,
        addresses=_addresses(host),
        interfaces=tuple(name for _index, name in socket.if_nameindex()),
        shared_memory_free=_free("/dev/shm"),
        gpus=_gpus(),
        ports=tuple(_ports()),
        rdma_usable=Path("/dev/infiniband").is_dir(),
        locked_memory=_locked_memory(),
        open_files=_limit(resource.RLIMIT_NOFILE),
        environment={
            name: value for name, value in environment.items() if name.startswith(PREFIXES) and not SECRET.search(name)
        },
        nccl_settings=_settings(environment.get("NCCL_CONF_FILE", NCCL_SETTINGS)),
        machine=_text(Path("/proc/sys/kernel/random/boot_id")),
        memory_domain=_memory_domain(),
        network=_namespace("net"),
    )


def _addresses(host: str) -> tuple[str, ...]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple(dict.fromkeys(str(address[4][0]) for address in found))


def _free(path: str) -> int | None:
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _gpus() -> tuple[int, ...]:
    numbers = (re.fullmatch(r"nvidia(\d+)", file.name) for file in Path("/dev").glob("nvidia*"))
    return tuple(sorted(int(number[1]) for number in numbers if number))


def _ports() -> list[Port]:
    folders = sorted(Path("/sys/class/infiniband").glob("*/ports/*"))
    return [Port(at.parents[1].name, _text(at / "state"), _text(at / "rate")) for at in folders]


def _locked_memory() -> int | None:
    """Nothing bounds a process that has CAP_IPC_LOCK."""
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)$", _text(Path("/proc/self/status")), re.MULTILINE)
    if capabilities and int(capabilities[1], 16) >> IPC_LOCK & 1:
        return None
    return _limit(resource.RLIMIT_MEMLOCK)


def _limit(which: int) -> int | None:
    soft, _hard = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _settings(path: str) -> dict[str, str]:
    lines = (line.partition("#")[0].partition("=") for line in _text(Path(path)).splitlines())
    return {name.strip(): value.strip() for name, equals, value in lines if equals}


def _memory_domain() -> str:
    try:
        return f"{_namespace('ipc')} {Path('/dev/shm').stat().st_dev}"
    except OSError:
        return ""


def _namespace(kind: str) -> str:
    try:
        return str(Path(f"/proc/self/ns/{kind}").readlink())
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
