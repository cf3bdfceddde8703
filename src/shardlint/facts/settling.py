"""What would settle the question of a model whose numbers are not known."""

from __future__ import annotations

import re

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
BY_CONFIG = "--models FILE_OR_DIR with its config.json"


def settle_by(model_id: str) -> str:
    """The very command for a model that a hub may have; for a path only the option."""
    return f"`shardlint models add {model_id}`, or {BY_CONFIG}" if HUB_ID.fullmatch(model_id) else BY_CONFIG
