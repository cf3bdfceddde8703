"""What deployments of one run share is what each of them would have worked out alone."""

from itertools import product

from shardlint.check import Settings
from shardlint.check.facts import DeploymentFacts
from shardlint.check.reading import read_file
from shardlint.check.sharing import MOST_KEPT, Shared
from shardlint.deployment import Deployment
from shardlint.findings import Unknown
from shardlint.text import Source

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
MODELS = ("Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B", "openai/gpt-oss-20b", "own/unknown")
CARDS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-B200")
OPTIONS = (
    "-tp, '2'",
    "-tp, '4', -pp, '2'",
    "-tp, '3', --dtype, float32",
    "-tp, '8', --kv-cache-dtype, fp8",
    "-dp, '2', -ep",
)
VERSIONS = ("v0.7.3", "v0.10.2")
SHARED = ("rows", "layout", "legal", "least_weights")


class Nothing:
    def model(self, model_id: str) -> Unknown:
        return Unknown("no models here")

    def sibling(self, path: str) -> Unknown:
        return Unknown("no files here")


def deployments(text: str) -> tuple[Deployment, ...]:
    return read_file(Source("pods.yaml", text), Nothing(), Settings()).deployments


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
