"""llm-d recipes: the configuration of an endpoint picker with the flags of prefill and decode servers in the same file.

A launch script starts `vllm serve` for each role; it knows the model and the nodes, and gives every expert-parallel
role as many data-parallel ranks as those have GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._objects import YAML_FILES, of_kind, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar
from shardlint.text.source import Library

NAME = "llmd-recipe"
FILES = YAML_FILES
KINDS = ("EndpointPickerConfig",)
ROLES = ("prefill", "decode")
MORE = "extra-args"
NO_FLAGS = (MORE, "env")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launch of each role that stands beside the configuration."""
    for item in of_kind(document, *KINDS):
        for name in ROLES:
            role, key = item.get(name), item.key(name)
            if isinstance(role, Mapping) and key is not None:
                yield _launch(role, f"EndpointPickerConfig/{name}", key)


def _launch(role: Mapping, name: str, key: Scalar) -> Launch:
    from shardlint.manifests import _stated

    by_script = Unknown("the script that reads the recipe decides it", key.span)
    return Launch(
        name,
        "EndpointPickerConfig",
        NAME,
        key.span,
        argv=(*_stated.command(_stated.VLLM, key.span, by_script), *_words(role.get(MORE))),
        settings=tuple(_settings(role, by_script)),
        env=_environment(role.get("env")),
        gpus_per_pod=by_script,
        pods=by_script,
        unit=name,
    )


def _words(more: Node | None) -> Iterator[Maybe[str]]:
    """The text as the script splits it: at blanks, with quotes left in place."""
    from shardlint.manifests._values import word

    if isinstance(more, Scalar) and not more.is_null:
        fragment = more.fragment()
        for found in re.finditer(r"\S+", fragment.text):
            yield word(fragment.part(*found.span()))


def _settings(role: Mapping, by_script: Unknown) -> Iterator[ConfigEntry]:
    from shardlint.manifests import _stated

    written = [entry for entry in _stated.entries(role) if entry.key.value not in NO_FLAGS]
    yield from (
        entry._replace(key=entry.key.with_value(_FLAGS.get(entry.key.value, entry.key.value))) for entry in written
    )
    if text(role.get("enable-expert-parallel")) == "true" and "dp" not in role:
        yield ConfigEntry(Located("data-parallel-size", by_script.span, origin="derived"), by_script)


_FLAGS = {"tp": "tensor-parallel-size", "pp": "pipeline-parallel-size", "dp": "data-parallel-size"}


def _environment(variables: Node | None) -> dict[str, Maybe[str]]:
    from shardlint.manifests._values import value_of

    items = variables.items() if isinstance(variables, Mapping) else ()
    return {key.text: value_of(value) for key, value in items if isinstance(value, Scalar) and not value.is_null}
