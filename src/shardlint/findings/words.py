"""Numbers in words, for findings and reports alike."""

from __future__ import annotations

import math


def counted(number: int, noun: str, nouns: str = "") -> str:
    """`1 GPU`, `8 GPUs`; of a noun that takes no s, `2 processes`, both are given."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def figure(value: float, digits: int = 6) -> str:
    """So many digits that count, and no exponent: `1,190` and `0.0123` of three."""
    if not value:
        return "0"
    behind = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{behind}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


EACH_ITS_OWN = "each data parallel replica has a cache of its own, and a request runs in one of them"
"""Why tokens and requests are told for each and for all."""
