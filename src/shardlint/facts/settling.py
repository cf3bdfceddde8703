"""What would settle the question of a model whose numbers are not known."""

from __future__ import annotations

import re

from shardlint.findings.patterns import Pattern

HUB_ID = Pattern(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


def settle_by(model_id: str) -> str:
    """The very command for a model that a hub may have; for a path only the option."""
    by_config = f"--models DIR with its {_place(model_id)}"
    return f"`shardlint models add {model_id}`, or {by_config}" if HUB_ID.fullmatch(model_id) else by_config


def _place(model_id: str) -> str:
    """Where a folder of models keeps that one's config.json; no folder keeps one that a path leads out of it."""
    parts = [part for part in model_id.split("/") if part not in ("", ".")]
    return "config.json" if ".." in parts or not parts else f"config.json as DIR/{'/'.join(parts)}/config.json"
