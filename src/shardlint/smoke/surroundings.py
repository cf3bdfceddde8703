"""What this host offers to the ranks of a server, read in a few milliseconds and without torch."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import socket
from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any, NamedTuple, Self

from shardlint.smoke.shapes import checked

PREFIXES = ("NCCL_", "GLOO_", "VLLM_", "CUDA_", "TORCH_", "UCX_", "NVSHMEM_")
"""Variables that decide how ranks talk to each other; those of a user's own are nobody's business."""

SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|AUTH|CREDENTIAL")
IN_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")
"""The user and password of an address."""

NCCL_SETTINGS = "/etc/nccl.conf"
IPC_LOCK = 14
"""The bit of CAP_IPC_LOCK, capability.h."""
ADDRESS_OF_INTERFACE = 0x8915
"""SIOCGIFADDR, sockios.h: it fills the second half of a struct ifreq, whose first 16 bytes are the interface's name."""
GLOBAL = "00"
"""The scope of an IPv6 address that other hosts can use, /proc/net/if_inet6."""


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
    elsewhere: tuple[str, ...] = ()
    """Those of them at which nothing can listen here: they are another host's."""
    interfaces: Mapping[str, str] = {}
    """The address of each interface, of IPv4 where it has one; empty where it has none that other hosts could use."""
    shared_memory_free: int | None = None
    """Bytes of /dev/shm; None where there is none."""
    gpus: tuple[int, ...] = ()
    """The numbers of /dev/nvidiaN."""
    gpu_models: tuple[str, ...] = ()
    """Of all that the driver shows, `NVIDIA H200`, in the order of their buses."""
    driver: str = ""
    """The version of NVIDIA's."""
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
    kernel: str = ""
    """Its release."""
    machine: str = ""
    """The kernel's boot id: two containers of one machine have the same."""
    memory_domain: str = ""
    """What /dev/shm and the IPC namespace are: processes of one can share memory."""
    network: str = ""
    """The network namespace."""

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` takes it back."""
        return {**self._asdict(), "ports": [port._asdict() for port in self.ports]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """From what `to_json` gave, after a way through JSON. Raises TypeError for what is none."""
        tuples = {name: tuple(value) for name, value in data.items() if isinstance(value, list)}
        ports = tuple(Port(**port) for port in data.get("ports", ()))
        return checked(cls(**{**data, **tuples, "ports": ports}))

    @property
    def own_addresses(self) -> tuple[str, ...]:
        """What the host's own name resolves to, and is its own."""
        return tuple(address for address in self.addresses if address not in self.elsewhere)

    def variable(self, name: str) -> str | None:
        """A setting of NCCL or gloo, as NCCL looks for it: the environment wins over the file."""
        return self.environment.get(name, self.nccl_settings.get(name))


def read(environment: Mapping[str, str]) -> Surroundings:
    """The host that this process runs on."""
    host = socket.gethostname()
    addresses = _addresses(host)
    return Surroundings(
        host=host,
        addresses=addresses,
        elsewhere=tuple(address for address in addresses if not _can_listen(address)),
        interfaces=_interfaces(),
        shared_memory_free=_free("/dev/shm"),
        gpus=_gpus(),
        gpu_models=tuple(_gpu_models()),
        driver=_text(Path("/sys/module/nvidia/version")),
        ports=tuple(_ports()),
        rdma_usable=Path("/dev/infiniband").is_dir(),
        locked_memory=_locked_memory(),
        open_files=_limit(resource.RLIMIT_NOFILE),
        environment={
            name: IN_URL.sub("...", value)
            for name, value in environment.items()
            if name.startswith(PREFIXES) and not SECRET.search(name)
        },
        nccl_settings=_settings(environment.get("NCCL_CONF_FILE", NCCL_SETTINGS)),
        kernel=os.uname().release,
        machine=_text(Path("/proc/sys/kernel/random/boot_id")),
        memory_domain=_memory_domain(),
        network=_namespace("net"),
    )


def _addresses(host: str) -> tuple[str, ...]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # the latter where a label has 64 characters, which Linux takes for a hostname
        return ()
    return tuple(dict.fromkeys(str(address[4][0]) for address in found))


def _can_listen(address: str) -> bool:
    try:
        family, *_rest, where = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as listening:
            listening.bind(where)
    except OSError:
        return False
    return True


def _interfaces() -> dict[str, str]:
    """By the kernel's numbers, which is the order in which gloo and NCCL look at them."""
    lines = (line.split() for line in _text(Path("/proc/net/if_inet6")).splitlines())
    of_ipv6 = {name: number for number, _index, _prefix, scope, _flags, name in lines if scope == GLOBAL}
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _index, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(asking, ADDRESS_OF_INTERFACE, name.encode().ljust(40, b"\0"))
                found[name] = socket.inet_ntoa(answer[20:24])
            except OSError:  # it has none, or this is not Linux
                found[name] = str(IPv6Address(int(of_ipv6[name], 16))) if name in of_ipv6 else ""
    return found


def _free(path: str) -> int | None:
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _gpus() -> tuple[int, ...]:
    numbers = (re.fullmatch(r"nvidia(\d+)", file.name) for file in Path("/dev").glob("nvidia*"))
    return tuple(sorted(int(number[1]) for number in numbers if number))


def _gpu_models() -> Iterator[str]:
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        if model := re.search(r"^Model:\s*(.+)$", _text(file), re.MULTILINE):
            yield model[1]


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
