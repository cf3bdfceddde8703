"""One model of TorchServe with a vLLM handler."""

from __future__ import annotations

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe
from shardlint.manifests import _stated
from shardlint.manifests._objects import text
from shardlint.manifests._pods import number
from shardlint.manifests._values import value_of
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence


def launch_of(document: Document, handler: Mapping, form: str) -> Launch:
    """What the handler gives to vLLM, on the cards that TorchServe assigns to its worker."""
    name = document.source.path.replace("\\", "/").rpartition("/")[2]
    place = handler.key("vllm_engine_config") or handler
    model = handler.get("model_path")
    named = value_of(model) if isinstance(model, Scalar) and not model.is_null else None
    return Launch(
        name,
        "model-config",
        form,
        place.span,
        argv=_stated.command(_stated.VLLM, place.span, named),
        settings=_stated.entries(handler.get("vllm_engine_config")),
        gpus_per_pod=_cards(document.root),
        unit=name,
    )


def _cards(root: Node | None) -> Maybe[int] | None:
    """The devices that are named, else as many as a worker that spreads over cards is given."""
    if root is None:
        return None
    devices = root.get("deviceIds")
    if isinstance(devices, Sequence) and len(devices):
        return Located(len(devices), devices.span, devices.spelled, "derived", "the entries of deviceIds")
    return number(root.get("parallelLevel")) if text(root.get("parallelType")) == "custom" else None
