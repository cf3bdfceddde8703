"""assert_layout: what passes, what fails and with which text, and what is no question to ask."""

from typing import Any

import pytest

from shardlint.check import Settings
from shardlint.testing import LayoutChecker, assert_layout

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}
UNEVEN = "vllm serve own/model --tensor-parallel-size 3"


def text_of(command: Any, **given: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_layout(command, **given)
    return str(caught.value)


def test_a_layout_that_works_gives_its_report() -> None:
    report = assert_layout("vllm serve Qwen/Qwen3-8B -tp 4", hardware="4xH100")
    assert report.findings == ()
    assert report.not_checked == ()
    assert [deployment.model.value for deployment in report.deployments] == ["Qwen/Qwen3-8B"]


def test_a_layout_that_fails_says_so_as_the_command_line_does() -> None:
    text = text_of(UNEVEN, config=CONFIG, hardware="3xH100")
    assert text.startswith("<command>:1:45: error[SL101 query-heads]: 32 attention heads do not divide")
    assert (
        "\n1 | vllm serve own/model --tensor-parallel-size 3\n  |                                             ^\n"
        in text
    )
    assert "= sum: 32 heads % 3 = 2\n" in text


def test_words_and_text_are_the_same_command() -> None:
    assert text_of(UNEVEN, config=CONFIG) == text_of(UNEVEN.split(), config=CONFIG)


def test_the_model_may_have_another_name_than_in_the_command() -> None:
    text = text_of("vllm serve /models/chat -tp 3", model="Qwen/Qwen3-8B")
    assert "catalogue:Qwen/Qwen3-8B: 32 attention heads" in text
    assert_layout("vllm serve /models/chat -tp 4", model="Qwen/Qwen3-8B")
    assert_layout("vllm serve -tp 4", model="Qwen/Qwen3-8B")


def test_hardware_environment_and_version_have_a_say() -> None:
    command = "vllm serve own/model -tp 2 -pp 2"
    assert_layout(command, config=CONFIG, hardware="4xH100")
    assert "SL801" in text_of(command, config=CONFIG, hardware="2xH100")
    assert "SL203" in text_of(command, config=CONFIG, env={"VLLM_PP_LAYER_PARTITION": "16,15"})
    report = assert_layout(command, config=CONFIG, engine_version="0.9.0")
    assert "vLLM 0.9.0" in text_of(UNEVEN, config=CONFIG, engine_version="0.9.0")
    assert report.not_checked


def test_the_threshold_is_the_callers() -> None:
    command = "vllm serve Qwen/Qwen3-8B -tp 2"
    assert [finding.severity for finding in assert_layout(command, hardware="8xH100").findings] == ["note"]
    assert "note[SL802 idle-gpus]" in text_of(command, hardware="8xH100", fail_on="note")


def test_strict_fails_for_what_could_not_be_checked() -> None:
    assert_layout("vllm serve own/model", config=CONFIG)
    assert "not checked" in text_of("vllm serve own/model", config=CONFIG, strict=True)


def test_the_settings_of_a_checker_hold_for_its_calls() -> None:
    checker = LayoutChecker(settings=Settings(ignore=("SL1",)), fail_on="error")
    checker.assert_layout(UNEVEN, config=CONFIG)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo vllm serve", "starts no engine that is known: echo vllm serve"),
        ("vllm serve nobody/has-this", "the model is not known: nobody/has-this"),
        ("vllm serve", "the model is not known: "),
        ("text-generation-launcher --model-id Qwen/Qwen3-8B", "TGI is read and not judged: nothing was checked"),
    ],
)
def test_what_cannot_be_judged_does_not_pass(command: str, said: str) -> None:
    assert said in text_of(command)


def test_arguments_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="give one of them"):
        assert_layout(UNEVEN, model="Qwen/Qwen3-8B", config=CONFIG)
    with pytest.raises(ValueError, match=r"hardware 'H100,': "):
        assert_layout(UNEVEN, hardware="H100,")
