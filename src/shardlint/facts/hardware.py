"""GPUs and the machines that hold them: rows of `data/`, and the names that manifests use for them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One kind of card."""

    id: str
    name: str
    vendor: str
    memory_bytes: int
    link: str | None
    """`nvlink`, `nvlink-bridge`, `pcie`, `xgmi`, ... ; None where unknown."""
    link_gb_per_second: float | None
    compute_capability: str | None


@dataclass(frozen=True, slots=True)
class Machine:
    """One kind of cloud machine."""

    name: str
    cloud: str
    gpu: str
    gpus: int
