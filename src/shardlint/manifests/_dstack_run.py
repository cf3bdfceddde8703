"""One dstack configuration: its commands, with the variables that dstack sets for them."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Problem, Unknown
from shardlint.manifests import _requested_cards, _roles, _scripts
from shardlint.manifests._objects import text
from shardlint.manifests._pods import image_of, number
from shardlint.manifests._splices import word_of
from shardlint.manifests._started import started
from shardlint.manifests._values import fragments
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.shell import joined
from shardlint.text.source import Library

_AT_RUN_TIME = Unknown("set when the run starts, by dstack")
_RUN_TIME = ("DSTACK_NODE_RANK", "DSTACK_MASTER_NODE_IP", "DSTACK_NODES_IPS", "DSTACK_RUN_NAME")


def launches_of(root: Mapping, form: str, library: Library) -> Iterator[Launch | Problem]:
    """The launches of the run, or of each of its groups of replicas, which may have commands of their own."""
    kind, called = text(root.get("type")), text(root.get("name"))
    file = root.source.path.replace("\\", "/").rpartition("/")[2]
    at = (root.get("name") or root.get("type") or root).span
    base = Launch(f"{kind}/{called}" if called else file, kind, form, at, unit=f"{file}:{root.span.line}")
    groups = root.get("replicas")
    if not isinstance(groups, Sequence):
        yield from _run([root], base._replace(replicas=number(groups)), library)
        return
    for place, group in enumerate(groups):
        own = text(group.get("name")) or str(place)
        yield from _run(
            [group, root],
            base._replace(
                name=f"{base.name}/{own}",
                unit=f"{base.unit}/{place}",
                at=group.span,
                replicas=number(group.get("count")),
            ),
            library,
        )


def _run(layers: list[Node], base: Launch, library: Library) -> Iterator[Launch | Problem]:
    """`layers`: where a key may stand, the nearest first."""
    cards = _requested_cards.specified(_first(layers, "resources", "gpu"))
    nodes = number(_first(layers, "nodes"))
    base = base._replace(
        image=image_of(_first(layers, "image")), gpu=cards.gpu, gpus_per_pod=cards.per_host, pods=nodes
    )
    env = _environment(layers, cards.per_host, nodes)
    commands = [
        entry.fragment()
        for entry in _roles.entries(_first(layers, "commands"))
        if isinstance(entry, Scalar) and not entry.is_null
    ]
    if commands:
        yield from _scripts.launches_of(joined(commands, "\n"), base.form, library, env, base)
        return
    for command in started(fragments(_first(layers, "entrypoint"), {}), (), env, word_of):
        yield base._replace(
            argv=command.argv,
            env=command.env,
            at=command.at or base.at,
            entrypoint_of_image=command.entrypoint_of_image,
        )


def _first(layers: list[Node], *path: str) -> Node | None:
    return next((node for layer in layers if (node := layer.get(*path)) is not None), None)


def _environment(layers: list[Node], cards: Maybe[int] | None, nodes: Maybe[int] | None) -> dict[str, Maybe[str]]:
    """The configuration's own variables, and those that dstack sets."""
    unsaid = Unknown("no number of cards is written")
    total = _roles.product(cards, nodes) if cards is not None else None
    env: dict[str, Maybe[str]] = dict.fromkeys(_RUN_TIME, _AT_RUN_TIME)
    env["DSTACK_GPUS_PER_NODE"] = _roles.as_text(cards, unsaid)
    env["DSTACK_GPUS_NUM"] = _roles.as_text(total, unsaid)
    env["DSTACK_NODES_NUM"] = _roles.as_text(nodes, unsaid) if nodes is not None else Located("1", origin="default")
    for layer in reversed(layers):
        env.update(_variables(layer.get("env")))
    return env


def _variables(node: Node | None) -> Iterator[tuple[str, Maybe[str]]]:
    """A list of `NAME=value` or a mapping; a name alone is filled in by whoever starts the run."""
    for key, value in node.items() if isinstance(node, Mapping) else ():
        if isinstance(value, Scalar) and not value.is_null:
            yield key.text, value.located()
    for entry in _roles.entries(node):
        if not isinstance(entry, Scalar):
            continue
        written = entry.fragment()
        name, equals, _ = written.text.partition("=")
        if equals:
            yield name, word_of(written.part(len(name) + 1, len(written.text)))
        else:
            yield name, Unknown("taken from the environment in which the run is started", entry.span, name)
