"""The public calls for one command: the same road as a manifest's, with the world given by hand."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from shardlint.check.facts import DeploymentFacts
from shardlint.check.reading import FileReading, read_document
from shardlint.check.run import judge_all
from shardlint.check.settings import Settings
from shardlint.engines import engine
from shardlint.facts import Accelerator, accelerators
from shardlint.facts.hardware import Hardware, Node
from shardlint.findings import Report, Unknown
from shardlint.layout import Layout
from shardlint.text import Document, Fragment, Library, ModelFiles, Source

COMMAND_PATH = "<command>"
UNKNOWN_CARD = Accelerator("", "a GPU", "", None, None, None, None)
MOST_NODES = 100_000
"""Beyond any cluster; each is kept on its own."""


class OneModel(Library):
    """A library that knows one model, under whatever name the command gives it, and no other files."""

    def __init__(self, config: Mapping[str, Any], side_files: Mapping[str, Any] | None) -> None:
        self._config = Source("config.json", json.dumps(config))
        self._side_files = tuple((name, Source(name, json.dumps(file))) for name, file in (side_files or {}).items())

    def model(self, model_id: str) -> ModelFiles:
        return ModelFiles(model_id, self._config, self._side_files, origin="the config given")

    def sibling(self, path: str) -> Unknown:
        return Unknown(f"{path} is not given beside the command")


def check_command(
    command: Sequence[str] | str,
    *,
    config: Mapping[str, Any],
    side_files: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    gpus_per_node: int | None = None,
    nodes: int = 1,
    gpu: str | None = None,
    engine_version: str | None = None,
) -> Report:
    """What shardlint finds in one command (`["vllm", "serve", ...]` or its text) for a model's config.json.

    `side_files` maps file names of the model's repository to their content, `gpu` names the card, `nodes` the
    hosts that start this command together, `engine_version` the release, the newest that is known where it is not
    given.  Never raises for what command and config say: bad flags are findings.
    Raises ValueError for numbers of GPUs or nodes that no cluster has.
    """
    library = OneModel(config, side_files)
    reading, settings = _read(command, library, env, gpus_per_node, nodes, gpu, engine_version)
    return judge_all([reading], library, settings)


def lay_out(
    command: Sequence[str] | str,
    *,
    config: Mapping[str, Any],
    side_files: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    gpus_per_node: int | None = None,
    nodes: int = 1,
    gpu: str | None = None,
    engine_version: str | None = None,
) -> Layout:
    """The ranks that one command starts, and what each holds; the same arguments as `check_command`.

    What cannot be known is None in the ranks and explained in `Layout.unknown`; why the engine refuses the layout,
    where it does, is in `Layout.refused`.
    """
    library = OneModel(config, side_files)
    reading, settings = _read(command, library, env, gpus_per_node, nodes, gpu, engine_version)
    if not reading.deployments:
        return Layout((), unknown="the command starts no engine that is known")
    facts = DeploymentFacts(reading.deployments[0], library, settings)
    if not facts.engine.laid_out:
        return Layout((), unknown=f"layouts of {facts.engine.label} are not judged")
    layout = facts.layout
    return Layout((), unknown=layout.reason) if isinstance(layout, Unknown) else layout


def _read(
    command: Sequence[str] | str,
    library: OneModel,
    env: Mapping[str, str] | None,
    gpus_per_node: int | None,
    nodes: int,
    gpu: str | None,
    engine_version: str | None,
) -> tuple[FileReading, Settings]:
    hardware = _hardware(gpus_per_node, nodes, gpu)
    release = engine_version or engine("vllm").newest
    settings = Settings(vllm=release, hardware=hardware, environment=env or {})
    return read_command(command, library, settings), settings


def read_command(command: Sequence[str] | str, library: Library, settings: Settings) -> FileReading:
    """What a command starts, as if it stood in a file of its own."""
    source = Source(COMMAND_PATH, command if isinstance(command, str) else shlex.join(command))
    return read_document(Document(source, "shell", script=Fragment.whole(source)), library, settings)


def _hardware(gpus_per_node: int | None, nodes: int, gpu: str | None) -> Hardware | None:
    """Equal nodes; None where nobody says how many GPUs they have."""
    if not 1 <= nodes <= MOST_NODES:
        raise ValueError(f"nodes is {nodes}, and there are 1 to {MOST_NODES}")
    if gpus_per_node is None:
        return None
    if gpus_per_node < 0:
        raise ValueError(f"gpus_per_node is {gpus_per_node}, and must be 0 or more")
    return Hardware((Node(((gpus_per_node, _card(gpu)),)),) * nodes)


def _card(name: str | None) -> Accelerator:
    """The card of that name, with what is certain of it; a card of which nothing is known where there is none."""
    found = accelerators.find(name) if name else ()
    return accelerators.agreed(found, name or "a GPU") if found else UNKNOWN_CARD
