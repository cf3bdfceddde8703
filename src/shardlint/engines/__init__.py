"""Inference engines: which one a command starts, what its flags say, and what is true of its releases.

An engine is a folder here: a package with `ENGINES`, and its data files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module

from shardlint.deployment import Deployment, Launch, Server
from shardlint.engines import recognising
from shardlint.engines.config_file import FlagsIn, not_read
from shardlint.engines.cutting import Cut, Cutting
from shardlint.engines.engine import Engine
from shardlint.engines.reading import deployment
from shardlint.engines.versions import Version

__all__ = ["Cut", "Cutting", "Engine", "Version", "engine", "engines", "read", "recognise"]


@cache
def engines() -> tuple[Engine, ...]:
    """All engines, by the folders beside this file. A folder that does not load raises what it raised."""
    here = os.path.dirname(__file__)  # noqa: PTH120 pathlib costs 5 ms
    with os.scandir(here) as entries:
        folders = sorted(entry.name for entry in entries if entry.is_dir() and entry.name[0] not in "._")
    return tuple(found for folder in folders for found in import_module(f"{__name__}.{folder}").ENGINES)


def engine(name: str, among: Sequence[Engine] | None = None) -> Engine:
    """The engine of that name. Raises KeyError where there is none."""
    return {found.name: found for found in (engines() if among is None else among)}[name]


def recognise(launch: Launch, among: Sequence[Engine] | None = None) -> str | None:
    """The name of the engine that a launch starts, or None."""
    found = recognising.recognise(launch, engines() if among is None else among)
    return None if found is None else found[0].name


def read(
    server: Server,
    among: Sequence[Engine] | None = None,
    flags_in: FlagsIn = not_read,
    vllm: str | None = None,
    upgrade: str | None = None,
) -> Deployment:
    """What the engine of a server was told.

    `flags_in` reads the file that `--config FILE` names; `vllm` is the release of vLLM where the server does not say,
    `upgrade` the one that is taken whatever it says.
    """
    own = engine(server.engine, among)
    found = recognising.recognise(server.primary, (own,))
    start = found[1] if found is not None else recognising.Start(own.entry or own.commands[0], 0)
    if own.name != "vllm":
        return deployment(server, own, start, flags_in)
    return deployment(server, own, start, flags_in, vllm, upgrade)
