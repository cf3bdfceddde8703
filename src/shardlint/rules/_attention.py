"""Over how many ranks an engine cuts the heads of attention."""

from __future__ import annotations

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.findings import Located


def attention_ranks(told: Told, engine: Engine, tensor_parallel_size: Located[int]) -> int:
    """All tensor parallel ranks, or with SGLang's data parallel attention those of one of its groups."""
    size = tensor_parallel_size.value
    groups = told.data_parallel_size if engine.name == "sglang" and told.enable_dp_attention else 1
    return size // groups if groups > 0 and size % groups == 0 else size


def in_words(ranks: int, tensor_parallel_size: Located[int]) -> str:
    """`the tensor parallel size 8`, `the 2 ranks of each group of data parallel attention`."""
    if ranks == tensor_parallel_size.value:
        return f"the tensor parallel size {ranks}"
    return f"the {ranks} ranks of each group of data parallel attention (TP {tensor_parallel_size.value})"
