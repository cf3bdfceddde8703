"""Addresses that operators load models from (`hf://org/model`, `pvc://volume/path`), as the model's name."""

from __future__ import annotations

from shardlint.findings import Located, Maybe
from shardlint.manifests._values import value_of
from shardlint.text.nodes import Node, Scalar

HUB = "hf://"


def model_at(address: Node | None) -> Maybe[str] | None:
    """The hub's id of a model, without its revision; any other address as it is written. None where none is."""
    if not isinstance(address, Scalar) or address.is_null:
        return None
    return hub_id(value_of(address))


def hub_id(address: Maybe[str]) -> Maybe[str] | None:
    """The same for a value that was read; None for an empty one."""
    if not isinstance(address, Located):
        return address
    written = address.value.strip()
    if not written.startswith(HUB):
        return address.with_value(written) if written else None
    return address.with_value(written.removeprefix(HUB).partition(":")[0].partition("@")[0].partition("?")[0])
