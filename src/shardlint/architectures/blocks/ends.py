"""What stands before the first layer and after the last: embedding, final norm, output head."""

from __future__ import annotations

from shardlint.architectures.model import Model
from shardlint.architectures.rows import Extent, Row, Stage


def ends(
    model: Model, *, on_every_stage: bool = False, norm_bias: bool = False, head_bias: bool = False
) -> tuple[Row, ...]:
    """Embedding, final norm and output head.

    With tied embeddings there is no output head, and the last stage holds the embedding too.  Some classes build
    all three on every pipeline stage (`on_every_stage`), needed there or not.
    """
    norm_stage: Stage = "each" if on_every_stage else "last"
    embedding_stage: Stage = "each" if on_every_stage else "ends" if model.tied_embeddings else "first"
    vocabulary, hidden = Extent(model.vocabulary, "vocabulary"), Extent(model.hidden_size)
    rows = (
        Row("model.embed_tokens", (vocabulary,), hidden, stage=embedding_stage, quantisable=False),
        Row("model.norm", (hidden,), bias=norm_bias, stage=norm_stage, quantisable=False),
    )
    if model.tied_embeddings:
        return rows
    return (*rows, Row("lm_head", (vocabulary,), hidden, head_bias, stage=norm_stage))
