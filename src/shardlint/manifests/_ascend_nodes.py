"""Commands of vLLM-Ascend's nightly configurations, and which of their nodes make one engine instance."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.deployment import Launch, Word
from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.manifests import _interpolation, _roles, _stated
from shardlint.manifests._objects import text
from shardlint.manifests._pods import number
from shardlint.manifests._splices import word_of
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence

_FOLLOWS = re.compile(r"--headless\b|--(?:data-parallel-start-rank|node-rank)[\s=]+[1-9]")
_AT_RUN_TIME = Unknown("set when the node starts, by the test's runner")
_BY_RUNNER = "DEFAULT_PORT"
"""The word for which the runner takes a port that is free."""
_PHASES = (("prefiller", "prefiller_host_index"), ("decoder", "decoder_host_index"))


class Starter(NamedTuple):
    """What one node runs."""

    command: Node
    env: dict[str, Maybe[str]]
    follows: bool
    """It joins an instance that an earlier node leads."""


def launches_of(root: Mapping, form: str) -> Iterator[Launch]:
    """The launches of test cases, or of the nodes of a deployment."""
    file = root.source.path.replace("\\", "/").rpartition("/")[2]
    for case in _roles.entries(root.get("test_cases")):
        if (command := case.get("server_cmd")) is not None:
            called = case.get("name") or command
            name = f"test/{text(case.get('name')) or file}"
            base = Launch(name, "test", form, called.span, unit=f"{name}:{case.start}")
            starter = Starter(command, _variables(case.get("envs")), follows=False)
            yield from _started(starter, case.get("model"), base, case.get("server_cmd_extra"))
    starters = _by_template(root) if isinstance(root.get("templates"), Sequence) else _by_node(root)
    called = root.get("test_name") or root
    base = Launch(
        f"test/{text(called) or file}", "test", form, called.span, gpus_per_pod=number(root.get("npu_per_node"))
    )
    for phase, indexes in _groups(root, starters):
        named = base._replace(name=f"{base.name}/{phase}") if phase else base
        yield from _instances([starters[index] for index in indexes], root.get("model"), named)


def _by_node(root: Mapping) -> dict[int, Starter]:
    """`deployment`: a command for each node."""
    return {
        index: Starter(command, _variables(root.get("env_common"), node.get("envs")), _follows(command))
        for index, node in enumerate(_roles.entries(root.get("deployment")))
        if (command := node.get("server_cmd")) is not None
    }


def _by_template(root: Mapping) -> dict[int, Starter]:
    """`templates`: flags for each node, to be filled in from its entry of `config`."""
    configs = {_index(config, place): config for place, config in enumerate(_roles.entries(root.get("config")))}
    found: dict[int, Starter] = {}
    for place, template in enumerate(_roles.entries(root.get("templates"))):
        index = _index(template, place)
        command, config = template.get("server_cmd_template"), configs.get(index)
        if command is None:
            continue
        env = {**_variables(root.get("env_common"), template.get("envs")), "DP_RANK": _AT_RUN_TIME}
        env.update({name.upper(): value for name, value in _variables(config).items()})
        rank = number(config.get("dp_rank_start")) if config is not None else None
        found[index] = Starter(command, env, isinstance(rank, Located) and rank.value > 0)
    return found


def _index(node: Node, place: int) -> int:
    index = number(node.get("node_index"))
    return index.value if isinstance(index, Located) else place


def _follows(command: Node) -> bool:
    words = [text(entry) for entry in command] if isinstance(command, Sequence) else [text(command)]
    return _FOLLOWS.search(" ".join(words)) is not None


def _groups(root: Mapping, starters: dict[int, Starter]) -> Iterator[tuple[str, list[int]]]:
    """The nodes of prefill and decode, where they are told apart; else all."""
    routing, older = root.get("routing", "groups"), root.get("disaggregated_prefill")
    told = {phase: routing.get(phase) for phase, _ in _PHASES} if routing is not None else {}
    if older is not None:
        told = {phase: older.get(key) for phase, key in _PHASES}
    lists = [
        (phase, [index.value for entry in _roles.entries(node) if isinstance(index := number(entry), Located)])
        for phase, node in told.items()
    ]
    named = {index for _, indexes in lists for index in indexes}
    for phase, indexes in [*lists, ("", [index for index in starters if index not in named])]:
        if known := [index for index in indexes if index in starters]:
            yield phase, known


def _instances(nodes: list[Starter], model: Node | None, base: Launch) -> Iterator[Launch]:
    """The nodes instance by instance: each that does not follow leads a new one."""
    together: list[list[Starter]] = []
    for node in nodes:
        if node.follows and together:
            together[-1].append(node)
        else:
            together.append([node])
    for place, members in enumerate(together):
        own = base._replace(name=f"{base.name}/{place}") if len(together) > 1 else base
        pods = Located(len(members), own.at, "", "derived", f"{len(members)} nodes of the deployment")
        for node in members:
            role = "worker" if node.follows else "leader"
            shared = own._replace(pods=pods, group=own.name, role=role, unit=f"{own.name}:{node.command.start}")
            yield from _started(node, model, shared)


def _started(node: Starter, model: Node | None, base: Launch, *more: Node | None) -> Iterator[Launch]:
    """A whole command, or a list of flags behind `vllm serve MODEL`; no shell reads either of them."""
    words = [*_words(node.command, node.env), *(word for part in more for word in _words(part, node.env))]
    if not words:
        return
    if isinstance(words[0], Unknown) or words[0].value.startswith("-"):
        named = value_of(model) if isinstance(model, Scalar) and not model.is_null else None
        words = [*_stated.command(_stated.VLLM, base.at, named), *words]
    elif words[0].span is not None:
        base = base._replace(at=words[0].span)
    yield base._replace(argv=tuple(words), env=node.env)


def _words(node: Node | None, env: dict[str, Maybe[str]]) -> Iterator[Word]:
    """The words of a list, or of a text at whose blanks and newlines it is cut."""
    if isinstance(node, Scalar) and not node.is_null:
        text = _interpolation.interpolate(node.fragment(), env)
        yield from (word_of(fragment) for fragment in _interpolation.split(text))
    for entry in _roles.entries(node):
        if isinstance(entry, Scalar):
            yield word_of(_interpolation.interpolate(entry.fragment(), env))


def _variables(*layers: Node | None) -> dict[str, Maybe[str]]:
    return {
        key.text: _AT_RUN_TIME if value.text == _BY_RUNNER else value_of(value)
        for layer in layers
        if isinstance(layer, Mapping)
        for key, value in layer.items()
        if isinstance(value, Scalar) and not value.is_null
    }
