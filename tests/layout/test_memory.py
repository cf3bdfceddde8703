"""The sum of a GPU's memory: its terms as logs of vLLM print them, and what always holds of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layout_models import LLAMA_8B, LLAMA_70B, MIXTRAL, QWEN3_8B, VLLM

from shardlint.engines.versions import Version
from shardlint.facts import Accelerator, Geometry, accelerators
from shardlint.facts.geometry import read
from shardlint.findings import Unknown
from shardlint.layout import Sizes, lay_out
from shardlint.layout.memory import Memory, Options, longest, memory
from shardlint.layout.overheads import GIB, default_batch

H100 = accelerators.by_id("h100-sxm5-80gb")
MISTRAL = LLAMA_8B | {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "sliding_window": 4096,
    "vocab_size": 32000,
}
ALONE = Sizes()
OPTIONS = Options(Version((0, 19)), 0.95, 8192, 8192, 1024)


def of(config: dict[str, object], sizes: Sizes = ALONE, options: Options = OPTIONS) -> Memory:
    geometry = read(config)
    found = memory(lay_out(sizes, geometry, VLLM, gpu=H100), geometry, (H100,), options)
    assert isinstance(found, Memory), found
    return found


@pytest.mark.parametrize(
    ("config", "sizes", "weights", "activations", "non_torch", "kv"),
    [
        (LLAMA_8B, Sizes(), 14.99, 1.89, 0.25, 58.11),
        (QWEN3_8B, Sizes(), 15.27, 2.21, 0.25, 57.50),
        (MIXTRAL, Sizes(2), 43.51, 1.21, 2.07, 28.44),
    ],
)
def test_the_terms_of_a_log_of_0_19_on_an_h100_lie_in_their_ranges(
    config: dict[str, object], sizes: Sizes, weights: float, activations: float, non_torch: float, kv: float
) -> None:
    budget = of(config, sizes).tightest()
    for term, measured in (
        (budget.weights, weights),
        (budget.activations, activations),
        (budget.non_torch, non_torch),
        (budget.kv, kv),
    ):
        assert term.low <= measured * GIB <= term.high
    assert budget.kv.likely / GIB == pytest.approx(kv, abs=0.6)
    assert budget.graphs.high == 0


def test_from_0_20_on_graphs_are_taken_off_unless_the_engine_is_eager() -> None:
    newest = OPTIONS._replace(release=Version((0, 33)))
    assert of(LLAMA_8B, options=newest).tightest().graphs.likely > 0
    assert of(LLAMA_8B, options=newest._replace(release=Version((0, 20)))).tightest().graphs.likely > 0
    assert of(LLAMA_8B, options=newest._replace(release=Version((0, 19, 1)))).tightest().graphs.high == 0
    assert of(LLAMA_8B, options=newest._replace(enforce_eager=True)).tightest().graphs.high == 0


def test_measured_memory_holds_the_tokens_that_the_log_prints() -> None:
    assert longest(of(LLAMA_8B).tightest().needed, 58.11 * GIB) == pytest.approx(476016, rel=0.001)


def test_a_layer_with_a_window_keeps_the_tokens_of_a_step_beside_it() -> None:
    windowed = MISTRAL | {"max_position_embeddings": 32768}
    budget = of(windowed).tightest()
    per_token = 32 * 2 * 8 * 128 * 2
    assert budget.needed(4096) == 4096 * per_token
    assert budget.needed(32768) == budget.needed(65536) == (4096 + 8192) * per_token


def test_only_the_last_stage_has_the_sampler_and_the_tightest_stage_decides() -> None:
    found = of(LLAMA_8B, Sizes(pipeline_parallel_size=2))
    first, last = found.budgets
    assert first.activations.likely < last.activations.likely
    assert found.tightest() is last


@given(
    tokens=st.integers(1, 2**20),
    share=st.floats(0.1, 1),
    tp=st.sampled_from((1, 2, 4, 8)),
    config=st.sampled_from((LLAMA_8B, LLAMA_70B, MIXTRAL)),
    release=st.sampled_from(("0.6.6", "0.8.5", "0.17.1", "0.19.0", "0.33.0")),
)
def test_estimates_are_in_order_and_the_longest_sequence_is_the_longest(
    tokens: int, share: float, tp: int, config: dict[str, object], release: str
) -> None:
    version = Version.parse(release)
    assert version is not None
    found = of(config, Sizes(tp), Options(version, share, tokens))
    for budget in found.budgets:
        for _, term in (*budget.terms(), ("kv", budget.kv), ("usable", budget.usable)):
            assert term.low <= term.likely <= term.high
    fits, tightest = found.longest(), found.tightest()
    if tightest.kv.likely > 0:
        assert tightest.needed(int(fits.likely)) <= tightest.kv.likely < tightest.needed(int(fits.likely) + 1)


@pytest.mark.parametrize(
    ("card", "why"),
    [
        ("mi300x", "never measured"),
        ("gb10", "never measured"),
    ],
)
def test_cards_without_a_measured_start_have_no_sum(card: str, why: str) -> None:
    assert why in _unknown(read(LLAMA_8B), (accelerators.by_id(card),), OPTIONS)


def test_weights_that_are_packed_while_they_are_loaded_have_no_sum() -> None:
    assert "--quantization fp8" in _unknown(read(LLAMA_8B), (H100,), OPTIONS._replace(quantization="fp8"))


def test_what_is_not_known_of_card_or_model_is_said() -> None:
    assert _unknown(read(LLAMA_8B), (), OPTIONS) == "the memory of the card is not known"
    assert _unknown(read({"architectures": ["Nobodys"]}), (H100,), OPTIONS)


def _unknown(geometry: Geometry, cards: tuple[Accelerator, ...], options: Options) -> str:
    found = memory(lay_out(Sizes(), geometry, VLLM), geometry, cards, options)
    assert isinstance(found, Unknown)
    return found.reason


def test_a_name_for_cards_of_several_sizes_widens_the_range() -> None:
    geometry = read(LLAMA_8B)
    cards = accelerators.find("A100")
    found = memory(lay_out(Sizes(), geometry, VLLM), geometry, cards, OPTIONS)
    assert isinstance(found, Memory)
    usable = found.tightest().usable
    assert usable.low < 0.95 * 40 * GIB < 0.95 * 79 * GIB < usable.high


@pytest.mark.parametrize(
    ("release", "card", "gibibytes", "tokens"),
    [
        ("0.33.0", "H100", 79, 8192),
        ("0.33.0", "A100 SXM4 80GB", 79, 2048),
        ("0.33.0", "B200", 178, 16384),
        ("0.27.1", "B200", 178, 8192),
        ("0.33.0", "L40S", 44, 2048),
        ("0.7.3", "H100", 79, 15000),
    ],
)
def test_the_largest_step_by_release_and_card(release: str, card: str, gibibytes: int, tokens: int) -> None:
    version = Version.parse(release)
    assert version is not None
    assert default_batch(version, card, gibibytes * GIB, 15000).tokens == tokens


def test_ranks_without_a_fast_link_likely_have_smaller_buffers_between_them() -> None:
    geometry, sizes = read(LLAMA_8B), Sizes(2)
    layout = lay_out(sizes, geometry, VLLM)
    linked, apart = (memory(layout, geometry, (H100._replace(link=link),), OPTIONS) for link in ("nvlink", "pcie"))
    assert isinstance(linked, Memory) and isinstance(apart, Memory)
    smaller, larger = apart.tightest().non_torch, linked.tightest().non_torch
    assert smaller.likely < larger.likely
    assert (smaller.low, smaller.high) == (larger.low, larger.high)


def test_a_stated_cache_is_what_is_written_and_the_rest_of_the_card_holds_all_else() -> None:
    stated = of(LLAMA_8B, options=OPTIONS._replace(kv_cache_memory_bytes=20 * GIB)).tightest()
    assert set(stated.kv) == {20 * GIB}
    taken = stated.weights.likely + stated.activations.likely + stated.non_torch.likely + stated.graphs.likely
    assert stated.left_outside.likely == pytest.approx(stated.card.likely - taken - 20 * GIB)


def test_blocks_hold_tokens_only_where_their_size_is_written() -> None:
    blocks = OPTIONS._replace(num_gpu_blocks_override=1000, kv_cache_memory_bytes=GIB)
    assert of(LLAMA_8B, options=blocks._replace(block_size=32)).longest() == (32000, 32000, 32000)
    geometry = read(LLAMA_8B)
    assert isinstance(memory(lay_out(ALONE, geometry, VLLM, gpu=H100), geometry, (H100,), blocks), Unknown)


def test_what_the_host_holds_of_the_weights_is_free_for_the_cache() -> None:
    whole, part = of(LLAMA_8B).tightest(), of(LLAMA_8B, options=OPTIONS._replace(cpu_offload_gb=5)).tightest()
    assert part.kv.likely == pytest.approx(whole.kv.likely + 5 * GIB)
    nothing_left = of(LLAMA_8B, options=OPTIONS._replace(cpu_offload_gb=500)).tightest()
    assert nothing_left.weights.low == nothing_left.weights.likely == 0
    assert nothing_left.weights.high == 2 * 128256 * 4096 * 2, "embedding and head stay"


def test_what_lies_outside_the_budget_is_the_context_the_warm_up_and_graphs_that_are_not_counted() -> None:
    old, new = of(LLAMA_8B).tightest(), of(LLAMA_8B, options=OPTIONS._replace(release=Version((0, 33)))).tightest()
    logits = 1024 * 128256 * 4
    assert new.outside.likely == pytest.approx(0.5 * GIB + logits)
    assert old.outside.likely > new.outside.likely
    assert old.left_outside.likely == pytest.approx(0.05 * old.card.likely)


def test_replicas_of_a_dense_model_know_nothing_of_each_other_and_share_nothing() -> None:
    alone, copies = of(LLAMA_8B).tightest(), of(LLAMA_8B, Sizes(data_parallel_size=8, nnodes=2)).tightest()
    assert copies.kv == alone.kv
    assert copies.outside == alone.outside


def test_replicas_of_a_mixture_share_its_experts_and_talk_to_each_other() -> None:
    alone, copies = of(MIXTRAL).tightest(), of(MIXTRAL, Sizes(data_parallel_size=8)).tightest()
    experts = 32 * 8 * 3 * 4096 * 14336 * 2
    assert alone.rank.weight_bytes is not None and copies.rank.weight_bytes is not None
    assert alone.rank.weight_bytes - copies.rank.weight_bytes == experts * 7 // 8
    assert copies.non_torch.likely > alone.non_torch.likely
