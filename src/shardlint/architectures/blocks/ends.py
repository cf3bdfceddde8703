"""What stands before the first layer and after the last: embedding, final norm, output head."""

from __future__ import annotations

from shardlint.architectures.model import Model
from shardlint.architectures.rows import Extent, Row, Stage
from shardlint.findings.records import NamedTuple


class EndStages(NamedTuple):
    """The pipeline stages that build embedding, output head and final norm."""

    embedding: Stage
    head: Stage
    norm: Stage


EACH_STAGE = EndStages("each", "each", "each")


def ends(
    model: Model,
    *,
    on_every_stage: bool = False,
    stages: EndStages | None = None,
    norm_name: str = "model.norm",
    norm_bias: bool = False,
    head_bias: bool = False,
    tied: bool | None = None,
) -> tuple[Row, ...]:
    """Embedding, final norm and output head.

    With tied embeddings there is no output head, and the last stage holds the embedding too.  Some classes build
    all three on every pipeline stage (`on_every_stage`), needed there or not, and some only one or two (`stages`).
    `tied` is what the class makes of it where it does not ask the config.
    """
    tied = model.tied_embeddings if tied is None else tied
    if stages is None:
        first = EndStages("ends" if tied else "first", "last", "last")
        stages = EACH_STAGE if on_every_stage else first
    vocabulary, hidden = Extent(model.vocabulary, "vocabulary"), Extent(model.hidden_size)
    rows = (
        Row("model.embed_tokens", (vocabulary,), hidden, stage=stages.embedding, quantisable=False),
        Row(norm_name, (hidden,), bias=norm_bias, stage=stages.norm, quantisable=False),
    )
    if tied:
        return rows
    return (*rows, Row("lm_head", (vocabulary,), hidden, head_bias, stage=stages.head))
