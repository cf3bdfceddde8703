"""A quantisation method that the release no longer has, or only takes with a flag."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment, Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.engines.vllm.quantisation import is_deprecated, is_removed
from shardlint.facts import Geometry
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._quantised import read_by
from shardlint.rules._words import named

ALLOWED_BY = "--allow-deprecated-quantization"


def judge(
    deployment: Deployment, engine: Engine, engine_version: Located[Version], told: Told, geometry: Geometry
) -> Iterator[Problem]:
    read = read_by(told, geometry, engine_version.value)
    if read.method is None:
        return
    method = read.method
    removed = is_removed(method, engine_version.value)
    allowed = bool(told.allow_deprecated_quantization)
    if not removed and (allowed or not is_deprecated(method, engine_version.value)):
        return
    what = "no longer has" if removed else f"takes only with {ALLOWED_BY}"
    model = deployment.model if isinstance(deployment.model, Located) else None
    yield Problem(
        at=told.located("quantization") or model,
        message=f"the weights are quantised by {method}, which {named(engine, engine_version)} {what}: "
        "it refuses to start",
        help=() if removed else (ALLOWED_BY,),
    )


RULE = Rule("SL604", "removed-quantization", "model-support", "error", "refuses-at-start", judge)
