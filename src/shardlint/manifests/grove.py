"""Grove: PodCliqueSet, whose cliques are kinds of pods, and whose scaling groups make one engine instance each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe
from shardlint.manifests._objects import YAML_FILES, of_kind, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Node
from shardlint.text.source import Library

NAME = "grove"
FILES = YAML_FILES
KINDS = ("PodCliqueSet", "PodGangSet")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every clique of every PodCliqueSet in the document."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _pods, _roles  # only where there is a pod to read

        template = item.get("spec", "template")
        if template is None:
            continue
        base = _pods.launch_of(item, NAME, item.get("spec", "replicas"))
        cliques = {text(clique.get("name")): clique for clique in _roles.entries(template.get("cliques"))}
        groups = template.get("podCliqueScalingGroups") or template.get("podCliqueScalingGroupConfigs")
        for group in _roles.entries(groups):
            names = [text(name) for name in _roles.entries(group.get("cliqueNames"))]
            members = [cliques.pop(name) for name in names if name in cliques]
            yield from _of_group(group, members, base, document)
        for clique in cliques.values():
            own = _roles.role(base, clique.get("name") or "", clique.get("spec", "replicas"))
            yield from _pods.launches(clique.get("spec", "podSpec"), own, document)


def _of_group(group: Node, cliques: list[Node], base: Launch, document: Document) -> Iterator[Launch]:
    """Cliques that are scaled together, the first of which leads; each has a number of pods."""
    from shardlint.manifests import _pods, _roles

    own = _roles.role(base, group.get("name") or "", group.get("replicas"), _total(cliques))
    own = own._replace(group=f"{own.name}:{own.at.line}:{own.at.column}")
    for place, clique in enumerate(cliques):
        role = "worker" if place else "leader"
        yield from _pods.launches(clique.get("spec", "podSpec"), own._replace(role=role), document)


def _total(cliques: list[Node]) -> Maybe[int] | None:
    from shardlint.manifests import _devices, _pods

    one = Located(1, origin="default", source="a clique without replicas")
    return _devices.added([_pods.number(clique.get("spec", "replicas")) or one for clique in cliques])
