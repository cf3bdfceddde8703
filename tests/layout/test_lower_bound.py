"""The least that weights take."""

from __future__ import annotations

from typing import Any

import pytest
from layout_models import LLAMA_8B, MIXTRAL, VLLM, geometry

from shardlint.facts import Geometry
from shardlint.facts.geometry import read
from shardlint.findings import Unknown
from shardlint.layout import LowerBound, Sizes, lay_out, weights_at_least

NEW = {"architectures": ["NewForCausalLM"]}
AWQ = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}}
INCOMPLETE_AWQ = {"quantization_config": {"quant_method": "awq", "bits": 4}}


def bound(sizes: Sizes, model: Geometry | Unknown, **options: Any) -> LowerBound | Unknown:
    return weights_at_least(lay_out(sizes, model, VLLM), model, VLLM, **options)


def known_bound(sizes: Sizes, model: Geometry) -> LowerBound:
    found = bound(sizes, model)
    assert isinstance(found, LowerBound)
    return found


def test_described_rows_give_the_bytes_themselves() -> None:
    found = known_bound(Sizes(2, 2, 2), geometry(LLAMA_8B))
    ranks = lay_out(Sizes(2, 2, 2), geometry(LLAMA_8B), VLLM).ranks
    assert found.exact
    assert found.fullest_rank_bytes == max(rank.weight_bytes or 0 for rank in ranks)
    assert found.replica_bytes == sum(rank.weight_bytes or 0 for rank in ranks[:4])


def test_a_packed_checkpoint_takes_at_least_its_bits() -> None:
    packed, plain = (known_bound(Sizes(), geometry(LLAMA_8B | more)) for more in (INCOMPLETE_AWQ, {}))
    assert packed.basis == "the rows at 4 bits an element"
    assert not packed.exact
    assert plain.replica_bytes / 4 < packed.replica_bytes < plain.replica_bytes / 2


@pytest.mark.parametrize(
    ("quantisation", "bits"),
    [
        ({"quant_method": "fbgemm_fp8"}, 8),
        ({"quant_method": "gptq", "bits": 8}, 8),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4),
        ({"quant_method": "modelopt", "quant_algo": "NVFP3"}, 4),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4}}}}, 4),
    ],
)
def test_each_method_that_is_not_described_has_its_fewest_bits(quantisation: dict[str, Any], bits: int) -> None:
    found = known_bound(Sizes(), geometry(LLAMA_8B, quantization_config=quantisation))
    assert found.basis == f"the rows at {bits} bits an element"


@pytest.mark.parametrize(
    "quantisation", [{"quant_method": "new"}, {"quant_method": "gptq", "bits": "many"}, {"quant_method": "gptq"}]
)
def test_a_method_that_does_not_tell_its_bits_is_not_guessed(quantisation: dict[str, Any]) -> None:
    assert isinstance(bound(Sizes(), geometry(LLAMA_8B, quantization_config=quantisation)), Unknown)


def test_the_published_size_of_a_checkpoint_stands_for_rows() -> None:
    index = {"model.safetensors.index.json": {"metadata": {"total_size": 100_000}}}
    dense = read(LLAMA_8B | NEW | AWQ, "a/model", index)
    assert known_bound(Sizes(4, data_parallel_size=2), dense) == LowerBound(
        96_000, 24_000, "the size of the checkpoint"
    )
    experts = read(MIXTRAL | NEW, "a/model", index)
    assert known_bound(Sizes(4, data_parallel_size=2), experts).fullest_rank_bytes == 12_000
    single = read(LLAMA_8B | NEW | {"torch_dtype": "float32"}, "a/model", index)
    assert known_bound(Sizes(), single).replica_bytes == 48_000


def test_the_matrices_of_an_undescribed_decoder_are_fewer_than_its_rows() -> None:
    least, whole = known_bound(Sizes(2), geometry(LLAMA_8B | NEW)), known_bound(Sizes(2), geometry(LLAMA_8B))
    assert whole.fullest_rank_bytes / 2 < least.fullest_rank_bytes < whole.fullest_rank_bytes


def test_the_experts_of_an_undescribed_mixture_count_from_its_first_sparse_layer() -> None:
    mixture = LLAMA_8B | NEW | {"n_routed_experts": 64, "moe_intermediate_size": 1024, "first_k_dense_replace": 2}
    plain = known_bound(Sizes(8, data_parallel_size=2), geometry(mixture))
    total = 2 * 4096 * (128256 + 30 * 64 * 3 * 1024)
    assert plain.fullest_rank_bytes == total // 16
    packed = known_bound(Sizes(), geometry(mixture, quantization_config={"quant_method": "fp8"}))
    assert packed.replica_bytes == 4096 * (2 * 128256 + 30 * 64 * 3 * 1024)


@pytest.mark.parametrize(
    "odd", [{"layer_types": ["linear_attention"] * 32}, {"hybrid_override_pattern": "M*"}, {"num_local_experts": 4}]
)
def test_where_layers_differ_no_matrix_is_counted_on(odd: dict[str, Any]) -> None:
    found = bound(Sizes(), geometry(LLAMA_8B | NEW | odd))
    assert isinstance(found, Unknown)
    assert found.settle_by == "model.safetensors.index.json beside config.json"


def test_quantising_while_loading_leaves_the_bytes_unknown() -> None:
    found = bound(Sizes(), geometry(LLAMA_8B), quantization="fp8")
    assert found == Unknown("--quantization fp8 packs the weights while they are loaded")
    assert isinstance(bound(Sizes(), geometry(LLAMA_8B | AWQ), quantization="awq"), LowerBound)


@pytest.mark.parametrize("sizes", [Sizes(0), Sizes(10**9), Sizes(3)])
def test_a_layout_without_figures_has_no_exact_bound(sizes: Sizes) -> None:
    found = bound(sizes, geometry(LLAMA_8B))
    assert isinstance(found, Unknown) or not found.exact
    assert bound(sizes, Unknown("no such model")) == Unknown("no such model")
