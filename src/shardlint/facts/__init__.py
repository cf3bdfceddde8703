"""What is true outside the manifest: model geometry, GPUs and machines."""

from shardlint.facts.geometry import Geometry
from shardlint.facts.hardware import Accelerator, Machine
from shardlint.facts.models import geometry_of

__all__ = ["Accelerator", "Geometry", "Machine", "geometry_of"]
