"""Gemma 4: full layers with heads of their own, experts beside the MLP, and a tower that no rank cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import Heads, cache, grouped_query
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.experts import gated_experts, router
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import AROUND_THE_BLOCKS, layer_norms, norm
from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.families.decoders import MLP, Family
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.patterns import listed_as_sliding
from shardlint.architectures.rows import Row, Rows

NOT_DESCRIBED = ("hidden_size_per_layer_input", "num_kv_shared_layers")
"""Keys of the small models, whose layers share caches and take embeddings of their own."""
NAMES = (
    ("model.vision_tower", "vision_tower"),
    ("model.embed_vision", "embed_vision"),
    ("model.language_model.", "language_model.model."),
    ("lm_head.", "language_model.lm_head."),
    ("model", "language_model.model"),
)
"""Beginnings of names in the repository, and vLLM's."""
NORMS_BESIDE_EXPERTS = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")


def gemma4(model: Model) -> Rows:
    """The language model. Keys and values of full layers are one in the checkpoint, and vLLM still allocates both."""
    for key in NOT_DESCRIBED:
        if model.odd_number(key, 0):
            raise Missing(f"{model.geometry.model_id} has {key}, which is not described")
    if not isinstance(model.odd("layer_types"), list):
        raise Missing(f"the config of {model.geometry.model_id} does not tell layer_types")
    sliding = listed_as_sliding(model, ())
    full = tuple(layer for layer in model.layers if layer not in frozenset(sliding))
    width, keys = model.odd_number("global_head_dim", 0), model.odd_number("num_global_key_value_heads", 0)
    heads = Heads(model.heads, keys or model.kv_heads, width or model.head_dim)
    bias, hidden = model.flag("attention_bias"), model.hidden_size

    def attention(layers: Sequence[int], heads: Heads | None = None) -> tuple[Row, ...]:
        if not layers:
            return ()
        return grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head", layers=layers, heads=heads)

    weights = (
        *attention(sliding),
        *attention(full, heads),
        *gated(MLP, hidden, model.number("intermediate_size"), model.layers),
        *layer_norms(AROUND_THE_BLOCKS, hidden, model.layers),
        *_experts(model),
        *ends(model, on_every_stage=True),
    )
    kept = ((cache(model, full, heads=heads),) if full else ()) + (
        (cache(model, sliding, model.number("sliding_window")),) if sliding else ()
    )
    return Rows(weights, kept, len(model.layers))


def _experts(model: Model) -> tuple[Row, ...]:
    """Experts beside the MLP of every layer, with a router that scales what it reads."""
    experts, hidden, layers, name = (
        model.number_or_none("num_experts"),
        model.hidden_size,
        model.layers,
        "model.layers.#",
    )
    if experts is None:
        return ()
    width = model.number_or_none("moe_intermediate_size") or model.odd_number("expert_intermediate_size")
    return (
        router(f"{name}.router.proj", experts, hidden, layers),
        norm(f"{name}.router.scale", hidden, layers),
        norm(f"{name}.router.per_expert_scale", experts, layers),
        *gated_experts(f"{name}.experts", experts, hidden, width, layers, balanceable=False),
        *layer_norms(NORMS_BESIDE_EXPERTS, hidden, layers),
    )


def gemma4_vision(model: Model, vision: Part) -> tuple[Row, ...]:
    """The tower, whole on every rank and never quantised."""
    if model.geometry.raw.get("audio_config") is not None:
        raise Missing(f"{model.geometry.model_id} has an audio tower, which is not described")
    tower, depth = Bricks("vision_tower"), vision.number("num_hidden_layers")
    width, inner, heads = (vision.number(key) for key in ("hidden_size", "intermediate_size", "num_attention_heads"))
    head, name = vision.number("head_dim", width // heads), "encoder.layers.#"
    keys, patch = vision.number("num_key_value_heads", heads), 3 * vision.number("patch_size") ** 2
    linears = {
        "self_attn.q_proj": (heads * head, width),
        "self_attn.k_proj": (keys * head, width),
        "self_attn.v_proj": (keys * head, width),
        "self_attn.o_proj": (width, heads * head),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    return (
        tower.whole("patch_embedder.position_embedding_table", 2 * vision.number("position_embedding_size"), width),
        tower.whole("patch_embedder.input_proj", width, patch),
        *(tower.whole(f"{name}.{key}.linear", *sizes, times=depth) for key, sizes in linears.items()),
        *(tower.whole(f"{name}.self_attn.{key}", head, times=depth) for key in ("q_norm", "k_norm")),
        *(tower.whole(f"{name}.{key}", width, times=depth) for key in AROUND_THE_BLOCKS),
        Bricks("embed_vision").whole("embedding_projection", model.hidden_size, width),
    )


FAMILIES: Mapping[str, Family] = {
    "Gemma4ForCausalLM": gemma4,
    "Gemma4ForConditionalGeneration": WithTower(gemma4, gemma4_vision, NAMES),
}
"""Architecture class -> family."""
