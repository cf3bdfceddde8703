"""Numbers in words, for findings and reports alike."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 GPU`, `8 GPUs`, `2 replicas`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
