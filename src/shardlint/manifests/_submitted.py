"""Commands that hand an engine's arguments to a launcher, which submits a job with that engine (`sml advanced`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.deployment import Launch, Word
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.manifests import _devices, _stated
from shardlint.manifests._docker_run import after, text_of
from shardlint.text import shell

_COMMANDS = {"vllm": ("vllm", "serve"), "sglang": _stated.SGLANG}


def read(command: shell.Command, base: Launch) -> Launch | None:
    """The engine that the launcher starts, on the nodes that it is told; None for any other command."""
    words = command.words
    if len(words) < 2 or [text_of(word).rpartition("/")[2] for word in words[:2]] != ["sml", "advanced"]:
        return None
    options, places = _options(words)
    framework = options.get("framework") or options.get("serving-framework")
    engine = _COMMANDS.get(framework.value) if isinstance(framework, Located) else None
    if engine is None:
        return None
    place = places.get("framework-args")
    inside = shell.read(command.texts[place]).commands if place is not None else ()
    at = inside[0].words[0].span if inside else base.at
    arguments = inside[0].words if inside else ()
    return base._replace(
        argv=(*_stated.command(engine, at or base.at), *arguments),
        pods=_nodes(options, base.at),
        replicas=_first(options, "replicas", "slurm-workers"),
    )


def _options(words: Sequence[Word]) -> tuple[dict[str, Word], dict[str, int]]:
    """The options by their names, and which word each value is."""
    found: dict[str, Word] = {}
    places: dict[str, int] = {}
    for place, word in enumerate(words[2:], 2):
        text = text_of(word)
        if not text.startswith("--"):
            continue
        name, equals, _ = text[2:].partition("=")
        if equals:
            found[name] = after(word, len(name) + 3)
        elif place + 1 < len(words):
            found[name], places[name] = words[place + 1], place + 1
    return found, places


def _first(options: Mapping[str, Word], *names: str) -> Maybe[int] | None:
    word = next((options[name] for name in names if name in options), None)
    return None if word is None else _devices.count(word)


def _nodes(options: Mapping[str, Word], at: Span) -> Maybe[int] | None:
    """The nodes of one copy: as said, else the job's over its workers."""
    own = _first(options, "nodes-per-replica", "slurm-nodes-per-worker")
    nodes, workers = _first(options, "slurm-nodes"), _first(options, "slurm-workers")
    if own is not None or nodes is None or workers is None:
        return own or nodes
    if isinstance(nodes, Unknown) or isinstance(workers, Unknown):
        return nodes if isinstance(nodes, Unknown) else workers
    if not workers.value or nodes.value % workers.value:
        return Unknown(f"{nodes.value} nodes / {workers.value} workers does not come out even", at)
    terms = f"{nodes.value} nodes / {workers.value} workers"
    return Located(nodes.value // workers.value, nodes.span, nodes.spelled, "derived", terms)
