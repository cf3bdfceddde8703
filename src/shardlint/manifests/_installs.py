"""Packages that a platform installs before it starts an engine: their pins tell the engine's release."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe
from shardlint.manifests import _roles
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Node, Scalar

INSTALLER = ("pip", "install")


def launches(packages: Node | None, base: Launch) -> Iterator[Launch]:
    """The installer that the platform runs for a list of requirements; none where nothing is listed."""
    words = [value_of(entry) for entry in _roles.entries(packages) if isinstance(entry, Scalar) and not entry.is_null]
    if words:
        yield launch_of(words, base)


def launch_of(words: list[Maybe[str]], base: Launch) -> Launch:
    """The installer with these requirements."""
    at = words[0].span or base.at
    return base._replace(at=at, argv=(*(Located(word, at, origin="derived") for word in INSTALLER), *words))
