"""Which engine a file of flags is for, and the command that names it."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Launch, Word
from shardlint.findings import Located, Span, Unknown
from shardlint.text.nodes import Mapping

SIZES = frozenset(
    {
        "tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "decode-context-parallel-size",
        "prefill-context-parallel-size",
    }
)  # fmt: skip
LAYOUT = SIZES | {
    "max-model-len", "gpu-memory-utilization", "enable-expert-parallel", "distributed-executor-backend",
    "max-num-seqs", "max-num-batched-tokens",
}  # fmt: skip
"""vLLM's flags for what a layout needs; nothing else calls them so."""
OF_VLLM = LAYOUT | {
    "trust-remote-code", "kv-cache-dtype", "enforce-eager", "enable-prefix-caching", "no-enable-prefix-caching",
    "served-model-name", "disable-log-requests", "enable-auto-tool-choice", "tool-call-parser", "reasoning-parser",
    "swap-space", "cpu-offload-gb", "enable-chunked-prefill", "speculative-config", "compilation-config",
    "kv-transfer-config", "tokenizer-mode", "load-format", "block-size", "async-scheduling", "enable-eplb",
}  # fmt: skip
OF_SGLANG = frozenset(
    {"mem-fraction-static", "tp-size", "dp-size", "ep-size", "enable-dp-attention", "context-length", "model-path"}
)
"""SGLang's own; it has vLLM's names for some sizes as well."""
OF_TRTLLM = frozenset(
    {
        "kv-cache-config", "enable-attention-dp", "moe-expert-parallel-size", "moe-tensor-parallel-size", "max-seq-len",
        "max-num-tokens", "max-batch-size", "cuda-graph-config",
    }
)  # fmt: skip
"""TensorRT-LLM's, whose options have vLLM's names for some sizes too, and are no flags."""
_NESTED = ("config", "kwargs", "overrides", "per-prompt", "loras", "kv-hints")
"""How the keys end whose values are mappings; any other mapping is of another program's file."""


def launches_of(root: Mapping, form: str) -> Iterator[Launch]:
    """The launch of a file of flags; none where the mapping is something else."""
    keys = {key.text.replace("_", "-"): value for key, value in root.items()}
    if any(isinstance(value, Mapping) and not key.endswith(_NESTED) for key, value in keys.items()):
        return
    command = _command(frozenset(keys))
    if command is None:
        return
    at = next(iter(root.items()))[0].span
    name = root.source.path.replace("\\", "/").rpartition("/")[2]
    names_model = "model" in keys or "model-path" in keys
    yield Launch(name, "config", form, at, argv=tuple(_words(command, name, at, names_model)), unit=name)


def _command(keys: frozenset[str]) -> tuple[str, ...] | None:
    """The words that start the engine whose flags the keys are."""
    if keys & OF_TRTLLM:
        return None
    if len(keys & OF_SGLANG) >= 2 or (keys & OF_SGLANG and keys & SIZES):
        return ("python3", "-m", "sglang.launch_server")
    if ("model" in keys and keys & LAYOUT) or (keys & SIZES and len(keys & OF_VLLM) >= 2):
        return ("vllm", "serve")
    return None


def _words(command: tuple[str, ...], name: str, at: Span, names_model: bool) -> Iterator[Word]:
    yield from (Located(word, at, origin="derived") for word in command)
    if not names_model and command[0] == "vllm":
        yield Unknown("the command that names this file names the model", at, settle_by="naming the model in the file")
    yield Located("--config", at, origin="derived")
    yield Located(name, at, origin="derived")
    if not names_model:
        yield Unknown("other flags may stand beside the file", at, "the command that names this file")
