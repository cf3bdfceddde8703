"""Controllers that spread the ranks of one command over several pods."""

from __future__ import annotations

from shardlint.check import Settings, check
from shardlint.findings import Unknown
from shardlint.text import Library, Source


class Nothing(Library):
    """Models are those of the catalogue."""

    def sibling(self, path: str) -> Source | Unknown:
        return Unknown(f"no {path}")

    def model(self, model_id: str) -> Unknown:
        return Unknown(f"no {model_id}")


def test_a_controller_that_spreads_the_ranks_is_not_blamed_for_one_pod() -> None:
    graph = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: wide}
spec:
  services:
    Decode:
      componentType: worker
      multinode: {nodeCount: 2}
      resources: {limits: {gpu: "8"}}
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.7.0
          command: [python3, -m, dynamo.vllm]
          args: [--model, Qwen/Qwen3-235B-A22B, %s]
"""
    for flags, refused in (
        ("--data-parallel-size=16, --enable-expert-parallel", False),
        ("--tensor-parallel-size=8, --pipeline-parallel-size=2", False),
        ("--data-parallel-size=32, --enable-expert-parallel", True),
    ):
        report = check([Source("graph.yaml", graph % flags)], Nothing(), Settings())
        assert any(finding.rule == "world-size" for finding in report.findings) == refused, flags
