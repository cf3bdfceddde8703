"""What a deployment says, field by field, under the names of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardlint.deployment import Deployment
from shardlint.findings import Maybe, Unknown

KNOB_FIELDS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "enable_expert_parallel",
    "decode_context_parallel_size",
    "prefill_context_parallel_size",
)
PLACE_FIELDS = ("replicas", "pods", "gpus_per_pod", "gpu")
LATER_KNOB_FIELDS = ("dtype", "quantization", "max_model_len", "gpu_memory_utilization")
ALL_KNOB_FIELDS = KNOB_FIELDS + LATER_KNOB_FIELDS

WHY_ABSENT = {
    "engine_version": "neither an image tag nor a pin tells the release",
    "model": "the command names no model",
    "gpus_per_pod": "no number of GPUs is written",
    "gpu": "no kind of GPU is written",
}
"""Fields that every deployment has in truth, so that their absence from the file is itself worth saying."""


def fields(deployment: Deployment) -> dict[str, Maybe[Any] | None]:
    """The fields that have a value, an Unknown or (not written) None, in the contract's order."""
    knobs = {"enable_expert_parallel": _expert_parallel(deployment), **deployment.knobs}
    return {
        "image_tag": deployment.image_tag,
        "engine_version": deployment.engine_version,
        "model": deployment.model,
        **{name: knobs.get(name) for name in KNOB_FIELDS},
        **{name: getattr(deployment, name) for name in PLACE_FIELDS},
        **{name: knobs.get(name) for name in LATER_KNOB_FIELDS},
    }


def _expert_parallel(deployment: Deployment) -> Maybe[bool] | None:
    """Whether experts are spread, where an engine is told over how many ranks (SGLang, TensorRT-LLM)."""
    size = deployment.knobs.get("expert_parallel_size")
    if size is None or isinstance(size, Unknown):
        return size
    return size.with_value(True) if size.value > 1 else None


def unresolved(deployment: Deployment) -> Iterator[tuple[str, Unknown]]:
    """The fields that the file alone does not tell, each with the reason."""
    for name, value in fields(deployment).items():
        if value is None:
            value = _reason_of_absence(name, deployment)
        if isinstance(value, Unknown):
            yield name, value
    for name, value in deployment.engine_fields.items():
        if isinstance(value, Unknown):
            yield f"engine_fields.{name}", value


def _reason_of_absence(name: str, deployment: Deployment) -> Unknown | None:
    """Why a field without a value may have one all the same; None where it simply was not written."""
    if deployment.open_words and (name in ALL_KNOB_FIELDS or name == "model"):
        word = deployment.open_words[0]
        return word._replace(reason=f"may stand in {word.spelled}: {word.reason}")
    return Unknown(WHY_ABSENT[name]) if name in WHY_ABSENT else None
