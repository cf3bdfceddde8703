"""One Truss: the engine that its container starts, or that its code starts by what the configuration says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Maybe, Problem, Unknown
from shardlint.manifests import _addresses, _installs, _requested_cards, _roles, _scripts, _stated
from shardlint.manifests._objects import text
from shardlint.manifests._pods import image_of
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar
from shardlint.text.source import Library

TRTLLM = ("trtllm-serve",)
_SERVERS = {"vllm": _stated.VLLM, "tgi": ("text-generation-launcher",)}
"""Servers that older configurations name."""
_FLAGS = {
    "tensor_parallel_count": "tensor-parallel-size",
    "tensor_parallel_size": "tensor-parallel-size",
    "pipeline_parallel_count": "pipeline-parallel-size",
    "pipeline_parallel_size": "pipeline-parallel-size",
    "moe_expert_parallel_size": "moe-expert-parallel-size",
    "moe_expert_parallel_option": "moe-expert-parallel-size",
    "max_seq_len": "max-seq-len",
    "max_batch_size": "max-batch-size",
    "max_num_tokens": "max-num-tokens",
}
"""What the section of TensorRT-LLM says of the layout."""
_SECTIONS = (("runtime", "patch_kwargs"), ("runtime",), ("build",))
"""Where it says so, the last word first."""
_ARGUMENTS = ("engine_args", "vllm_config", "vllm_engine_args", "vllm_args", "engine_kwargs", "sglang_args")
"""Mappings of arguments in the metadata of a model with code of its own."""
_TENSOR = ("tensor_parallel", "tensor_parallel_size", "tensor_parallelism", "tp_size")
_ONLY_SCRIPT = re.compile(r"^(?!.*(?:vllm|sglang|trtllm)).*\.sh\b", re.DOTALL)
"""A start command that leaves all to a script of the Truss."""
_TRTLLM_NAMES = re.compile(r"trt[-_]?llm|tensorrt[-_]?llm")
_NAMES = ("repo_id", "model_id", "model_repo", "main_model", "hf_model", "model")


def launches_of(root: Mapping, form: str, library: Library) -> Iterator[Launch | Problem]:
    """The launches of the Truss, and what it installs before them."""
    name = root.get("model_name")
    file = root.source.path.replace("\\", "/").rpartition("/")[2]
    cards = _requested_cards.either(_requested_cards.counted(root.get("resources", "accelerator")))
    base = Launch(
        f"truss/{text(name)}" if text(name) else file,
        "truss",
        form,
        (name or next(iter(root.items()))[0]).span,
        image=image_of(root.get("base_image", "image")),
        gpus_per_pod=cards.per_host,
        gpu=cards.gpu,
        unit=file,
    )
    yield from _installs.launches(root.get("requirements"), base)
    command = root.get("docker_server", "start_command")
    if isinstance(command, Scalar) and not command.is_null and not _ONLY_SCRIPT.search(command.text):
        yield from _scripts.launches_of(command.fragment(), form, library, _environment(root), base)
    elif isinstance(section := root.get("trt_llm"), Mapping):
        yield _of_trtllm(section, root, base)
    elif (server := _SERVERS.get(text(root.get("build", "model_server")).lower())) is not None:
        settings = [found for found in _stated.entries(root.get("build", "arguments")) if found.key.value != "endpoint"]
        yield base._replace(argv=_stated.command(server, base.at), settings=tuple(settings))
    else:
        yield from _of_code(root, base)


def _environment(root: Mapping) -> dict[str, Maybe[str]]:
    variables = root.get("environment_variables")
    return {
        key.text: value.located()
        for key, value in (variables.items() if isinstance(variables, Mapping) else ())
        if isinstance(value, Scalar) and not value.is_null
    }


def _of_trtllm(section: Mapping, root: Mapping, base: Launch) -> Launch:
    """What Baseten's builder and server of TensorRT-LLM are told."""
    settings: dict[str, ConfigEntry] = {}
    for path in _SECTIONS:
        for key, flag in _FLAGS.items():
            for found in _stated.entry(flag, section, *path, key):
                settings.setdefault(flag, found)
    model = _text(section.get("runtime", "patch_kwargs", "model_path"))
    model = model or _text(section.get("build", "checkpoint_repository", "repo")) or _weights(root)
    return base._replace(argv=_stated.command(TRTLLM, base.at, model), settings=tuple(settings.values()))


def _of_code(root: Mapping, base: Launch) -> Iterator[Launch]:
    """A model whose code starts an engine: which one the packages tell, with what the metadata."""
    engine = _engine(root, base)
    if engine is None:
        return
    metadata = root.get("model_metadata")
    parts = [part for name in _ARGUMENTS if metadata is not None and (part := metadata.get(name)) is not None]
    settings = [found for name in _TENSOR for found in _stated.entry("tensor-parallel-size", metadata, name)]
    settings += [found for part in parts for found in _stated.entries(part) if found.key.value not in _NAMES]
    model = _named(metadata) or _weights(root) or Unknown("the model's code names it", base.at)
    if engine is _stated.SGLANG:
        settings.append(ConfigEntry(Located("model-path", model.span, "model", "derived"), model))
    more = Unknown("the model's code decides", base.at, "the code of the Truss")
    argv = (*_stated.command(engine, base.at, None if engine is _stated.SGLANG else model), more)
    yield base._replace(argv=argv, settings=tuple(settings), env=_environment(root))


def _engine(root: Mapping, base: Launch) -> tuple[str, ...] | None:
    image = base.image.value if isinstance(base.image, Located) else ""
    packages = " ".join(text(entry) for entry in _roles.entries(root.get("requirements")))
    named = f" {image} {packages}".lower()
    if "vllm" in named or "sglang" in named:
        return _stated.VLLM if "vllm" in named else _stated.SGLANG
    return TRTLLM if _TRTLLM_NAMES.search(named) else None


def _named(metadata: Node | None) -> Maybe[str] | None:
    if metadata is None:
        return None
    places = [metadata, *(part for name in _ARGUMENTS if (part := metadata.get(name)) is not None)]
    return next((found for part in places for name in _NAMES if (found := _text(part.get(name))) is not None), None)


def _weights(root: Mapping) -> Maybe[str] | None:
    """The first model that is downloaded for the Truss."""
    for section, key in (("model_cache", "repo_id"), ("hf_cache", "repo_id"), ("weights", "source")):
        for entry in _roles.entries(root.get(section)):
            if (address := _addresses.model_at(entry.get(key))) is not None:
                return address
    return None


def _text(node: Node | None) -> Maybe[str] | None:
    return value_of(node) if isinstance(node, Scalar) and not node.is_null else None
