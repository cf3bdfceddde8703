"""The environment of a Kubernetes container: its own variables, ConfigMaps of the same folder, and what is not told."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as EnvMapping
from functools import lru_cache

from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._objects import text
from shardlint.manifests._values import value_of
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence

AT_RUN_TIME = "set when the pod starts"


def environment(container: Node, document: Document, given: EnvMapping[str, Maybe[str]]) -> dict[str, Maybe[str]]:
    """Variables in force, by name; `given` are those that a controller adds."""
    env = dict(given)
    for source in _entries(container.get("envFrom")):
        env.update(_from_source(source, document))
    return variables(container.get("env"), document, env)


def variables(entries: Node | None, document: Document, given: EnvMapping[str, Maybe[str]]) -> dict[str, Maybe[str]]:
    """The same for a list of `name` and `value` (or `valueFrom`)."""
    env = dict(given)
    for entry in _entries(entries):
        if name := text(entry.get("name")):
            env[name] = _value(entry, document, env)
    return env


def _entries(node: Node | None) -> Iterator[Node]:
    return iter(node) if isinstance(node, Sequence) else iter(())


def _value(entry: Node, document: Document, env: EnvMapping[str, Maybe[str]]) -> Maybe[str]:
    value = entry.get("value")
    if isinstance(value, Scalar):
        return Located("", value.span, value.spelled) if value.is_null else value_of(value, env)
    source = entry.get("valueFrom")
    if source is None:
        return Located("", entry.span, "")
    return _from_elsewhere(source, document)


def _from_elsewhere(source: Node, document: Document) -> Maybe[str]:
    config = source.get("configMapKeyRef")
    if config is not None:
        return _config_value(config, document)
    secret = source.get("secretKeyRef")
    if secret is not None:
        return Unknown(f"it comes from the Secret {text(secret.get('name'))}", secret.span, source.spelled)
    field = source.get("fieldRef", "fieldPath") or source.get("resourceFieldRef", "resource")
    return Unknown(f"{AT_RUN_TIME}, from {text(field)}" if field else AT_RUN_TIME, source.span, source.spelled)


def _config_value(reference: Node, document: Document) -> Maybe[str]:
    name, key = text(reference.get("name")), text(reference.get("key"))
    config = _config_map(document, name)
    if config is None:
        return _missing(name, reference)
    value = config.get("data", key)
    if isinstance(value, Scalar):
        return value_of(value)
    return Unknown(f"the ConfigMap {name} has no key {key}", reference.span, reference.spelled)


def _missing(name: str, reference: Node) -> Unknown:
    reason = f"it comes from the ConfigMap {name}, which is not in this folder"
    return Unknown(reason, reference.span, reference.spelled, settle_by="put the ConfigMap beside the file")


def _config_map(document: Document, name: str) -> Mapping | None:
    from shardlint.manifests._neighbours import near

    return near(document, document.library, name, "ConfigMap") if name else None


def _from_source(source: Node, document: Document) -> Iterator[tuple[str, Maybe[str]]]:
    prefix, name = text(source.get("prefix")), text(source.get("configMapRef", "name"))
    config = _config_map(document, name)
    data = config.get("data") if config is not None else None
    for key, value in _values_of(data) if isinstance(data, Mapping) else ():
        yield prefix + key, value


@lru_cache(maxsize=16)
def _values_of(data: Mapping) -> tuple[tuple[str, Maybe[str]], ...]:
    """The values of a ConfigMap, which may be large and stand beside many pods."""
    return tuple((key.text, value_of(value)) for key, value in data.items() if isinstance(value, Scalar))
