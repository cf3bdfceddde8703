"""The door to the smoke test: which deployment, and what is printed of its run."""

from __future__ import annotations

import json
from collections.abc import Sequence

from shardlint import smoke
from shardlint.check.facts import DeploymentFacts
from shardlint.deployment import Deployment
from shardlint.findings import Unknown
from shardlint.front.failures import CannotRun
from shardlint.front.options import Options
from shardlint.smoke import report


def chosen(deployments: Sequence[Deployment], name: str | None) -> Deployment:
    """The deployment to try. Raises CannotRun where that is none, or any of several."""
    named = [deployment for deployment in deployments if name in (None, deployment.name)]
    if len(named) == 1:
        return named[0]
    there = ", ".join(deployment.name for deployment in deployments)
    if not deployments:
        raise CannotRun("there is no deployment to try")
    if name is None:
        raise CannotRun(f"there are several deployments; --deployment NAME chooses one: {there}")
    many = f"{len(named)} deployments are" if named else "no deployment is"
    raise CannotRun(f"{many} called {name}; there are: {there}")


def try_out(facts: DeploymentFacts, options: Options) -> tuple[int, str]:
    """Run a deployment's layout; the exit code and what to print. Raises CannotRun where it has none to run."""
    name = facts.deployment.name
    if not facts.engine.judged:
        raise CannotRun(f"{name} cannot be tried: how {facts.engine.label} lays out its ranks is not known")
    plan = facts.layout if isinstance(facts.layout, Unknown) else smoke.plan_of(facts.layout, facts.geometry)
    if isinstance(plan, Unknown):
        raise CannotRun(f"{name} cannot be tried: {_in_words(plan)}")
    result = smoke.run(plan, deadline_seconds=options.deadline or smoke.DEADLINE_SECONDS)
    if options.format == "json":
        return result.exit_code, json.dumps(report.json_data(result, name), indent=2, ensure_ascii=False)
    if result.could_not_run:
        raise CannotRun(report.headline(result, name))
    return result.exit_code, report.text(result, name).rstrip("\n")


def _in_words(unknown: Unknown) -> str:
    return f"{unknown.reason}; to settle it: {unknown.settle_by}" if unknown.settle_by else unknown.reason
