"""Values of Helm charts that serve a model, whatever the chart calls them; charts with a form of their own aside."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.manifests._objects import YAML_FILES
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping
from shardlint.text.source import Library

NAME = "helm-values"
FILES = YAML_FILES
FALLBACK = True
WITHOUT = (
        "$schema", "apiVersion", "applications", "base_image", "benchmark", "build_commands", "commands",
        "docker_server", "endpoint_name", "envs", "handler", "jobs", "kind", "llm_configs", "minWorkers",
        "model_metadata", "npu_per_node", "num_nodes", "on", "pipeline", "python_version", "run", "sbatch_directives",
        "services", "setup", "stages", "strategy_overrides", "test_cases", "trt_llm",
)  # fmt: skip
"""Keys at the top of objects, Compose files, pipelines, and the tasks and configurations of other tools."""


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches that the values ask for; what the chart's templates add to them is open."""
    root = document.root
    if not isinstance(root, Mapping):
        return
    from shardlint.manifests import _chart_values  # few mappings get here

    yield from _chart_values.launches_of(root, NAME, document)
