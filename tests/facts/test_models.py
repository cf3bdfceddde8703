"""Where a geometry comes from, in which order, and what is never assumed."""

from __future__ import annotations

import pytest

from shardlint.facts import catalogue, second_hand
from shardlint.facts.geometry import Geometry, read
from shardlint.facts.models import geometry_of
from shardlint.facts.tables import rows
from shardlint.findings import Located, Unknown
from shardlint.text.source import Library, ModelFiles, Source


class Shelf(Library):
    """A library that holds what it is given."""

    def __init__(self, **files: str) -> None:
        self._files = files

    def sibling(self, path: str) -> Source | Unknown:
        return Unknown(f"no {path}")

    def model(self, model_id: str) -> ModelFiles | Unknown:
        if "config" not in self._files:
            return Unknown(f"no config.json is given for {model_id}")
        side_files = tuple((name, Source(name, text)) for name, text in self._files.items() if name != "config")
        return ModelFiles(model_id, Source("config.json", self._files["config"]), side_files, "the shelf")


def known(model_id: str, shelf: Shelf | None = None) -> Geometry:
    found = geometry_of(model_id, shelf or Shelf())
    assert isinstance(found, Geometry)
    return found


def unknown(model_id: str, shelf: Shelf | None = None) -> Unknown:
    found = geometry_of(model_id, shelf or Shelf())
    assert isinstance(found, Unknown)
    return found


def test_the_users_own_file_comes_before_the_catalogue() -> None:
    geometry = known("Qwen/Qwen3-8B", Shelf(config='{"num_attention_heads": 6}'))
    assert (geometry.value("num_attention_heads"), geometry.origin, geometry.assumption) == (6, "the shelf", "")


def test_a_broken_file_of_the_users_does_not_give_way_to_the_catalogue() -> None:
    fault = unknown("Qwen/Qwen3-8B", Shelf(config='{"num_attention_heads": "a", "vocab_size": -2}'))
    assert "num_attention_heads of config.json" in fault.reason
    assert "vocab_size of config.json" in fault.reason


def test_side_files_are_read_and_judged() -> None:
    files = {"hf_quant_config.json": '{"quantization": {"quant_algo": "NVFP4"}}', "config": "{}"}
    index = '{"metadata": {"total_size": 77}, "weight_map": {"a": "b"}}'
    geometry = known("a/b", Shelf(**files, **{"model.safetensors.index.json": index}))
    assert (geometry.value("quant_method"), geometry.value("weight_bytes_stated")) == ("modelopt_fp4", 77)
    assert "hf_quant_config.json is not JSON" in unknown("a/b", Shelf(**{**files, "hf_quant_config.json": "{"})).reason


@pytest.mark.parametrize("model_id", ["Qwen/Qwen3-8B", "qwen/qwen3-8b"])
def test_the_catalogue_finds_an_id_in_any_case(model_id: str) -> None:
    geometry = known(model_id)
    names = ("num_attention_heads", "num_key_value_heads", "num_hidden_layers", "hidden_size", "vocab_size", "head_dim")
    assert [geometry.value(name) for name in names] == [32, 8, 36, 4096, 151936, 128]
    assert (geometry.architecture, geometry.assumption) == ("Qwen3ForCausalLM", "")
    assert geometry.origin.startswith("catalogue: ")


def test_the_second_hand_table_knows_heads_and_says_what_it_does_not_know() -> None:
    geometry = known("01-ai/Yi-1.5-34B")
    fact = geometry.facts["num_attention_heads"]
    assert isinstance(fact, Located)
    assert (fact.value, fact.source) == (56, "second-hand table (llmfit 1.1.17)")
    assert "second-hand" in geometry.origin
    lacking = geometry.facts["head_dim"]
    assert isinstance(lacking, Unknown)
    assert "only at second hand, without its head dim" in lacking.reason


def test_what_the_second_hand_table_guesses_is_left_out() -> None:
    falcon = known("tiiuae/falcon-40b")
    assert (falcon.value("num_attention_heads"), falcon.value("num_key_value_heads")) == (128, None)


def test_another_organisations_copy_is_a_named_assumption() -> None:
    geometry = known("somebody/Qwen3-8B")
    assert geometry.assumption == "somebody/Qwen3-8B has the geometry of Qwen/Qwen3-8B"
    assert geometry.value("num_attention_heads") == 32


@pytest.mark.parametrize(
    "suffix", ["-AWQ", "-FP8", "-GPTQ-Int4", "-NVFP4", "-FP8-dynamic", "-quantized.w4a16", "-bnb-4bit"]
)
def test_a_quantised_copy_never_takes_the_numbers_of_another(suffix: str) -> None:
    fault = unknown(f"somebody/Qwen3-32B{suffix}")
    assert "quantised" in fault.reason
    assert "--models" in fault.settle_by
    assert "models add" in fault.settle_by


@pytest.mark.parametrize(
    "model_id", ["/models/Qwen3-8B", "./Qwen3-8B", "s3://b/Qwen3-8B", "a/b/Qwen3-8B", "", "$M", "~/x", "a\tb", "a/b\n"]
)
def test_a_path_is_no_id(model_id: str) -> None:
    assert unknown(model_id).reason.startswith("no config.json is given")
    assert "models add" not in unknown(model_id).settle_by


def test_a_model_that_nobody_knows_is_unknown_and_says_what_would_settle_it() -> None:
    fault = unknown("nobody/no-such-model")
    assert fault.reason == "nobody/no-such-model is not in the catalogue"
    assert (
        fault.settle_by == "`shardlint models add nobody/no-such-model`, "
        "or --models DIR with its config.json as DIR/nobody/no-such-model/config.json"
    )


def test_a_number_that_the_second_table_lacks_is_settled_for_the_id_that_was_asked_for() -> None:
    for model_id in ("tiiuae/falcon-40b", "somebody/falcon-40b"):
        lacking = known(model_id).facts["intermediate_size"]
        assert isinstance(lacking, Unknown)
        assert f"`shardlint models add {model_id}`" in lacking.settle_by


def test_sizes_from_the_headers_of_the_weights_come_before_an_index() -> None:
    sizes = {"safetensors_sizes.json": '{"total_bytes": 70, "dtypes": {"BF16": {"bytes": 70}}}', "config": "{}"}
    index = {"model.safetensors.index.json": '{"metadata": {"total_size": 77}}'}
    stated = known("a/b", Shelf(**sizes, **index)).facts["weight_bytes_stated"]
    assert isinstance(stated, Located)
    assert (stated.value, stated.source) == (70, "total_bytes of safetensors_sizes.json")


def test_namesakes_that_differ_are_no_assumption(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = [read({"hidden_size": width}, f"{organisation}/x") for organisation, width in (("a", 64), ("b", 128))]
    monkeypatch.setattr(catalogue, "namesakes", lambda name: iter(copies))
    assert "its namesakes differ: a/x, b/x" in unknown("c/x").reason


def test_every_row_of_the_catalogue_reads_and_has_a_source() -> None:
    table = list(rows(catalogue.TABLE))
    assert len(table) >= 280
    assert len({row["id"].lower() for row in table}) == len(table)
    for row in table:
        geometry = catalogue.find(row["id"])
        assert geometry is not None
        assert row["source"]
        assert all(fact is not None for fact in geometry.facts.values())


def test_the_catalogue_holds_structure_and_no_text() -> None:
    text = second_hand.table(catalogue.TABLE).decode()
    for word in ("<|", "eos_token", "auto_map", "chat_template", "id2label"):
        assert word not in text
