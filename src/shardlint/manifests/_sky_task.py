"""One SkyPilot task: its scripts, with the variables that SkyPilot sets for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Problem, Unknown
from shardlint.manifests import _requested_cards, _roles, _scripts
from shardlint.manifests._objects import text
from shardlint.manifests._pods import number
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar
from shardlint.text.source import Library

_OWN_NODE = re.compile(r"SKYPILOT_NODE_RANK|SKYPILOT_NODE_IPS|SKYPILOT_NUM_NODES|ray/start_cluster")
"""What a script asks for whose nodes work together."""
_IMAGE = "docker:"
_AT_RUN_TIME = Unknown("set when the task starts, by SkyPilot")
_RUN_TIME = ("SKYPILOT_NODE_RANK", "SKYPILOT_NODE_IPS", "SKYPILOT_TASK_ID", "SKYPILOT_CLUSTER_INFO")


def launches_of(task: Mapping, form: str, library: Library) -> Iterator[Launch | Problem]:
    """The launches of setup and run, which share what is set for them."""
    run = task.get("run")
    if not isinstance(run, Scalar):
        return
    cards = _requested_cards.either(_alternatives(task.get("resources")))
    nodes = number(task.get("num_nodes"))
    named = text(task.get("name"))
    file = task.source.path.replace("\\", "/").rpartition("/")[2]
    together = _OWN_NODE.search(run.text) is not None
    base = Launch(
        f"task/{named}" if named else file,
        "task",
        form,
        (task.get("name") or run).span,
        image=_image(task.get("resources")),
        gpus_per_pod=cards.per_host,
        gpu=cards.gpu,
        pods=nodes if together else None,
        replicas=_copies(task.get("service")) if together else _roles.product(nodes, _copies(task.get("service"))),
        unit=f"{file}:{task.span.line}",
    )
    env = _environment(task, cards.per_host, nodes)
    for script in (task.get("setup"), run):
        if isinstance(script, Scalar) and not script.is_null:
            yield from _scripts.launches_of(script.fragment(), form, library, env, base)


def _alternatives(resources: Node | None) -> list[_requested_cards.Cards]:
    """Every request for cards that would do."""
    if not isinstance(resources, Mapping):
        return []
    own = _of_one(resources)
    choices = [*_roles.entries(resources.get("any_of")), *_roles.entries(resources.get("ordered"))]
    return [cards for choice in choices for cards in (_of_one(choice) or own)] or own


def _of_one(resources: Node) -> list[_requested_cards.Cards]:
    cards = _requested_cards.counted(resources.get("accelerators"))
    machine = resources.get("instance_type")
    if not cards and isinstance(machine, Scalar) and not machine.is_null:
        return [_requested_cards.Cards(value_of(machine))]
    return cards


def _image(resources: Node | None) -> Maybe[str] | None:
    """The container that the task runs in; without `docker:` the image is that of a machine."""
    node = resources.get("image_id") if resources is not None else None
    if not isinstance(node, Scalar) or node.is_null:
        return None
    image = value_of(node)
    if isinstance(image, Unknown):
        return image if _IMAGE in image.spelled else None
    return image.with_value(image.value.removeprefix(_IMAGE)) if image.value.startswith(_IMAGE) else None


def _copies(service: Node | None) -> Maybe[int] | None:
    if service is None:
        return None
    return number(service.get("replicas")) or number(service.get("replica_policy", "min_replicas"))


def _environment(task: Mapping, cards: Maybe[int] | None, nodes: Maybe[int] | None) -> dict[str, Maybe[str]]:
    """The task's own variables, and those that SkyPilot sets."""
    env: dict[str, Maybe[str]] = dict.fromkeys(_RUN_TIME, _AT_RUN_TIME)
    env["SKYPILOT_NUM_GPUS_PER_NODE"] = _roles.as_text(cards, Unknown("no number of cards is written"))
    env["SKYPILOT_NUM_NODES"] = _roles.as_text(nodes, Unknown("")) if nodes else Located("1", origin="default")
    for part in ("envs", "secrets"):
        variables = task.get(part)
        for key, value in variables.items() if isinstance(variables, Mapping) else ():
            if isinstance(value, Scalar):
                missing = Unknown(f"it is given when the task starts: --env {key.text}", key.span, key.spelled)
                env[key.text] = missing if value.is_null else value.located()
    return env
