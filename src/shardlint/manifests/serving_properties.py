"""`serving.properties` of DJL Serving, as the LMI containers of SageMaker read it."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.text.documents import Document
from shardlint.text.source import Fragment, Library

NAME = "serving-properties"
FILES = ("*.properties",)
LANGUAGES = ("properties",)
_TEMPLATE = ("{{", "${")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The one model that the file configures; nothing where it configures none (`gradle.properties`)."""
    from shardlint.manifests import _lmi  # few files are of the form
    from shardlint.text.properties import properties

    options: dict[str, Maybe[str]] = {}
    for key, value in properties(document.source):
        options[key.text.removeprefix("option.").lower()] = _word(value)
    own = [item.key for item in properties(document.source) if item.key.text.startswith("option.")]
    if not own and "engine" not in options:
        return
    source = document.source
    name = source.path.replace("\\", "/").rpartition("/")[2]
    first = next(iter(properties(source))).key
    base = Launch(name, "properties", NAME, first.span(0, len(first.text)), unit=name, gpu=options.get("instance_type"))
    yield _lmi.launch_of(options, base)


def _word(value: Fragment) -> Maybe[str]:
    text = value.text.strip()
    span = value.span(0, len(text)) if text else value.span(0, 0)
    if any(mark in text for mark in _TEMPLATE):
        return Unknown("templated", span, text, settle_by="render the template first")
    return Located(text, span, text)
