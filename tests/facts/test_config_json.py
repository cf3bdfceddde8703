"""Foreign JSON: every fault is told with its place, and nothing raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardlint.facts.config_json import COUNTS, COUNTS_OF_LAYERS, FLAGS, LISTS, OBJECTS, WORDS, clean, clean_mapping
from shardlint.facts.geometry import read
from shardlint.facts.json_places import place_of
from shardlint.text.source import Source


def told(text: str) -> list[str]:
    return [fault.reason for fault in clean(Source("config.json", text))[1]]


def test_a_good_config_passes_as_it_is() -> None:
    text = '{"num_attention_heads": 8, "num_experts": null, "time_step_limit": [0.0, Infinity], "moe_topk": [1, 2]}'
    config, faults = clean(Source("config.json", text))
    assert faults == ()
    assert config["time_step_limit"] == [0.0, float("inf")]


def test_a_byte_order_mark_is_no_fault() -> None:
    assert told("\ufeff{}") == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ("", "is not JSON"),
        ("\x00\x01", "is not JSON"),
        ("[1]", "holds no JSON object but a list"),
        ("3", "holds no JSON object but 3"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"a": ' + "1" * 5000 + "}", "is not read"),
        (" " * 16_000_001, "more than 16000000 are not read"),
    ],
)
def test_text_that_is_no_config_is_one_fault(text: str, reason: str) -> None:
    (fault,) = told(text)
    assert reason in fault


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('"32"', "is '32', which should be a valid integer"),
        ("true", "is True, which should be a valid integer"),
        ("-8", "is -8, which should be greater than or equal to 0"),
        ("NaN", "is nan, which should be a valid integer"),
        ("Infinity", "is inf, which should be a valid integer"),
        ("8.5", "is 8.5, which should be a valid integer"),
        ("{}", "is a object, which should be a valid integer"),
        ("[8]", "is a list, which should be a valid integer"),
        ("99999999999999999999", "should be less than or equal to 1000000000"),
    ],
)
def test_a_count_of_the_wrong_kind_is_named_and_taken_out(value: str, reason: str) -> None:
    source = Source("config.json", f'{{"hidden_size": {value}}}')
    config, (fault,) = clean(source)
    assert config == {}
    assert reason in fault.reason
    assert fault.span == source.span(16, 16 + len(value) if value[0] not in "{[" else 17)


def test_every_fault_is_told_with_its_own_place() -> None:
    text = '{"model_type": 3,\n "text_config": {\n  "num_experts": "x",\n  "vocab_size": -1}}'
    config, faults = clean(Source("config.json", text))
    assert config == {"text_config": {}}
    assert sorted((fault.span.line, fault.spelled) for fault in faults if fault.span) == [
        (1, "3"),
        (3, "'x'"),
        (4, "-1"),
    ]


def test_a_dict_from_a_python_caller_is_judged_too() -> None:
    config, (fault,) = clean_mapping({"num_attention_heads": "8", "hidden_size": 64})
    assert config == {"hidden_size": 64}
    assert fault.span is None


KEYS = " ".join(
    (COUNTS, COUNTS_OF_LAYERS, FLAGS, WORDS, OBJECTS, LISTS, "sliding_window architectures text_config x")
).split()
SCALARS: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats() | st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
)
CONFIGS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8)
TYPES = st.sampled_from(["llama", "falcon", "dbrx", "nemotron-nas", "deepseek_v4", "gpt_bigcode", "mpt", "odd", None])


@given(CONFIGS, TYPES)
def test_no_config_makes_anything_raise(config: dict[str, Any], model_type: str | None) -> None:
    text = json.dumps({**config, **({"model_type": model_type} if model_type else {})}, indent=1)
    source = Source("config.json", text)
    cleaned, faults = clean(source)
    assert all(fault.span for fault in faults)
    assert len(list(read(cleaned, source=source).facts.values())) > 20


@given(st.dictionaries(st.text(max_size=6), st.dictionaries(st.text(max_size=6), SCALARS, max_size=3), max_size=3))
def test_a_place_covers_the_value_of_its_key(config: dict[str, dict[str, Any]]) -> None:
    source = Source("x", json.dumps(config, indent=2))
    lines = source.text.splitlines()
    for outer, inner in config.items():
        for key, value in inner.items():
            span = place_of(source, (outer, key))
            assert span is not None
            assert lines[span.line - 1][span.column - 1 : span.end_column - 1] == json.dumps(value)


def test_of_a_key_that_is_written_twice_the_last_one_counts() -> None:
    source = Source("x", '{"a": 1,\n "b": {"a": 2},\n "a": 3}')
    span = place_of(source, ("a",))
    assert span is not None
    assert span.line == 3
    assert place_of(source, ("c",)) is None
