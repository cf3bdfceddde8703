"""A language model with a tower beside it: what families of that kind have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardlint.architectures.families.decoders import Family
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.rows import Row, Rows, Unlike

VisionTower = Callable[[Model, Part], Sequence[Row]]
UnlikeTower = Callable[[Model, Part], tuple[Unlike, ...]]
Renames = tuple[tuple[str, str], ...]

LANGUAGE_MODEL = "language_model."
"""What vLLM puts before the names of the language model."""


class WithTower:
    """A family with the tower that `vision_config` describes; `renames` as in `Rows`.

    `unlike` says what the checkpoint's tower has that the engine does not build.  With `deepstack` the class hands
    images to the first layers too, and wants these on one stage.
    """

    def __init__(
        self,
        text: Family,
        tower: VisionTower,
        renames: Renames = (),
        unlike: UnlikeTower | None = None,
        *,
        deepstack: bool = False,
    ) -> None:
        self.text = text
        self.tower = tower
        self.renames = renames
        self.unlike = unlike
        self.deepstack = deepstack

    def __call__(self, model: Model) -> Rows:
        vision = Part(model.geometry, "vision_config")
        if not vision.is_known:
            raise Missing(f"the config of {model.geometry.model_id} does not tell vision_config")
        rows = self.text(model)
        language = (row._replace(name=LANGUAGE_MODEL + row.name) for row in rows.weights)
        weights = (*self.tower(model, vision), *language)
        unlike = self.unlike(model, vision) if self.unlike else ()
        return rows._replace(
            weights=weights,
            renames=self.renames,
            unlike_checkpoint=(*rows.unlike_checkpoint, *unlike),
            first_stage_layers=deepstack_layers(vision) if self.deepstack else 0,
        )


QWEN3_VL_DEEPSTACK = (8, 16, 24)
"""What Qwen3-VL's config class takes where the key is absent."""


def deepstack_layers(vision: Part) -> int:
    """Layers of a tower whose output goes to the language model past the others."""
    is_qwen3_vl = str(vision.odd("model_type", "")).startswith("qwen3_vl")
    indexes = vision.odd("deepstack_visual_indexes", QWEN3_VL_DEEPSTACK if is_qwen3_vl else ())
    return len(indexes) if isinstance(indexes, (list, tuple)) else 0
