"""What is true outside the manifest: model geometry, GPUs and machines.

Each name is imported on first use: a run that asks for no model does not pay for models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardlint.facts.geometry import Geometry
    from shardlint.facts.hardware import Accelerator, Machine
    from shardlint.facts.models import geometry_of

__all__ = ["Accelerator", "Geometry", "Machine", "geometry_of"]

_HOLDERS = {"Accelerator": "hardware", "Geometry": "geometry", "Machine": "hardware", "geometry_of": "models"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOLDERS:
        raise AttributeError(f"module 'shardlint.facts' has no attribute {name!r}")
    return getattr(import_module(f"shardlint.facts.{_HOLDERS[name]}"), name)
