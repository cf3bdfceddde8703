"""Devices that a container gets through Dynamic Resource Allocation (`resource.k8s.io`)."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.manifests import _devices
from shardlint.manifests._objects import beside, kind, text
from shardlint.manifests._values import value_of
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence

_NO_CARDS = Pattern(r"(?i)imex|channel|compute-?domain|rdma|roce|\befa\b|\bnics?\b")
"""What the names of claims say that are for links between cards, and whose templates controllers make."""
_PART = Pattern(r"(?i)\bmig\b|['\"]\d+g\.\d+gb")
"""What a class or a selector says that asks for slices of cards."""


def claimed(container: Node, spec: Node, document: Document) -> Maybe[int] | None:
    """The devices of all claims that the container names; None where it names none."""
    claims = container.get("resources", "claims")
    if not isinstance(claims, Sequence):
        return None
    return _devices.added([part for claim in claims for part in _of_claim(claim, spec, document)])


def _of_claim(claim: Node, spec: Node, document: Document) -> Iterator[Maybe[int]]:
    named = text(claim.get("name"))
    return of_object(text(_template(named, spec)), claim, document, named)


def part_of_card(container: Node, spec: Node, document: Document) -> Located[str] | None:
    """The class or selector by which a claim of the container asks for parts of cards (MIG)."""
    claims = container.get("resources", "claims")
    for claim in claims if isinstance(claims, Sequence) else ():
        name = text(_template(text(claim.get("name")), spec))
        source = beside(document, name, "ResourceClaimTemplate", "ResourceClaim") if name else None
        if source is not None and (found := _part(source)) is not None:
            return found
    return None


def _part(source: Node) -> Located[str] | None:
    inner = ("spec", "spec") if kind(source) == "ResourceClaimTemplate" else ("spec",)
    requests = source.get(*inner, "devices", "requests")
    for request in requests if isinstance(requests, Sequence) else ():
        exact = _exactly(request)
        selectors = exact.get("selectors")
        expressions = [
            entry.get("cel", "expression") for entry in (selectors if isinstance(selectors, Sequence) else ())
        ]
        for node in (*expressions, exact.get("deviceClassName")):
            if isinstance(node, Scalar) and _PART.search(node.text):
                return Located(node.text, node.span, node.spelled)
    return None


def of_object(name: str, claim: Node, document: Document, named: str = "") -> Iterator[Maybe[int]]:
    """The devices that the claim, or template of claims, of a name asks for; `claim` is what names it."""
    source = beside(document, name, "ResourceClaimTemplate", "ResourceClaim") if name else None
    if source is None and _NO_CARDS.search(f"{named} {name}"):
        return
    if source is None:
        yield Unknown(f"the resource claim {named or name} is not in this file", claim.span, claim.spelled)
        return
    inner = ("spec", "spec") if kind(source) == "ResourceClaimTemplate" else ("spec",)
    requests = source.get(*inner, "devices", "requests")
    wanted = text(claim.get("request"))
    for request in requests if isinstance(requests, Sequence) else ():
        if wanted in ("", text(request.get("name"))) and not _is_channel(request):
            yield count(request)


def _template(claim: str, spec: Node) -> Node | None:
    """The name of the template (or claim) that stands behind a pod's claim."""
    entries = spec.get("resourceClaims")
    for entry in entries if isinstance(entries, Sequence) else ():
        if text(entry.get("name")) == claim:
            return entry.get("resourceClaimTemplateName") or entry.get("resourceClaimName")
    return None


def _is_channel(request: Node) -> bool:
    """An IMEX channel comes as a device and is no card."""
    return text(_exactly(request).get("deviceClassName")).startswith("compute-domain")


def _exactly(request: Node) -> Node:
    """The request itself: under `exactly` since v1beta2, flat before."""
    exact = request.get("exactly")
    return exact if isinstance(exact, Mapping) else request


def count(request: Node) -> Maybe[int]:
    """The devices of one request."""
    if request.get("firstAvailable") is not None:
        return Unknown("the first available of several requests is taken", request.span, request.spelled)
    exact = _exactly(request)
    mode = exact.get("allocationMode")
    if text(mode) == "All" and mode is not None:
        return Unknown("every matching device of the node is allocated", mode.span, mode.spelled)
    number = exact.get("count")
    if isinstance(number, Scalar) and not number.is_null:
        return _devices.count(value_of(number))
    return Located(1, request.span, "", "default", "a device request without a count")
