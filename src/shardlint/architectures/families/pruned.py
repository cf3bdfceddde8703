"""Nemotron's pruned Llamas (DeciLM), in which a search chose for every layer what it has and how wide that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shardlint.architectures.blocks.attention import Heads, cache, grouped_query
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import layer_norms
from shardlint.architectures.families.decoders import MLP, Family
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.rows import CacheRow, Row, Rows

WIDTH_MULTIPLE = 256
"""What the width of an MLP that is given as a multiple of the model's is rounded up to."""


def decilm(model: Model) -> Rows:
    """Layers of one kind together: those with as many KV heads, those with an MLP as wide."""
    attends, wide = _layers_by(model, "attention", _kv_heads), _layers_by(model, "ffn", _width)
    bias = model.flag("attention_bias") or model.flag("bias")
    qkv_bias, mlp_bias, hidden = model.flag("qkv_bias", bias), model.flag("mlp_bias"), model.hidden_size
    weights: list[Row] = []
    kept: list[CacheRow] = []
    for keys, layers in attends.items():
        heads = Heads(model.heads, keys, model.head_dim)
        weights += grouped_query(model, qkv_bias=qkv_bias, output_bias=bias, heads=heads, layers=layers)
        weights += layer_norms(("input_layernorm",), hidden, layers)
        kept.append(cache(model, layers, heads=heads))
    for width, layers in wide.items():
        weights += gated(MLP, hidden, width, layers, bias=mlp_bias)
        weights += layer_norms(("post_attention_layernorm",), hidden, layers)
    return Rows((*weights, *ends(model)), tuple(kept), len(model.layers))


def _layers_by(
    model: Model, part: str, size_of: Callable[[Model, Mapping[str, Any]], int]
) -> dict[int, tuple[int, ...]]:
    """The layers that have this part, by its size."""
    blocks = model.odd("block_configs")
    if not isinstance(blocks, list) or len(blocks) < len(model.layers):
        raise Missing(f"block_configs of {model.geometry.model_id} does not name each layer")
    found: dict[int, tuple[int, ...]] = {}
    for layer, block in zip(model.layers, blocks, strict=False):
        said = block.get(part) if isinstance(block, Mapping) else None
        if not isinstance(said, Mapping) or said.get("replace_with_linear"):
            raise Missing(f"block_configs of {model.geometry.model_id} has a layer {layer} that is not described")
        if not said.get("no_op"):
            size = size_of(model, said)
            found[size] = (*found.get(size, ()), layer)
    return found


def _kv_heads(model: Model, attention: Mapping[str, Any]) -> int:
    return model.heads // _count(model, attention, "n_heads_in_group")


def _width(model: Model, ffn: Mapping[str, Any]) -> int:
    times = ffn.get("ffn_mult")
    if times is None:
        return _count(model, ffn, "intermediate_size")
    if isinstance(times, bool) or not isinstance(times, (int, float)) or not 0 < times < 1000:
        raise Missing(f"ffn_mult of a block of {model.geometry.model_id} is {times!r}")
    return -(-int(2 * times * model.hidden_size / 3) // WIDTH_MULTIPLE) * WIDTH_MULTIPLE


def _count(model: Model, part: Mapping[str, Any], key: str) -> int:
    value = part.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Missing(f"a block of {model.geometry.model_id} does not tell {key}")
    return value


FAMILIES: Mapping[str, Family] = {"DeciLMForCausalLM": decilm}
"""Architecture class -> family."""
