"""Numbers in words, for findings and reports alike."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 GPU`, `8 GPUs`, `2 replicas`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


EACH_ITS_OWN = "each data parallel replica has a cache of its own, and a request runs in one of them"
"""Why tokens and requests are told for each and for all."""
