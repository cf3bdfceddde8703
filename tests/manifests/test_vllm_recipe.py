"""Recipes of the vLLM project: variants with the arguments that all strategies share."""

from __future__ import annotations

import pytest
from stated_layouts import deployments, sizes

from shardlint.findings import Unknown

RECIPE = """
meta: {slug: some-model}
model:
  model_id: org/model
  base_args: ["--trust-remote-code", "--enable-expert-parallel"]
  base_env: {A: "1"}
variants:
  default: {precision: bf16}
  fp8:
    model_id: org/model-FP8
    tp: 4
    extra_args: ["--kv-cache-dtype", "fp8"]
    extra_env: {B: "2"}
compatible_strategies: [single_node_tp]
guide: |
  vllm serve org/model --tensor-parallel-size 8
"""


def test_every_variant_is_a_deployment_and_the_guide_none(read):
    got = read(RECIPE)
    assert got.form == "vllm-recipe"
    default, fp8 = deployments(got.launches)
    assert (default.name, default.model.value) == ("recipe/some-model/default", "org/model")
    assert (fp8.name, fp8.model.value) == ("recipe/some-model/fp8", "org/model-FP8")
    assert sizes(default) == {"enable_expert_parallel": True}
    assert sizes(fp8) == {"enable_expert_parallel": True, "tensor_parallel_size": 4, "kv_cache_dtype": "fp8"}
    assert got.cut(fp8.knobs["tensor_parallel_size"]) == "4"
    assert {name: value.value for name, value in fp8.env.items()} == {"A": "1", "B": "2"}


def test_what_the_strategy_adds_is_open(read):
    default, _ = deployments(read(RECIPE).launches)
    assert default.open_words[0].reason == "the strategy and the hardware that are chosen add arguments"


def test_a_size_for_each_kind_of_card_is_none_yet(read):
    text = RECIPE.replace("tp: 4", "tp: {h100: 8, b200: 4}")
    _, fp8 = deployments(read(text).launches)
    size = fp8.knobs["tensor_parallel_size"]
    assert isinstance(size, Unknown) and size.reason == "the card that is chosen decides"
    assert not fp8.flag_problems


def test_a_flag_and_its_value_may_stand_in_one_argument(read):
    default, _ = deployments(read(RECIPE.replace('"--trust-remote-code"', '"--max-model-len 4k"')).launches)
    assert sizes(default) == {"enable_expert_parallel": True, "max_model_len": 4000}
    assert not default.flag_problems


def test_flags_of_vllm_omni_are_its_own(read):
    default, _ = deployments(read(RECIPE.replace("--trust-remote-code", "--use-hsdp") + "omni: {tasks: []}\n").launches)
    assert not default.flag_problems


def test_a_recipe_without_variants_is_one_deployment(read):
    (deployment,) = deployments(read("model: {model_id: a/b}\nhardware_overrides: {}\n").launches)
    assert (deployment.name, deployment.model.value) == ("recipe/a/b", "a/b")


@pytest.mark.parametrize("text", ["model: {model_id: a/b}\n", "model: a/b\nvariants: {}\n", "variants: []\n"])
def test_other_files_are_no_recipes(read, text):
    assert read(text).launches == ()
