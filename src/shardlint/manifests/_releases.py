"""Values of a chart inside an object that installs it, handed to the forms that read values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint import manifests
from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.manifests._inner import documents_in
from shardlint.manifests._neighbours import near
from shardlint.manifests._objects import kind, name, text
from shardlint.text.assembled import TooLarge, Tree, assemble, merged
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Library

_STEP = re.compile(r"((?:[^.\\\[]|\\.)+)|\[(\d+)\]")


def of_application(
    item: Mapping, helm: Node, form: str, document: Document, library: Library
) -> Iterator[Launch | Problem]:
    """Argo CD: `valuesObject` wins over `values`, and parameters win over both."""
    values: list[Tree] = []
    written = helm.get("values")
    if helm.get("valuesObject") is None and isinstance(written, Scalar):
        yield from documents_in(written).problems
        values += _parsed(written)
    values += [node for node in (helm.get("valuesObject"),) if node is not None]
    parameters = helm.get("parameters")
    for parameter in parameters if isinstance(parameters, Sequence) else ():
        value = parameter.get("value")
        if isinstance(value, Scalar) and (path := text(parameter.get("name"))):
            values.append(at_path(path, value))
    yield from _launches(item, values, form, document, library)


def of_release(item: Mapping, form: str, document: Document, library: Library) -> Iterator[Launch | Problem]:
    """Flux: inline values win over those of `valuesFrom`; k3s has a HelmChart with `valuesContent`."""
    values: list[Tree] = []
    sources = item.get("spec", "valuesFrom")
    for source in sources if isinstance(sources, Sequence) else ():
        config = near(document, library, text(source.get("name")), "ConfigMap") if kind(source) == "ConfigMap" else None
        held = config.get("data", text(source.get("valuesKey")) or "values.yaml") if config is not None else None
        if isinstance(held, Scalar):
            path = text(source.get("targetPath"))
            values += [at_path(path, held)] if path else _parsed(held)
    for field in ("valuesContent", "values"):
        inline = item.get("spec", field)
        if isinstance(inline, Scalar):
            yield from documents_in(inline).problems
            values += _parsed(inline)
        elif inline is not None:
            values.append(inline)
    yield from _launches(item, values, form, document, library)


def _parsed(value: Scalar) -> list[Tree]:
    """YAML in YAML."""
    return [root for document in documents_in(value).documents if (root := document.root) is not None]


def at_path(path: str, value: Tree) -> Tree:
    """`a.b[0].c` as mappings in each other; an index of a list that nothing else fills stands for its only entry."""
    for key, index in reversed(_STEP.findall(path)):
        value = [value] if index else {re.sub(r"\\(.)", r"\1", key): value}
    return value


def _launches(
    item: Mapping, values: list[Tree], form: str, document: Document, library: Library
) -> Iterator[Launch | Problem]:
    return of_values(values, Launch(name(item), kind(item), form, item.span), document, library)


def of_values(values: list[Tree], base: Launch, document: Document, library: Library) -> Iterator[Launch | Problem]:
    """The launches of values one over the other, under the name of what installs the chart."""
    whole: Tree | None = None
    for one in values:
        whole = merged(whole, one)
    if whole is None:
        return
    try:
        if isinstance(whole, Mapping):
            inner: tuple[Document, ...] = (document._replace(kind="yaml", root=whole),)
        else:
            inner = assemble([whole], document.source)
    except TooLarge:
        yield Problem(base.at, "The values grow beyond all measure: aliases inside aliases.")
        return
    for values_document in inner:
        found = manifests.launches(values_document, library)
        yield from found.problems
        for launch in found.launches:
            yield _renamed(launch, base, alone=len(found.launches) == 1)


def _renamed(launch: Launch, base: Launch, *, alone: bool) -> Launch:
    part = launch.name.partition("/")[2]
    named = base.name if alone or not part else f"{base.name} {part}"
    return launch._replace(name=named, kind=base.kind, form=base.form, unit=f"{named}:{launch.unit}")
