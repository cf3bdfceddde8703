"""Objects that hold several kinds of pods (roles), each with copies of its own; and groups that make one instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import _pods
from shardlint.manifests._objects import text
from shardlint.text.documents import Document
from shardlint.text.nodes import Node, Sequence

Variables = Mapping[str, Maybe[str]]


def entries(node: Node | None) -> Iterator[Node]:
    """The entries of a list; none of anything else."""
    return iter(node) if isinstance(node, Sequence) else iter(())


def product(*counts: Maybe[int] | None) -> Maybe[int] | None:
    """Copies of copies; what is not written counts as one, None where nothing is written."""
    written = [count for count in counts if count is not None]
    unknown = next((count for count in written if isinstance(count, Unknown)), None)
    numbers = [count for count in written if isinstance(count, Located)]
    if unknown is not None or len(numbers) < 2:
        return unknown or (numbers[0] if numbers else None)
    factors = " x ".join(str(number.value) for number in numbers)
    value = reduce(int.__mul__, (number.value for number in numbers))
    return Located(value, numbers[-1].span, numbers[-1].spelled, "derived", factors)


def role(base: Launch, named: Node | str, copies: Node | None = None, pods: Maybe[int] | None = None) -> Launch:
    """What all launches of a role share: `Kind/name/role`, its copies in all copies of the object."""
    name = named if isinstance(named, str) else text(named)
    at = base.at if isinstance(named, str) else named.span
    replicas = product(base.replicas, _pods.number(copies))
    return base._replace(name=f"{base.name}/{name}" if name else base.name, at=at, replicas=replicas, pods=pods)


def group(
    leader: Node | None,
    worker: Node | None,
    base: Launch,
    document: Document,
    variables: Callable[[str], Variables],
) -> Iterator[Launch]:
    """Leader and workers of one instance by their pod specs; one template alone serves both.

    `variables` tells what the controller adds to the containers of a leader, a worker, or ("") either.
    """
    base = base._replace(group=f"{base.name}:{base.at.line}:{base.at.column}")
    for name, spec in (("leader", leader), ("worker", worker)):
        own = name if leader is not None else ""
        yield from _pods.launches(spec, base._replace(role=own), document, variables(own))


def as_text(number: Maybe[int] | None, otherwise: Unknown) -> Maybe[str]:
    """A number as the value of a variable."""
    return number.with_value(str(number.value)) if isinstance(number, Located) else number or otherwise
