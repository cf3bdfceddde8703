"""Families whose every layer has attention and one gated MLP."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.attention import grouped_query
from shardlint.architectures.blocks.norms import AFTER_THE_BLOCKS, AROUND_THE_BLOCKS, GLM4_NORMS
from shardlint.architectures.families.decoders import Family, dense
from shardlint.architectures.model import Model
from shardlint.architectures.patterns import (
    all_but_each,
    every_layer_slides,
    listed_as_sliding,
    qwen_sliding_layers,
    three_of_four_slide,
)
from shardlint.architectures.rows import Rows, Unlike


def llama(model: Model) -> Rows:
    """Llama and the classes that are it."""
    bias = model.flag("attention_bias") or model.flag("bias")
    attention = grouped_query(model, qkv_bias=model.flag("qkv_bias", bias), output_bias=bias)
    return dense(model, attention, mlp_bias=model.flag("mlp_bias"), sliding=every_layer_slides(model))


def qwen2(model: Model) -> Rows:
    """Qwen2: Q, K and V always have a bias, which no key says."""
    return dense(model, grouped_query(model, qkv_bias=True), sliding=qwen_sliding_layers(model))


def qwen3(model: Model) -> Rows:
    """Qwen3: norms on the heads, biases by a key."""
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    return dense(model, attention, sliding=qwen_sliding_layers(model))


def phi3(model: Model) -> Rows:
    """Phi-3 and Phi-4, whose checkpoints hold the merged weights."""
    return dense(model, grouped_query(model), sliding=every_layer_slides(model))


def smollm3(model: Model) -> Rows:
    """SmolLM3: Llama's rows; which layers have no positions changes no weight."""
    bias = model.flag("attention_bias")
    sliding = qwen_sliding_layers(model)
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias)
    return dense(model, attention, mlp_bias=model.flag("mlp_bias"), sliding=sliding)


def olmo2(model: Model) -> Rows:
    """OLMo 2 and 3: norms after the blocks, head norms over the whole width that no rank cuts."""
    attention = grouped_query(model, head_norms="whole_width")
    return dense(model, attention, norms=AFTER_THE_BLOCKS, sliding=three_of_four_slide(model))


def exaone4(model: Model) -> Rows:
    """EXAONE 4: norms after the blocks and on the heads."""
    attention = grouped_query(model, head_norms="per_head")
    return dense(model, attention, norms=AFTER_THE_BLOCKS, sliding=three_of_four_slide(model))


def gemma(model: Model) -> Rows:
    """Gemma: tied, and its ends stand on every stage."""
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias)
    return dense(model, attention, ends_on_every_stage=True)


def gemma2(model: Model) -> Rows:
    """Gemma 2: four norms, and every other layer slides, the first one too."""
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias)
    sliding = listed_as_sliding(model, model.layers[::2])
    return dense(model, attention, norms=AROUND_THE_BLOCKS, sliding=sliding, ends_on_every_stage=True)


def gemma3(model: Model) -> Rows:
    """Gemma 3 without its tower: Gemma 2 with head norms, and all but each sixth layer slide."""
    bias = model.flag("attention_bias")
    attention = grouped_query(model, qkv_bias=bias, output_bias=bias, head_norms="per_head")
    sliding = listed_as_sliding(model, all_but_each(model, model.odd_number("sliding_window_pattern", 6)))
    return dense(model, attention, norms=AROUND_THE_BLOCKS, sliding=sliding, ends_on_every_stage=True)


def glm4(model: Model) -> Rows:
    """GLM-4 0414: four norms; Q, K and V have a bias where the config or its class says so."""
    attention = grouped_query(model, qkv_bias=model.flag("attention_bias"))
    return dense(model, attention, norms=GLM4_NORMS)


def stablelm(model: Model) -> Rows:
    """StableLM: LayerNorms with bias."""
    attention = grouped_query(model, qkv_bias=model.flag("use_qkv_bias"))
    return dense(model, attention, norm_bias=True, ends_on_every_stage=True)


def with_head(family: Family) -> Family:
    """A class of embedders that vLLM builds as a language model, output head included."""

    def build(model: Model) -> Rows:
        rows = family(model)
        if model.tied_embeddings:
            return rows
        head = Unlike(model.vocabulary * model.hidden_size, "an output head is built that the checkpoint does not have")
        return rows._replace(unlike_checkpoint=(head,))

    build.__doc__ = family.__doc__
    return build


FAMILIES: Mapping[str, Family] = {
    "AquilaForCausalLM": llama,
    "AquilaModel": llama,
    "CwmForCausalLM": llama,
    "Exaone4ForCausalLM": exaone4,
    "Gemma2ForCausalLM": gemma2,
    "Gemma2Model": gemma2,
    "Gemma3ForCausalLM": gemma3,
    "Gemma3TextModel": gemma3,
    "GemmaForCausalLM": gemma,
    "Glm4ForCausalLM": glm4,
    "IQuestCoderForCausalLM": llama,
    "InternLM3ForCausalLM": llama,
    "InternLMForCausalLM": llama,
    "LLaMAForCausalLM": llama,
    "LlamaForCausalLM": llama,
    "LlamaModel": with_head(llama),
    "Ministral3ForCausalLM": llama,
    "MiMoForCausalLM": qwen2,
    "MistralForCausalLM": llama,
    "MistralModel": with_head(llama),
    "Olmo2ForCausalLM": olmo2,
    "Olmo3ForCausalLM": olmo2,
    "PanguEmbeddedForCausalLM": llama,
    "Phi3ForCausalLM": phi3,
    "Qwen2ForCausalLM": qwen2,
    "Qwen2Model": with_head(qwen2),
    "Qwen3ForCausalLM": qwen3,
    "SmolLM3ForCausalLM": smollm3,
    "SolarForCausalLM": llama,
    "StableLMEpochForCausalLM": stablelm,
    "StableLmForCausalLM": stablelm,
    "TeleChat3ForCausalLM": llama,
    "XverseForCausalLM": llama,
}
"""Architecture class -> family."""
