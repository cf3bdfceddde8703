"""A flag that the engine's own parser does not take."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import named


def applies(deployment: Deployment) -> bool:
    return bool(deployment.flag_problems)


def judge(deployment: Deployment, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem]:
    for problem in deployment.flag_problems:
        unsettled = problem.depends_on_release and engine_version.origin == "default"
        if not problem.ignored and not unsettled:
            yield Problem(
                at=problem.at,
                message=f"{named(engine, engine_version)} refuses this command line: {problem.message}",
                help=problem.near,
            )


RULE = Rule("SL902", "refused-flag", "flags", "error", "refuses-at-start", judge, applies)
