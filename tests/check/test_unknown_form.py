"""What is said of a file that has none of the known forms."""

from __future__ import annotations

import pytest

from shardlint.check import unknown_form
from shardlint.text import Source


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("[program]\nrun = vllm serve org/m\n", "vllm serve in line 2"),
        ('{"image": "docker.io/vllm/vllm-openai:v0.33.0"}', "docker.io/vllm/vllm-openai:v0.33.0 in line 1"),
        ("a\nb\nargs --tensor-parallel-size 4\n", "--tensor-parallel-size in line 3"),
        ("cmd: python -m sglang.launch_server\n", "sglang.launch_server in line 1"),
        ("# vllm serve m\nx: 1\n", None),
        ("kind: Service\nmetadata: {name: vllm}\n", None),
    ],
)
def test_an_engine_in_it_is_named_with_its_place(text, seen):
    said = unknown_form.reason(Source("a", text))
    assert said.startswith(unknown_form.NO_FORM)
    assert (seen in said) if seen else said == unknown_form.NO_FORM
