"""Python files that make an engine by a call."""

from __future__ import annotations

import pytest

from shardlint import engines
from shardlint.deployment import Server
from shardlint.deployment.spelling import respelled
from shardlint.findings import Located, Unknown
from shardlint.manifests import python
from shardlint.text import Document, Library, Source


def settings(launch):
    return {
        entry.key.value: entry.value.value if isinstance(entry.value, Located) else "unknown"
        for entry in launch.settings
    }


def test_literal_arguments_are_read_at_their_places(read):
    got = read(
        'import os\nfrom vllm import LLM, SamplingParams\n\nos.environ["CUDA_VISIBLE_DEVICES"] = "0,1"\nMODEL = "org/mé"\n'
        "llm = LLM(model=MODEL, tensor_parallel_size=2, gpu_memory_utilization=0.9, enforce_eager=True, seed=None)\n",
        "serve.py",
    )
    only = got.only
    assert (got.form, only.name) == ("python", "serve.py")
    assert settings(only) == {
        "model": "org/mé",
        "tensor-parallel-size": 2,
        "gpu-memory-utilization": 0.9,
        "enforce-eager": True,
    }
    assert got.cut(only.settings[1].value) == "2" and got.cut(only.settings[0].value) == '"org/mé"'
    assert only.gpus_per_pod.value == 2
    assert got.cut(only.at) == "LLM"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('from vllm import LLM\nLLM("m", max_model_len=8)', {"model": "m", "max-model-len": 8}),
        ('import vllm\nvllm.LLM("m")', {"model": "m"}),
        ("from vllm.engine.arg_utils import AsyncEngineArgs as A\nA(model='m')", {"model": "m"}),
        ('import sglang as sgl\nsgl.Engine(model_path="m", tp_size=4)', {"model-path": "m", "tp-size": 4}),
        (
            'from vllm import LLM\nLLM(model=f"{x}", tensor_parallel_size=args.tp, seed=1)',
            {"model": "unknown", "tensor-parallel-size": "unknown", "seed": 1},
        ),
        (
            'from vllm import LLM\nn = 1\nn = 2\nLLM("m", tensor_parallel_size=n)',
            {"model": "m", "tensor-parallel-size": "unknown"},
        ),
        (
            'from vllm import LLM\ndef f(n=2):\n    LLM("m", tensor_parallel_size=n)',
            {"model": "m", "tensor-parallel-size": "unknown"},
        ),
        ('from vllm import LLM\nkw = {"model": "m", "dtype": "half"}\nLLM(**kw)', {"model": "m", "dtype": "half"}),
    ],
)
def test_every_way_to_call_an_engine(read, code, expected):
    assert settings(read(code, "a.py").only) == expected


def test_what_is_not_told_stays_open(read):
    assert isinstance(read("from vllm import LLM\nLLM(dtype='half', **args)\n", "a.py").only.argv[-1], Unknown)
    assert isinstance(read("from vllm import LLM\nLLM(dtype='half')\n", "a.py").only.argv[-1], Unknown)
    assert not read("from vllm import LLM\nLLM(**args)\nLLM(model=name)\n", "a.py").launches


@pytest.mark.parametrize(
    "code",
    [
        "class LLM:\n    pass\nLLM('m')\n",
        "from langchain import LLM\nLLM(model='m')\n",
        "from vllm import SamplingParams\nSamplingParams(n=1)\n",
        "LLM(\0",
    ],
)
def test_other_code_is_none_of_it(read, code):
    assert not read(code, "a.py").launches


@pytest.mark.parametrize(
    ("code", "line"), [("from vllm import LLM\nprint LLM(\n", 2), ("from vllm import LLM\n" + "(" * 5000, 2)]
)
def test_what_is_no_python_is_told_where_it_stops(code, line):
    (problem,) = python.launches(Document(Source("a.py", code), "python"), Library)
    assert "cannot be read as Python" in problem.message
    assert problem.at.line == line


def test_a_form_feed_ends_no_line(read):
    found = read('from vllm import LLM\n\f\n# \u2028\nLLM("m", tensor_parallel_size=2)\n', "a.py")
    written = found.only.settings[1].value
    assert (written.spelled, written.span.line, written.span.column) == ("2", 4, 31)


def test_an_argument_is_spelled_as_in_its_call(read):
    launch = read('from vllm import LLM\nLLM("m", tensor_parallel_size=2)\n', "a.py").only
    size = engines.read(Server(engines.recognise(launch), launch)).knobs["tensor_parallel_size"]
    assert respelled(size, 4, "tensor_parallel_size") == "tensor_parallel_size=4"
