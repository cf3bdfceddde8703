"""GPUs and the machines that hold them: rows of `data/`, and what a user says of the hardware."""

from __future__ import annotations

from shardlint.findings.records import NamedTuple


class Accelerator(NamedTuple):
    """One kind of device as an engine addresses it. None stands for what is unknown."""

    id: str
    name: str
    vendor: str
    memory_bytes: int | None
    """What the driver reports in total, not the marketing figure; of an unknown card what the user said."""
    link: str | None
    """`nvlink`, `xgmi`, `roce`, `ici`, `pcie`, or `none` for one device without any."""
    link_gb_per_second: float | None
    """10^9 bytes a second of one device, both directions together."""
    compute_capability: str | None
    """`9.0`, `gfx942`; None where the vendor has no such number."""
    link_domain: int | None = None
    """The most devices that the fast link joins; 1 where there is only PCIe."""
    memory_gb: float | None = None
    """The marketing figure, by which people name the variant."""
    memory_bandwidth_gb_per_second: float | None = None
    bf16_native: bool | None = None
    fp8: bool | None = None
    fp4: bool | None = None
    notes: str = ""
    source: str = ""
    """Where the numbers come from, in words."""


class Machine(NamedTuple):
    """One kind of cloud machine."""

    name: str
    cloud: str
    gpu: str
    """The accelerator's id; `uncovered/...` for cards that no engine here runs on."""
    gpus: int | None
    """Whole devices; None where nobody says, 0 where the machine has a fraction of one (`gpu_fraction`)."""
    link: str | None = None
    link_domain: int | None = None
    """The most devices that the fast link joins: 8 on a board, 72 in a rack, 1 without one."""
    host_memory_gib: float | None = None
    network_gbit_per_second: float | None = None
    gpu_fraction: float | None = None
    notes: str = ""
    source: str = ""


class Node(NamedTuple):
    """One host: so many devices of each kind."""

    cards: tuple[tuple[int, Accelerator], ...]

    @property
    def gpus(self) -> int:
        """Devices of the host."""
        return sum(count for count, _ in self.cards)

    @property
    def smallest(self) -> Accelerator | None:
        """The device with the least memory, which decides for all; None where one of them is unknown."""
        cards = [card for _, card in self.cards]
        if any(card.memory_bytes is None for card in cards):
            return None
        return min(cards, key=lambda card: card.memory_bytes or 0)


class Hardware(NamedTuple):
    """All hosts that the user has."""

    nodes: tuple[Node, ...]
    spelled: str = ""

    @property
    def gpus(self) -> int:
        """Devices of all hosts."""
        return sum(node.gpus for node in self.nodes)
