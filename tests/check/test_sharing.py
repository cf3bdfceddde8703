"""What deployments of one run share is what each of them would have worked out alone."""

import json
from itertools import product

from shardlint.check import Settings
from shardlint.check.facts import DeploymentFacts
from shardlint.check.reading import read_file
from shardlint.check.sharing import MOST_KEPT, Shared
from shardlint.deployment import Deployment
from shardlint.findings import Unknown
from shardlint.layout import Legal
from shardlint.layout.sizes import DEGREES
from shardlint.text import ModelFiles, Source

POD = """apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  nodeSelector: {{nvidia.com/gpu.product: {gpu}}}
  containers:
    - name: a
      image: vllm/vllm-openai:{version}
      args: [--model, {model}, {options}]
      resources: {{limits: {{nvidia.com/gpu: "8"}}}}
---
"""
MODELS = ("Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B", "openai/gpt-oss-20b", "own/experts", "own/unknown")
PACKED_EXPERTS = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048, "head_dim": 128,
    "intermediate_size": 6144, "moe_intermediate_size": 768, "num_attention_heads": 32, "num_key_value_heads": 4,
    "num_hidden_layers": 4, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "vocab_size": 151936, "max_position_embeddings": 40960, "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": False},
}  # fmt: skip
"""They are stored for other kernels, with fewer bytes, where the option `--quantization moe_wna16` says so."""
CARDS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-B200")
OPTIONS = (
    "-tp, '2'",
    "-tp, '4', -pp, '2'",
    "-tp, '3', --dtype, float32",
    "-tp, '8', --kv-cache-dtype, fp8",
    "-dp, '2', -ep",
    "-tp, '2', --quantization, moe_wna16",
)
VERSIONS = ("v0.7.3", "v0.10.2")
SHARED = ("rows", "layout", "least_weights")


class Nothing:
    def model(self, model_id: str) -> ModelFiles | Unknown:
        if model_id == "own/experts":
            return ModelFiles(model_id, Source("config.json", json.dumps(PACKED_EXPERTS)))
        return Unknown("no models here")

    def sibling(self, path: str) -> Unknown:
        return Unknown("no files here")


def deployments(text: str) -> tuple[Deployment, ...]:
    return read_file(Source("pods.yaml", text), Nothing(), Settings()).deployments


def said_by(legal: Legal | Unknown) -> object:
    if isinstance(legal, Unknown):
        return legal
    return legal.pieces, [(legal.most(degree), legal.failures(degree)) for degree in DEGREES[:2]]


def test_facts_are_the_same_with_and_without_the_deployments_before() -> None:
    grid = list(product(MODELS, OPTIONS, CARDS, VERSIONS))
    text = "".join(POD.format(model=m, options=o, gpu=g, version=v) for m, o, g, v in grid)
    found, shared = deployments(text), Shared()
    assert len(found) == len(grid)
    told_apart = set()
    for deployment in found:
        together = DeploymentFacts(deployment, Nothing(), Settings(), (), shared)
        alone = DeploymentFacts(deployment, Nothing(), Settings())
        for name in SHARED:
            assert together.answer(name) == alone.answer(name)
        assert said_by(together.legal) == said_by(alone.legal)
        told_apart.add(repr(alone.least_weights))
    assert len(told_apart) > len(OPTIONS)


def test_a_repetition_is_not_worked_out_again() -> None:
    pod = POD.format(model=MODELS[0], options=OPTIONS[0], gpu=CARDS[0], version=VERSIONS[1])
    first, second = (
        DeploymentFacts(one, Nothing(), Settings(), (), shared) for shared in [Shared()] for one in deployments(2 * pod)
    )
    assert first.layout is second.layout
    assert first.rows is second.rows


def test_what_is_kept_has_a_bound() -> None:
    shared = Shared()
    for number in range(MOST_KEPT + 1):
        assert shared.once(lambda: object(), number) is not None
    kept = shared.once(lambda: 1, MOST_KEPT)
    assert kept != 1
    assert shared.once(lambda: 1, 0) == 1
