"""One engine instance as its engine understands it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardlint.deployment.launch import NOTHING, Server
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.findings.records import NamedTuple


class FlagProblem(NamedTuple):
    """A flag that the engine would not take as written: the engine's own words, for rules to judge."""

    at: Located[Any] | Span
    message: str
    ignored: bool = False
    """The engine goes on without the flag, where it refuses to start for all others."""
    depends_on_release: bool = False
    """Another release takes it as it stands."""
    near: tuple[str, ...] = ()
    """Spellings that may have been meant, the nearest first."""
    adds: bool = False
    """A build that knows more flags and words than any release may take it."""


class Deployment(NamedTuple):
    """What one engine instance was told. Knobs that were not written are absent; defaults are the engine's."""

    name: str
    kind: str
    form: str
    at: Span
    engine: str
    server: Server
    image_tag: Maybe[str] | None = None
    engine_version: Maybe[str] | None = None
    """A release of the engine; Unknown for latest, nightly, digests and images that count by their own numbers."""
    model: Maybe[str] | None = None
    knobs: Mapping[str, Maybe[Any]] = NOTHING
    engine_fields: Mapping[str, Maybe[Any]] = NOTHING
    gpus_per_pod: Maybe[int] | None = None
    gpu: Maybe[str] | None = None
    pods: Maybe[int] | None = None
    replicas: Maybe[int] | None = None
    flag_problems: tuple[FlagProblem, ...] = ()
    open_words: tuple[Unknown, ...] = ()
    """Words that may hold any number of further flags (`$EXTRA_ARGS`): what is not written may stand there."""

    @property
    def env(self) -> Mapping[str, Maybe[str]]:
        return self.server.primary.env
