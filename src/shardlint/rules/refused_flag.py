"""A flag that the engine's own parser does not take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardlint.deployment import Deployment
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Change, Located, Problem, Rule, Span, Undecided, Unknown
from shardlint.rules._words import named


def applies(deployment: Deployment) -> bool:
    return bool(deployment.flag_problems)


def judge(deployment: Deployment, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem | Undecided]:
    own_build = _own_build(deployment)
    for problem in deployment.flag_problems:
        if problem.ignored:
            continue
        if problem.adds and own_build is not None:
            yield Undecided("engine_version", own_build)
        elif not problem.depends_on_release or engine_version.origin != "default":
            yield Problem(
                at=problem.at,
                message=f"{named(engine, engine_version)} refuses this command line: {problem.message}",
                help=tuple(_respelled(problem.at, near) for near in problem.near),
            )


def _respelled(at: Located[Any] | Span, near: str) -> str:
    """The flag that may have been meant, in the place of the one that is written."""
    if not isinstance(at, Located) or at.span is None or not isinstance(at.value, str):
        return near
    return Change(near, at.span, at.value.partition("=")[0], near)


def _own_build(deployment: Deployment) -> Unknown | None:
    """That the image is no release: it may be a newer state, or one with changes of its own."""
    tag = deployment.image_tag
    if not isinstance(tag, Located) or tag.value == "latest" or not isinstance(deployment.engine_version, Unknown):
        return None
    return deployment.engine_version._replace(reason=f"{deployment.engine_version.reason}, and may know more flags")


RULE = Rule("SL902", "refused-flag", "flags", "error", "refuses-at-start", judge, applies)
