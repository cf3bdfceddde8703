"""Foreign JSON text becomes a clean config, or the list of all that is wrong with it."""

from __future__ import annotations

import json
from typing import Any

from shardlint.findings import Unknown
from shardlint.text.source import Source


def clean(source: Source) -> tuple[dict[str, Any], tuple[Unknown, ...]]:
    """The config as a dict, and every fault with its place; with a fault that leaves nothing the dict is empty."""
    try:
        config = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        return {}, (Unknown(f"{source.path} is not JSON: {error}"),)
    if not isinstance(config, dict):
        return {}, (Unknown(f"{source.path} is not a JSON object"),)
    return config, ()
