"""What the ranks of a layout send each other in one forward step: which collectives, how many, how large.

The places are those of vLLM 0.33.0: a row-parallel weight ends in an all-reduce over the tensor parallel group
(`model_executor/layers/linear.py`), experts that are spread over data parallel ranks gather the tokens of all and
scatter the sums (`distributed/device_communicators/all2all.py`, the default backend), a stage sends the next one
`hidden_states` and `residual`, and the last one gathers the logits of the tokens that are sampled.  Counted are the
sub-blocks of a layer that hold a cut weight, so a class that adds two of them up before one all-reduce (Falcon with
parallel attention) counts one too many.  Routing weights, metadata and the exchanges of decode context parallelism
are small beside these and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from shardlint.architectures.rows import Row, Rows
from shardlint.findings.records import NamedTuple
from shardlint.layout.ranks import GroupKind
from shardlint.layout.sizes import Sizes
from shardlint.layout.stages import Layers

Operation = Literal["all-reduce", "all-gather", "reduce-scatter", "send"]
Purpose = Literal["layer", "embedding", "dispatch", "combine", "sequence", "boundary", "logits"]

BOUNDARY_TENSORS = 2
"""`hidden_states` and `residual`."""
VOCABULARY_PADS_TO = 64


class Collective(NamedTuple):
    """One kind of exchange: what each group of `group` does `count` times a step in pipeline stage `stage`.

    A message has `elements` elements for every token of the step, or for every sequence where it is `per_sequence`,
    in `tensors` tensors.
    """

    operation: Operation
    group: GroupKind
    purpose: Purpose
    stage: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks of a collective
    elements: int
    tensors: int = 1
    per_sequence: bool = False

    def message_bytes(self, tokens: int, sequences: int, element_bytes: int) -> int:
        """Bytes of one message in a step of `tokens` tokens for `sequences` sequences."""
        return self.elements * self.tensors * element_bytes * (sequences if self.per_sequence else tokens)


def collectives(
    sizes: Sizes, rows: Rows, stages: tuple[Layers, ...], hidden_size: int, vocab_size: int | None = None
) -> tuple[Collective, ...]:
    """All exchanges of a step, stage by stage; none for groups of one rank."""
    return tuple(
        collective
        for number, layers in enumerate(stages)
        for collective in _of_stage(sizes, rows, number, layers, hidden_size, vocab_size)
    )


def _of_stage(
    sizes: Sizes, rows: Rows, number: int, layers: Layers, hidden_size: int, vocab_size: int | None
) -> Iterator[Collective]:
    cut = sizes.tensor_parallel_size > 1
    whole_sums, expert_sums = _sums(rows, layers)
    shared_out = sizes.sequence_parallel_experts  # each rank of a tensor parallel group then has its own tokens
    reduced = whole_sums if shared_out else whole_sums + expert_sums
    if cut and number == 0:
        yield Collective("all-reduce", "tp", "embedding", number, 1, hidden_size)
    if cut and reduced:
        yield Collective("all-reduce", "tp", "layer", number, reduced, hidden_size)
    if sizes.data_parallel_size > 1 and expert_sums:
        group: GroupKind = "ep" if shared_out else "dp"
        yield Collective("all-gather", group, "dispatch", number, expert_sums, hidden_size)
        yield Collective("reduce-scatter", group, "combine", number, expert_sums, hidden_size)
        if shared_out:
            yield Collective("all-gather", "tp", "sequence", number, expert_sums, hidden_size)
    if number < sizes.pipeline_parallel_size - 1:
        yield Collective("send", "pp", "boundary", number, 1, hidden_size, BOUNDARY_TENSORS)
    elif cut and vocab_size is not None:
        padded = -(-vocab_size // VOCABULARY_PADS_TO) * VOCABULARY_PADS_TO
        yield Collective("all-gather", "tp", "logits", number, 1, padded, per_sequence=True)


def _sums(rows: Rows, stage: Layers) -> tuple[int, int]:
    """How often a token's vector is added up over ranks in a stage: after sub-blocks without experts, and with them.

    A sub-block is what a layer's modules lie in (`self_attn`, `mlp`); shared experts lie in that of the others.
    """
    summed: set[tuple[str, int]] = set()
    with_experts: set[tuple[str, int]] = set()
    for row in rows.weights:
        if row.stage == "layer" and row.tower == "none" and _is_summed(row):
            block = row.name.partition("#.")[2].partition(".")[0]
            held = {(block, layer) for layer in row.layers if stage.start <= layer < stage.stop}
            summed |= held
            if row.experts.count > 1:
                with_experts |= held
    return len(summed - with_experts), len(with_experts)


def _is_summed(row: Row) -> bool:
    """Whether each rank has a part of the sum: of the contraction, or of the experts."""
    return row.contraction.piece != "whole" or row.experts.count > 1
