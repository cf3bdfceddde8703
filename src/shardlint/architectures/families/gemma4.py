"""Gemma 4: full layers with heads of their own, experts beside the MLP, and a tower that no rank cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardlint.architectures.blocks.attention import Heads, cache
from shardlint.architectures.blocks.ends import ends
from shardlint.architectures.blocks.experts import gated_experts, router
from shardlint.architectures.blocks.mlp import gated
from shardlint.architectures.blocks.norms import AROUND_THE_BLOCKS, layer_norms, norm
from shardlint.architectures.blocks.small_gemma import (
    attention_of_shared_caches,
    embeddings_for_layers,
    layers_with_caches,
)
from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.families.decoders import MLP, Family
from shardlint.architectures.families.gemma3n import convolutions, two_numbers
from shardlint.architectures.families.with_tower import WithTower
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.patterns import listed_as_sliding
from shardlint.architectures.rows import Row, Rows, Unlike

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
    if not isinstance(model.odd("layer_types"), list):
        raise Missing(f"the config of {model.geometry.model_id} does not tell layer_types")
    slides, own = frozenset(listed_as_sliding(model, ())), layers_with_caches(model)
    heads = _heads_of_full_layers(model, _less(model.layers, slides))
    hidden, kept = model.hidden_size, frozenset(own)

    def attention(layers: Sequence[int], heads: Heads | None = None) -> tuple[Row, ...]:
        with_caches = tuple(layer for layer in layers if layer in kept)
        return attention_of_shared_caches(model, with_caches, _less(layers, kept), heads)

    weights = (
        *attention([layer for layer in model.layers if layer in slides]),
        *attention(_less(model.layers, slides), heads),
        *_mlps(model, own),
        *layer_norms(AROUND_THE_BLOCKS, hidden, model.layers),
        *embeddings_for_layers(model, "model"),
        *_experts(model),
        *ends(model, on_every_stage=True),
    )
    full, windowed = _less(own, slides), tuple(layer for layer in own if layer in slides)
    caches = ((cache(model, full, heads=heads),) if full else ()) + (
        (cache(model, windowed, model.number("sliding_window")),) if windowed else ()
    )
    return Rows(weights, caches, len(model.layers), unlike_checkpoint=_values_beside_keys(model, heads, full))


def _values_beside_keys(model: Model, heads: Heads, full: Sequence[int]) -> tuple[Unlike, ...]:
    """Full layers may have one projection for keys and values, which the engine allocates twice."""
    values = len(full) * heads.keys * heads.width * model.hidden_size
    why = "values of full layers are allocated beside the keys that the checkpoint has for both"
    return (Unlike(values, why),) if model.flag("attention_k_eq_v") and values else ()


def _heads_of_full_layers(model: Model, full: Sequence[int]) -> Heads:
    """Their KV heads and widths, which stand in keys of their own, or once for each layer in `per_layer_config`."""
    width, keys = model.odd_number("global_head_dim", 0), model.odd_number("num_global_key_value_heads", 0)
    listed = model.part("per_layer_config")
    own = [one for layer in full if isinstance(one := listed.get(f"{layer:02d}"), Mapping)]
    widths, counts = ({one.get(key) for one in own} or {None} for key in ("head_dim", "num_key_value_heads"))
    if len(widths) > 1 or len(counts) > 1:
        raise Missing(f"full layers of {model.geometry.model_id} differ in their heads, which is not described")
    found = [one for one in (*widths, *counts) if one is not None]
    if not all(isinstance(one, int) and one > 0 for one in found):
        raise Missing(f"per_layer_config of {model.geometry.model_id} has heads that are no numbers")
    return Heads(model.heads, counts.pop() or keys or model.kv_heads, widths.pop() or width or model.head_dim)


def _less(layers: Sequence[int], taken: frozenset[int]) -> tuple[int, ...]:
    return tuple(layer for layer in layers if layer not in taken)


def _mlps(model: Model, own: Sequence[int]) -> tuple[Row, ...]:
    """The MLPs, those of layers without a cache of their own twice as wide where a key says so."""
    width, sharing = model.number("intermediate_size"), model.layers[len(own) :]
    if not (sharing and own and model.flag("use_double_wide_mlp")):
        return gated(MLP, model.hidden_size, width, model.layers)
    return (
        *gated(MLP, model.hidden_size, width, own),
        *gated(MLP, model.hidden_size, 2 * width, sharing),
    )


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


def gemma4_towers(model: Model, vision: Part) -> tuple[Row, ...]:
    """A tower for images and, of the small models, one for sounds: whole on every rank and never quantised."""
    audio = Part(model.geometry, "audio_config")
    hears = model.geometry.raw.get("audio_config") is not None
    return (*gemma4_vision(model, vision), *(_audio_tower(audio, model.hidden_size) if hears else ()))


def _audio_tower(audio: Part, hidden: int) -> tuple[Row, ...]:
    tower, name, depth = Bricks("audio_tower"), "layers.#", audio.number("num_hidden_layers")
    width, kernel, output = (audio.number(key) for key in ("hidden_size", "conv_kernel_size", "output_proj_dims"))
    first, second = two_numbers(audio, "subsampling_conv_channels")
    blocks = {
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (width, width),
        "self_attn.v_proj": (width, width),
        "self_attn.post": (width, width),
        "self_attn.relative_k_proj": (width, width),
        "lconv1d.linear_start": (2 * width, width),
        "lconv1d.linear_end": (width, width),
        "lconv1d.depthwise_conv1d": (width, kernel),
    }
    feed_forward = {"ffw_layer_1": (4 * width, width), "ffw_layer_2": (width, 4 * width)}
    norms = ("lconv1d.pre_layer_norm", "lconv1d.conv_norm", "norm_pre_attn", "norm_post_attn", "norm_out")
    return (
        *convolutions(tower, ("layer0", "layer1"), (first, second), width, MEL_BANDS),
        *(tower.whole(f"{name}.{key}", *sizes, times=depth) for key, sizes in blocks.items()),
        *(
            tower.whole(f"{name}.feed_forward{half}.{key}", *sizes, times=depth)
            for half in (1, 2)
            for key, sizes in feed_forward.items()
        ),
        *(
            tower.whole(f"{name}.feed_forward{half}.{key}_layer_norm", width, times=depth)
            for half in (1, 2)
            for key in ("pre", "post")
        ),
        *(tower.whole(f"{name}.{key}", width, times=depth) for key in norms),
        tower.whole(f"{name}.self_attn.per_dim_scale", width // audio.number("num_attention_heads"), times=depth),
        tower.whole("output_proj", output, width, bias=True),
        Bricks("embed_audio").whole("embedding_projection", hidden, output),
    )


MEL_BANDS = 128
"""Frequencies that the tower for sounds takes in."""


def gemma4_vision(model: Model, vision: Part) -> tuple[Row, ...]:
    """The tower for images."""
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
    "Gemma4ForConditionalGeneration": WithTower(gemma4, gemma4_towers, NAMES),
}
"""Architecture class -> family."""
