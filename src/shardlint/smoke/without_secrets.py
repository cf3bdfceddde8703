"""A manifest's text without its Secrets: what is published in a ConfigMap is read by more than its author."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

SECRETS = ("Secret", "SecretList")
HOLDERS = ("items", "objects")
"""Where Lists and OpenShift's Templates hold objects."""

Cut = tuple[int, int, str]
"""From where to where in the text, and what comes there instead."""


def without_secrets(text: str) -> str:
    """The other documents as they stand; a Secret within a list becomes null. Raises yaml.YAMLError for no YAML."""
    kept = text
    for begin, end, instead in sorted(_cuts(text), reverse=True):
        kept = kept[:begin] + instead + kept[end:]
    for _ in yaml.compose_all(kept, yaml.SafeLoader):
        pass  # an alias of what was left out is told here, and not by a pod that cannot start
    return kept


def _cuts(text: str) -> Iterator[Cut]:
    bounds = _bounds(text)
    for root, (begin, end) in zip(yaml.compose_all(text, yaml.SafeLoader), bounds, strict=True):
        if _is_secret(root):
            yield begin, end, ""  # with the comments around it, which may hold what it held before
        else:
            for node in _held(root):
                yield node.start_mark.index, node.end_mark.index, _null(text, node)


def _bounds(text: str) -> list[tuple[int, int]]:
    """From where to where each document goes, its marks and comments included."""
    events = yaml.parse(text, yaml.SafeLoader)
    ends = [event.end_mark.index for event in events if isinstance(event, yaml.DocumentEndEvent) and event.end_mark]
    return [*zip([0, *ends], ends, strict=False)]


def _held(node: yaml.Node | None) -> Iterator[yaml.Node]:
    """The Secrets that a list of objects holds."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value in HOLDERS and isinstance(value, yaml.SequenceNode):
            for item in value.value:
                if _is_secret(item):
                    yield item
                else:
                    yield from _held(item)


def _is_secret(node: yaml.Node | None) -> bool:
    fields = node.value if isinstance(node, yaml.MappingNode) else ()
    return any(key.value == "kind" and value.value in SECRETS for key, value in fields)


def _null(text: str, node: yaml.Node) -> str:
    """A block ends where the next thing begins, whose indentation has to stay."""
    old = text[node.start_mark.index : node.end_mark.index]
    last_line = old[old.rfind("\n") :]
    return "null" + (last_line if last_line.startswith("\n") and not last_line.strip() else "")
