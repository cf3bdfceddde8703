"""The numbers of the two documents that shardlint follows."""

from __future__ import annotations

import pytest
from layout_models import LLAMA_8B, LLAMA_70B, QWEN3_8B, VLLM, geometry

from shardlint.architectures import Row, rows_of
from shardlint.architectures.blocks.mlp import gated
from shardlint.layout import Division, Sizes, lay_out, legal_values, stage_layers

KIB = 1024


def elements(rows: tuple[Row, ...], tensor_parallel_size: int) -> int:
    division = Division.of(Sizes(tensor_parallel_size), VLLM)
    shares = [division.bits(row, 1) for row in rows]
    assert None not in shares
    return sum(share for share in shares if share is not None)


@pytest.mark.parametrize(("tensor_parallel_size", "weights"), [(1, 176_160_768), (2, 88_080_384)])
def test_an_mlp_of_4096_by_14336_is_halved_by_tp_2(tensor_parallel_size: int, weights: int) -> None:
    assert elements(gated("mlp", 4096, 14336, range(1)), tensor_parallel_size) == weights


@pytest.mark.parametrize(
    ("tensor_parallel_size", "kib_per_gpu", "kib_in_all"), [(1, 128, 128), (2, 64, 128), (8, 16, 128), (16, 16, 256)]
)
def test_kv_heads_are_split_and_then_replicated(tensor_parallel_size: int, kib_per_gpu: int, kib_in_all: int) -> None:
    layout = lay_out(Sizes(tensor_parallel_size), geometry(LLAMA_8B), VLLM)
    assert layout.refused is None
    assert [rank.kv_bytes_per_token_if_all_full for rank in layout.ranks] == [kib_per_gpu * KIB] * tensor_parallel_size
    assert sum(rank.kv_bytes(1) or 0 for rank in layout.ranks) == kib_in_all * KIB


def test_qwen3_8b_over_four_stages() -> None:
    layout = lay_out(Sizes(pipeline_parallel_size=4), geometry(QWEN3_8B), VLLM)
    assert [rank.layers for rank in layout.ranks] == [(0, 9), (9, 18), (18, 27), (27, 36)]


def test_80_layers_over_four_stages() -> None:
    assert stage_layers(80, 4) == ((0, 20), (20, 40), (40, 60), (60, 80))


@pytest.mark.parametrize("tensor_parallel_size", [3, 6])
def test_32_heads_do_not_divide(tensor_parallel_size: int) -> None:
    layout = lay_out(Sizes(tensor_parallel_size), geometry(LLAMA_8B), VLLM)
    assert layout.refused == f"32 query heads do not divide by {tensor_parallel_size}"
    assert legal_values(Sizes(), geometry(LLAMA_8B), VLLM).values("tensor_parallel_size") == (1, 2, 4, 8, 16, 32)


def test_a_70b_over_two_nodes_rank_by_rank() -> None:
    sizes = Sizes(tensor_parallel_size=8, pipeline_parallel_size=2, nnodes=2)
    layout = lay_out(sizes, geometry(LLAMA_70B), VLLM, gpus_per_node=8)
    assert [rank.node for rank in layout.ranks] == [0] * 8 + [1] * 8
    assert [rank.layers for rank in layout.ranks] == [(0, 40)] * 8 + [(40, 80)] * 8
    assert [rank.tensor_parallel_rank for rank in layout.ranks] == [*range(8), *range(8)]
    assert layout.groups("tp") == (tuple(range(8)), tuple(range(8, 16)))
    assert layout.crossing("tp") == ()
    assert len(layout.crossing("pp")) == 8


def test_the_first_stage_has_the_embedding_and_the_last_the_head() -> None:
    rows = rows_of(geometry(LLAMA_8B))
    ends = {row.name: row.stage for row in rows.weights if row.stage != "layer"}  # type: ignore[union-attr]
    assert ends == {"model.embed_tokens": "first", "model.norm": "last", "lm_head": "last"}
