"""A language model with a tower beside it: what families of that kind have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardlint.architectures.families.decoders import Family
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.rows import Row, Rows

VisionTower = Callable[[Model, Part], Sequence[Row]]
Renames = tuple[tuple[str, str], ...]

LANGUAGE_MODEL = "language_model."
"""What vLLM puts before the names of the language model."""


class WithTower:
    """A family with the tower that `vision_config` describes; `renames` as in `Rows`."""

    def __init__(self, text: Family, tower: VisionTower, renames: Renames = ()) -> None:
        self.text = text
        self.tower = tower
        self.renames = renames

    def __call__(self, model: Model) -> Rows:
        vision = Part(model.geometry, "vision_config")
        if not vision.is_known:
            raise Missing(f"the config of {model.geometry.model_id} does not tell vision_config")
        rows = self.text(model)
        language = (row._replace(name=LANGUAGE_MODEL + row.name) for row in rows.weights)
        return rows._replace(weights=(*self.tower(model, vision), *language), renames=self.renames)
