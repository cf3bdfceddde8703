"""Arguments that a manifest states in fields: read as if they stood on the engine's command line."""

from __future__ import annotations

from shardlint import engines
from shardlint.deployment import Launch, Server
from shardlint.findings import Located
from shardlint.manifests import _stated
from shardlint.text.documents import documents
from shardlint.text.source import Source

FIELDS = """
model: org/model
parallelism: {tensor: 6, pipeline: null, expert: true}
engine_kwargs:
  max_model_len: 8192
  gpu-memory-utilization: "0.9"
  enable_prefix_caching: false
  hf_overrides: {a: 1}
"""


def deployment():
    (document,) = documents(Source("f.yaml", FIELDS)).documents
    root = document.root
    assert root is not None
    settings = (
        *_stated.entry("tensor-parallel-size", root, "parallelism", "tensor"),
        *_stated.entry("pipeline-parallel-size", root, "parallelism", "pipeline"),
        *_stated.entry("enable-expert-parallel", root, "parallelism", "expert"),
        *_stated.entry("data-parallel-size", root, "parallelism", "data"),
        *_stated.entries(root.get("engine_kwargs")),
    )
    argv = _stated.command(_stated.VLLM, root.span, Located("org/model"))
    return engines.read(Server("vllm", Launch("x", "X", "x", root.span, argv, settings=settings)))


def test_fields_become_knobs_at_their_places() -> None:
    read = deployment()
    assert read.model.value == "org/model"
    tensor = read.knobs["tensor_parallel_size"]
    assert (tensor.value, tensor.span.line, tensor.span.column) == (6, 3, 23)
    assert tensor.spelled.startswith("tensor:")
    assert read.knobs["max_model_len"].value == 8192
    assert read.knobs["gpu_memory_utilization"].value == 0.9
    assert read.knobs["enable_expert_parallel"].value is True
    assert "pipeline_parallel_size" not in read.knobs
    assert not read.flag_problems
