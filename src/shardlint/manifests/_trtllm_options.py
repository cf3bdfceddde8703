"""Options of TensorRT-LLM's LLM API as files hold them."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Unknown
from shardlint.manifests import _stated
from shardlint.manifests._pods import number
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar

COMMAND = ("trtllm-serve",)
SIZES = {
    "tensor_parallel_size": "tensor-parallel-size",
    "tp_size": "tensor-parallel-size",
    "pipeline_parallel_size": "pipeline-parallel-size",
    "pp_size": "pipeline-parallel-size",
    "moe_expert_parallel_size": "moe-expert-parallel-size",
    "ep_size": "moe-expert-parallel-size",
}
FLAGS = {
    **SIZES,
    "max_seq_len": "max-seq-len",
    "max_batch_size": "max-batch-size",
    "max_num_tokens": "max-num-tokens",
    "gpus_per_node": "gpus-per-node",
    "backend": "backend",
}
MARKS = frozenset(
    {
        "kv_cache_config", "enable_attention_dp", "moe_expert_parallel_size", "moe_tensor_parallel_size", "moe_backend",
        "moe_config", "cuda_graph_config", "use_cuda_graph", "max_num_tokens", "llm_api_args",
        "disable_overlap_scheduler", "print_iter_log", "free_gpu_memory_fraction", "extra_llm_api_options",
        "torch_compile_config", "cache_transceiver_config", "moe_load_balancer", "max_seq_len",
    }
)  # fmt: skip
"""Options that no other engine calls so."""
PHASES = (
    (("context_servers",), "prefill"),
    (("generation_servers",), "decode"),
    (("worker_config", "ctx"), "prefill"),
    (("worker_config", "gen"), "decode"),
)
"""Where files of disaggregated servers, and of their benchmark on Slurm, hold the options of each phase."""


def launches_of(root: Mapping, form: str) -> Iterator[Launch]:
    """The launches of a file that states a size; one that only tunes a server is no deployment."""
    name = root.source.path.replace("\\", "/").rpartition("/")[2]
    phases = [(part, fields) for path, part in PHASES if isinstance(fields := root.get(*path), Mapping)]
    for part, fields in phases:
        base = Launch(f"{name}/{part}", "config", form, fields.span, replicas=number(fields.get("num_instances")))
        shared = [layer for layer in (root, root.get("environment")) if isinstance(layer, Mapping)]
        yield _launch([fields, *shared], base._replace(unit=base.name))
    layers: list[Node] = [part for part in (root, root.get("llm_api_args")) if isinstance(part, Mapping)]
    keys = {key.text for layer in layers if isinstance(layer, Mapping) for key, _ in layer.items()}
    if not phases and not keys.isdisjoint(SIZES) and not keys.isdisjoint(MARKS):
        yield _launch(layers, Launch(name, "config", form, next(iter(root.items()))[0].span, unit=name))


def _launch(layers: list[Node], base: Launch) -> Launch:
    settings: dict[str, ConfigEntry] = {}
    for fields in layers:
        for key, flag in FLAGS.items():
            for found in _stated.entry(flag, fields, key):
                settings.setdefault(flag, found)
    model = next((node for fields in layers for key in ("model", "model_path") if (node := fields.get(key))), None)
    elsewhere = Unknown("the command that is given this file names the model", base.at, settle_by="naming the model")
    named = value_of(model) if isinstance(model, Scalar) and not model.is_null else elsewhere
    return base._replace(argv=_stated.command(COMMAND, base.at, named), settings=tuple(settings.values()))
