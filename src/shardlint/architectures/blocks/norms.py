"""Normalisation: short vectors that every rank holds whole."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.rows import Extent, Row


def norm(name: str, width: int, layers: Sequence[int], *, bias: bool = False) -> Row:
    """One norm of each layer: a weight, and a bias where it is a LayerNorm that has one."""
    return Row(name, (Extent(width),), bias=bias, layers=layers, quantisable=False)


def layer_norms(names: Sequence[str], width: int, layers: Sequence[int], *, bias: bool = False) -> tuple[Row, ...]:
    """The norms of a decoder layer, each as wide as the model."""
    return tuple(norm(f"model.layers.#.{name}", width, layers, bias=bias) for name in names)


BEFORE_THE_BLOCKS = ("input_layernorm", "post_attention_layernorm")
AFTER_THE_BLOCKS = ("post_attention_layernorm", "post_feedforward_layernorm")
AROUND_THE_BLOCKS = (*BEFORE_THE_BLOCKS, "pre_feedforward_layernorm", "post_feedforward_layernorm")
GLM4_NORMS = (*BEFORE_THE_BLOCKS, "post_self_attn_layernorm", "post_mlp_layernorm")
