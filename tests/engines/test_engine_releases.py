"""What is true of vLLM release by release: defaults, model classes, the cutting table."""

from __future__ import annotations

import pytest

from shardlint import engines
from shardlint.deployment import KNOBS
from shardlint.engines import Cut, Version
from shardlint.engines.vllm import architectures, quantisation
from shardlint.findings import Piece, Unknown

VLLM = engines.engine("vllm")


@pytest.mark.parametrize(
    ("knob", "version", "default"),
    [
        ("gpu_memory_utilization", "0.6.6.post1", 0.9),
        ("gpu_memory_utilization", "0.19.1", 0.9),
        ("gpu_memory_utilization", "0.20.0", 0.92),
        ("gpu_memory_utilization", None, 0.92),
        ("gpu_memory_utilization", "0.5.5", 0.9),
        ("gpu_memory_utilization", "9.9.9", 0.92),
        ("tensor_parallel_size", "0.8.5", 1),
        ("nnodes", "0.33.0", 1),
        ("enable_expert_parallel", "0.33.0", False),
        ("dtype", "0.33.0", "auto"),
        ("kv_cache_dtype", "0.33.0", "auto"),
        ("max_model_len", "0.33.0", None),
        ("max_num_seqs", "0.33.0", None),
        ("pp_layer_partition", "0.33.0", None),
        ("expert_parallel_size", "0.33.0", None),
    ],
)
def test_defaults_are_those_of_the_release(knob: str, version: str | None, default: object) -> None:
    assert knob in KNOBS
    assert VLLM.default(knob, version) == default
    assert VLLM.default(knob, None if version is None else Version.parse(version)) == default


@pytest.mark.parametrize(
    ("architecture", "version", "supports"),
    [
        ("LlamaForCausalLM", "0.6.6.post1", True),
        ("LlamaForCausalLM", "0.33.0", True),
        ("LlamaForCausalLM", "0.40.0", True),
        ("KimiVLForConditionalGeneration", "0.9.2", False),
        ("KimiVLForConditionalGeneration", "0.10.2", True),
        ("DeepseekV4ForCausalLM", "0.20.2", False),
        ("DeepseekV4ForCausalLM", "0.21.0", True),
        ("Qwen3_5MTP", "0.29.0", False),
        ("DiffusionGemmaForBlockDiffusion", "0.27.1", False),
        ("Llama4ForConditionalGeneration", "0.8.3", False),
        ("Llama4ForConditionalGeneration", "0.8.4", True),
    ],
)
def test_pipeline_parallelism_by_class_and_release(architecture: str, version: str, supports: bool) -> None:
    assert VLLM.supports_pp(architecture, version) is supports


@pytest.mark.parametrize(
    ("architecture", "version", "reason"),
    [
        ("KimiVLForConditionalGeneration", "0.10.2rc1", "differ"),
        ("DeepseekV4ForCausalLM", "0.20.3", "differ"),
        ("ExaoneMoEForCausalLM", "0.28.0", "has no class"),
        ("NoSuchForCausalLM", "0.33.0", "Transformers backend"),
        ('odd"name\n', "0.33.0", "has no class"),
        ("", "0.33.0", "has no class"),
        ("LlamaForCausalLM", "0.5.5", "not recorded"),
    ],
)
def test_what_the_samples_do_not_tell_is_unknown(architecture: str, version: str, reason: str) -> None:
    found = VLLM.supports_pp(architecture, version)
    assert isinstance(found, Unknown) and reason in found.reason


def test_a_class_comes_and_goes() -> None:
    assert VLLM.knows("AquilaForCausalLM", "0.24.0") is True
    assert VLLM.knows("AquilaForCausalLM", "0.25.0") is False
    assert isinstance(VLLM.knows("AquilaForCausalLM", "0.25.0rc1"), Unknown)
    assert isinstance(VLLM.knows("LlamaForCausalLM", "0.1.0"), Unknown)


def test_every_row_of_the_classes_is_found() -> None:
    lines = architectures._text().splitlines()[1:]
    assert len(lines) == 480
    for name in (line.split('"')[3] for line in lines):
        assert architectures.row(name)["name"] == name


def test_every_piece_has_a_cut() -> None:
    for version in ("0.6.6.post1", "0.33.0"):
        assert set(VLLM.cutting(version).pieces) == set(Piece.__args__)  # type: ignore[attr-defined]


def test_the_cutting_table_of_the_newest_release() -> None:
    cutting = VLLM.cutting()
    assert cutting["query_head"] == Cut(refuses="refuses-at-start")
    assert cutting["kv_head"] == Cut(refuses="fails-while-loading", replicates=True)
    assert cutting["vocabulary"] == Cut(refuses="fails-while-loading", pads_to=64)
    assert cutting["expert"] == Cut(remainder="first_ranks")
    assert (cutting.stage_remainder, cutting.expert_blocks_refine_to) == ("before_last", 32)


@pytest.mark.parametrize(
    ("version", "stages", "experts", "refine_to"),
    [
        ("0.7.3", "last", "last_rank", 0),
        ("0.8.5.post1", "before_last", "last_rank", 0),
        ("0.8.0", "before_last", "last_rank", 0),
        ("0.10.0", "before_last", "last_rank", 0),
        ("0.10.1", "before_last", "first_ranks", 0),
        ("0.28.0", "before_last", "first_ranks", 0),
        ("0.29.0", "before_last", "first_ranks", 32),
    ],
)
def test_the_cutting_table_changes_with_releases(version: str, stages: str, experts: str, refine_to: int) -> None:
    cutting = VLLM.cutting(version)
    assert (cutting.stage_remainder, cutting["expert"].remainder, cutting.expert_blocks_refine_to) == (
        stages,
        experts,
        refine_to,
    )


def test_an_engine_that_is_not_judged_has_no_table() -> None:
    other = engines.engine("trtllm")
    with pytest.raises(LookupError):
        other.cutting()
    assert isinstance(other.supports_pp("LlamaForCausalLM"), Unknown)
    assert isinstance(other.knows("LlamaForCausalLM"), Unknown)


def test_the_newest_sample_is_the_newest_release() -> None:
    assert VLLM.table.names[-1] == VLLM.newest == architectures.sampled()[-1]


def test_both_tables_are_of_the_same_releases() -> None:
    assert tuple(VLLM.table.names) == architectures.sampled()
    assert list(VLLM.table.names) == sorted(VLLM.table.names, key=Version.of)


@pytest.mark.parametrize("name", VLLM.table.names)
def test_a_release_that_was_read_lies_between_no_others(name: str) -> None:
    era = VLLM.table.era(Version.of(name))
    assert era.complete and VLLM.table.names[era.low] == VLLM.table.names[era.high] == name


@pytest.mark.parametrize(
    ("method", "version", "has"),
    [
        ("marlin", "0.10.1.1", True),
        ("marlin", "0.10.2", False),
        ("marlin", "0.10.2rc1", None),
        ("mxfp4", "0.10.0", False),
        ("mxfp4", "0.10.1", True),
        ("fp8", "0.5.5", None),
        ("fp8", "9.9.9", True),
    ],
)
def test_a_quantisation_method_by_release(method: str, version: str, has: bool | None) -> None:
    assert quantisation.has(method, Version.of(version)) is has
