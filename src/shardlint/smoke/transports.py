"""What NCCL says that it sends through, read from the log that it writes of each process.

A line is `host:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA`. Speed tells that a link is
slow; this tells why.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from shardlint.smoke.observations import Observation

LOGS = "nccl.*.log"
SETTINGS = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,P2P,SHM,NET", "NCCL_DEBUG_FILE": "nccl.%h.%p.log"}
"""What makes NCCL write them; the file is named inside of the run's folder."""

_VIA = re.compile(r"NCCL INFO Channel [^:]+: \S+ -> \S+ (?:\[\w+\] )?via (\S+)")
_SOCKET = "NET/Socket"
_SHARED_MEMORY = "SHM"


def transports(text: str) -> Counter[str]:
    """How many channels go through each transport, `NET/IB/GDRDMA`, the numbers of adapters left out."""
    return Counter("/".join(part for part in via.split("/") if not part.isdecimal()) for via in _VIA.findall(text))


def logged(folder: Path) -> Counter[str]:
    """The same of all logs of a folder: what the ranks of one node send through."""
    found: Counter[str] = Counter()
    for file in folder.glob(LOGS):
        found += transports(file.read_text(encoding="utf-8", errors="replace"))
    return found


def transport_observations(found: Counter[str], has_rdma: bool, host: str = "") -> Iterator[Observation]:
    """What a host's ranks send through, and where that is the slow way though a fast one is there."""
    if not found:
        return
    listed = ", ".join(f"{name} ({count} channels)" for name, count in found.most_common())
    yield Observation("transport", "note", host, f"NCCL sends through {listed}")
    if has_rdma and any(name.startswith(_SOCKET) for name in found):
        message = "NCCL sends through TCP sockets between nodes, though the machine has RDMA"
        advice = "look for /dev/infiniband, memory that can be locked and NCCL_IB_HCA in the container"
        yield Observation("fell-to-sockets", "warning", host, message, advice)
    if any(name.startswith(_SHARED_MEMORY) for name in found):
        message = "GPUs of one host send through the host's memory, not to each other"
        advice = "NVLink, or PCIe peer to peer, which IOMMU and ACS settings prevent; NCCL_P2P_DISABLE unset"
        yield Observation("fell-to-shared-memory", "warning", host, message, advice)
