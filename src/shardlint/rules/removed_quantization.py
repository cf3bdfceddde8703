"""A quantisation method that the release no longer has, or only takes with a flag."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.engines.vllm.quantisation import is_deprecated, is_removed
from shardlint.findings import Located, Problem, Rule
from shardlint.rules._words import named

ALLOWED_BY = "--allow-deprecated-quantization"


def judge(
    deployment: Deployment,
    engine: Engine,
    engine_version: Located[Version],
    quant_method: Located[str | None],
    quantization: Located[str] | None = None,
) -> Iterator[Problem]:
    option = None if quantization is None or quantization.value is None else quantization
    if option is not None and quant_method.value not in (None, option.value):  # some checkpoints override the option
        return
    method = str(quant_method.value if option is None else option.value)
    removed = is_removed(method, engine_version.value)
    allowed = ALLOWED_BY.lstrip("-") in deployment.engine_fields
    if not removed and (allowed or not is_deprecated(method, engine_version.value)):
        return
    what = "no longer has" if removed else f"takes only with {ALLOWED_BY}"
    model = deployment.model if isinstance(deployment.model, Located) else None
    yield Problem(
        at=option or model or quant_method,
        message=f"the weights are quantised by {method}, which {named(engine, engine_version)} {what}: "
        "it refuses to start",
        help=() if removed else (ALLOWED_BY,),
    )


RULE = Rule("SL604", "removed-quantization", "model-support", "error", "refuses-at-start", judge)
