"""Nix: the containers and systemd services of a NixOS module, as far as its text tells."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "nix"
FILES = ("*.nix",)
LANGUAGES = ("nix",)


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches of every container and service that the module sets."""
    from shardlint.manifests import _nix  # only Nix needs it

    yield from _nix.launches_of(document.source, NAME, library)
