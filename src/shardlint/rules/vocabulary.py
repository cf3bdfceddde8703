"""A padded vocabulary that does not divide by the tensor parallel size."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.layout import Legal
from shardlint.rules._words import named, tensor_advice


def applies(tensor_parallel_size: Located[int]) -> bool:
    return tensor_parallel_size.value > 1


def judge(
    vocab_size: Located[int],
    tensor_parallel_size: Located[int],
    engine: Engine,
    engine_version: Located[Version],
    told: Told,
    legal: Legal | None = None,
) -> Iterator[Problem]:
    if engine.name == "sglang" and told.enable_dp_attention:  # each of its ranks has the whole embedding
        return
    multiple = engine.cutting(str(engine_version.value))["vocabulary"].pads_to
    rows, tp = vocab_size.value, tensor_parallel_size.value
    padded = -(-rows // multiple) * multiple
    if padded % tp == 0:
        return
    padding = f", padded to {padded}," if padded != rows else ""
    yield Problem(
        at=tensor_parallel_size,
        message=f"the vocabulary of {rows} tokens{padding} does not divide by the tensor parallel size {tp}: "
        f"{named(engine, engine_version)} fails while it builds the embedding",
        sum=f"{rows} up to a multiple of {multiple} = {padded}; {padded} % {tp} = {padded % tp}",
        help=tensor_advice(legal, tensor_parallel_size),
        related=((vocab_size, f"{rows} tokens"),),
    )


RULE = Rule(
    "SL104", "vocabulary", "tp-vocab", "error", "fails-while-loading", judge, applies, engines=("vllm", "sglang")
)
