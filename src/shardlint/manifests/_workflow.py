"""The steps of a GitHub workflow, as scripts with the variables that are set around them."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Launch
from shardlint.findings import Maybe, Problem
from shardlint.manifests import _scripts
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Library


def launches_of(root: Mapping, jobs: Mapping, form: str, library: Library) -> Iterator[Launch | Problem]:
    """The launches of every step that runs a script, each job's by its name."""
    for name, job in jobs.items():
        base = Launch(f"job/{name.text}", "job", form, name.span, unit=f"job/{name.text}")
        steps = job.get("steps")
        for step in steps if isinstance(steps, Sequence) else ():
            script = step.get("run")
            if isinstance(script, Scalar) and not script.is_null:
                env = {**_variables(root), **_variables(job), **_variables(step)}
                for found in _scripts.launches_of(script.fragment(), form, library, env, base):
                    if isinstance(found, Launch):
                        yield found


def _variables(node: Node) -> dict[str, Maybe[str]]:
    env = node.get("env")
    pairs = env.items() if isinstance(env, Mapping) else ()
    return {key.text: value_of(value) for key, value in pairs if isinstance(value, Scalar)}
