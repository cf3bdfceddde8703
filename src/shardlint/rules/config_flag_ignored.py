"""A file of flags that is named in the spelling that the engine does not read."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment
from shardlint.engines.engine import Engine
from shardlint.findings import Located, Problem, Rule


def judge(deployment: Deployment, engine: Engine) -> Iterator[Problem]:
    for problem in deployment.flag_problems:
        if problem.ignored and isinstance(problem.at, Located):
            yield Problem(
                at=problem.at,
                message=f"{problem.message}: {engine.label} starts with 0 of its flags",
                help=(f"--config {problem.at.value}: two words, and no equals sign",),
            )


RULE = Rule("SL901", "config-flag-ignored", "flags", "warning", "misbehaves", judge)
