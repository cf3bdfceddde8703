"""The facts of a geometry, one function each: from a `Reading` to a located value or the reason why there is none.

The conventions are those of vLLM 0.33.0 (`transformers_utils/model_arch_config_convertor.py`): what it computes
from a config is what decides whether a layout starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from shardlint.facts.class_defaults import class_of
from shardlint.facts.reading import Reading
from shardlint.findings import Located, Maybe, Unknown

INDEX_FILE = "model.safetensors.index.json"
SIZES_FILE = "safetensors_sizes.json"
"""What `shardlint models add` read in the headers of the weights."""
KV_HEAD_NAMES = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
EXPERT_NAMES = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
EXPERTS_PER_TOKEN_NAMES = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "top_k_experts",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "top_k",
)
LENGTH_NAMES = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
MLA_MODEL_TYPES = frozenset(
    (
        "axk1",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "deepseek_v4",
        "deepseek_v41",
        "dots3_note",
        "deepseek_mtp",
        "k3_dspark",
        "glm5_next",
        "glm5_next_text",
        "glm_moe_dsa",
        "glm4_moe_lite",
        "glm4_moe_lite_mtp",
        "kimi_k2",
        "kimi_linear",
        "longcat_flash",
        "pangu_ultra_moe",
        "pangu_ultra_moe_mtp",
        "bailing_hybrid",
        "bailing_hybrid_mtp",
        "bailing_hybrid_v3_mtp",
        "hy_v4",
        "hy_v4_mtp",
    )
)
FALCON = frozenset(("falcon", "RefinedWeb", "RefinedWebModel"))
NO_ATTENTION = frozenset(("mamba", "mamba2", "falcon_mamba"))
EXPERT_WIDTH_IS_INTERMEDIATE = frozenset(
    (
        "mixtral",
        "gpt_oss",
        "minimax_m2",
        "minimax_m1",
        "minimax",
        "olmoe",
        "phimoe",
        "granitemoe",
        "granitemoeshared",
        "granitemoehybrid",
        "arctic",
        "llama4",
        "llama4_text",
        "jamba",
        "dbrx",
        "grok-1",
    )
)


def absent(reading: Reading, name: str) -> Unknown:
    """Nobody says: neither the file nor a config class that we know."""
    where = f"{reading.catalogue_id or 'config.json'} does not give {name}"
    known = reading.class_known
    why = f"and {reading.model_type} has no default for it" if known else "and the defaults of its class are not known"
    return Unknown(f"{where}, {why}", settle_by=f"a config.json that states {name} (--models)")


def plain(name: str) -> Callable[[Reading], Maybe[Any]]:
    """A fact that is a key of the config."""
    return lambda reading: reading.located(name) or absent(reading, name)


def optional(name: str) -> Callable[[Reading], Maybe[Any]]:
    """A fact whose absence means that the model has no such thing: the value is then None."""
    return lambda reading: reading.located(name) or reading.derived(None, f"no {name}")


def is_count(value: Any) -> TypeGuard[int]:
    """Whether the value is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def first_number(reading: Reading, names: tuple[str, ...]) -> Located[Any] | None:
    """The first of the names that the config has, as vLLM looks for it; of a list its first entry."""
    name = reading.first(names)
    found = reading.located(name) if name else None
    if found is not None and isinstance(found.value, list):
        return found.with_value(found.value[0]) if found.value else None
    return found


def num_attention_heads(reading: Reading) -> Maybe[int]:
    if found := reading.located("num_attention_heads"):
        return found
    if reading.model_type in NO_ATTENTION:
        return reading.derived(0, f"{reading.model_type} has no attention")
    return absent(reading, "num_attention_heads")


def num_key_value_heads(reading: Reading) -> Maybe[int]:
    """All KV heads of a layer, before any split; for MLA the config's own number, as vLLM counts it."""
    for special in (_falcon_kv_heads, _dbrx_kv_heads, _nas_kv_heads, _chatglm_kv_heads, _bigcode_kv_heads):
        if found := special(reading):
            return found
    if reading.model_type in NO_ATTENTION:
        return reading.derived(0, f"{reading.model_type} has no attention")
    if found := first_number(reading, KV_HEAD_NAMES):
        return found
    heads = num_attention_heads(reading)
    if isinstance(heads, Unknown):
        return heads
    return reading.derived(heads.value, f"no number of KV heads, so as many as attention heads ({heads.value})")


def _falcon_kv_heads(reading: Reading) -> Located[int] | None:
    if reading.model_type not in FALCON or reading.value("new_decoder_architecture"):
        return None
    if reading.value("multi_query"):
        return reading.derived(1, "multi_query without new_decoder_architecture: 1 KV head")
    return None


def _dbrx_kv_heads(reading: Reading) -> Located[int] | None:
    attention = reading.value("attn_config")
    if isinstance(attention, Mapping) and is_count(attention.get("kv_n_heads")):
        return reading.at(attention["kv_n_heads"], "attn_config", "kv_n_heads")
    return None


def _nas_kv_heads(reading: Reading) -> Located[int] | None:
    """Of a model whose blocks differ: the first block that has attention, as vLLM takes it."""
    heads = reading.value("num_attention_heads")
    attentions = (block.get("attention") for block in _blocks(reading))
    for attention in attentions:
        if isinstance(attention, Mapping) and not attention.get("no_op"):
            in_group = attention.get("n_heads_in_group")
            if not is_count(heads) or not is_count(in_group):
                return None
            how = f"{heads} heads / {in_group} heads in a group of the first attention layer"
            return reading.derived(heads // in_group, how)
    return None


def _chatglm_kv_heads(reading: Reading) -> Located[int] | None:
    if reading.model_type == "chatglm" and reading.value("multi_query_attention") is False:
        heads = reading.value("num_attention_heads")
        return reading.derived(heads, "multi_query_attention is false") if heads else None
    return None


def _bigcode_kv_heads(reading: Reading) -> Located[int] | None:
    if reading.model_type != "gpt_bigcode":
        return None
    if reading.value("multi_query") is not False:
        return reading.derived(1, "gpt_bigcode with multi_query: 1 KV head")
    heads = reading.value("num_attention_heads")
    return reading.derived(heads, "multi_query is false") if heads else None


def _blocks(reading: Reading) -> list[Mapping[str, Any]]:
    blocks = reading.value("block_configs")
    return [block for block in blocks if isinstance(block, Mapping)] if isinstance(blocks, list) else []


def is_mla(reading: Reading) -> bool:
    """Whether vLLM serves the model with multi-head latent attention."""
    if reading.model_type not in MLA_MODEL_TYPES:
        return False
    if reading.value("compress_ratios"):
        return reading.value("head_dim") is not None
    return reading.value("kv_lora_rank") is not None


def kv_lora_rank(reading: Reading) -> Maybe[int | None]:
    found = reading.located("kv_lora_rank")
    if found is None or not is_mla(reading):
        return reading.derived(None, "no latent attention")
    return found


def head_dim(reading: Reading) -> Maybe[int]:
    """The size of one head of the query projection; MLA's is nope + rope."""
    nope, rope = reading.value("qk_nope_head_dim"), reading.value("qk_rope_head_dim")
    if reading.value("kv_lora_rank") and nope is not None and rope is not None:
        return reading.derived(nope + rope, f"qk_nope_head_dim {nope} + qk_rope_head_dim {rope}")
    for name in ("head_dim", "hidden_size_per_head", "attention_head_dim", "kv_channels"):
        if (found := reading.located(name)) and found.value > 0:
            return found
    hidden, heads = plain("hidden_size")(reading), num_attention_heads(reading)
    if isinstance(hidden, Unknown) or isinstance(heads, Unknown):
        return hidden if isinstance(hidden, Unknown) else heads
    if heads.value == 0:
        return reading.derived(0, "no attention")
    return reading.derived(hidden.value // heads.value, f"hidden_size {hidden.value} / {heads.value} heads")


def num_hidden_layers(reading: Reading) -> Maybe[int]:
    """Decoder layers; of a model that lists its layers instead, the length of the list."""
    if reading.model_type == "longcat_flash":  # its num_hidden_layers counts attention sublayers, two per layer
        return plain("num_layers")(reading)
    if found := reading.located("num_hidden_layers"):
        return found
    for name in ("layers_block_type", "hybrid_override_pattern", "layer_types"):
        if layers := reading.value(name):
            return reading.derived(len(layers), f"{name} names {len(layers)} layers")
    return absent(reading, "num_hidden_layers")


def num_experts(reading: Reading) -> Maybe[int]:
    """Routed experts of a layer as vLLM counts them; 0 for a model that it takes for dense."""
    found = first_number(reading, EXPERT_NAMES)
    if found and found.value:
        return found
    counts = (block.get("n_routed_experts") for block in _blocks(reading))
    most = max((count for count in counts if is_count(count)), default=0)
    return reading.derived(most, "the most of any block" if most else "no key for experts: a dense model")


def num_experts_per_tok(reading: Reading) -> Maybe[int]:
    """Routed experts that one token goes through; of a list per layer the most, 0 for a dense model."""
    experts = num_experts(reading)
    name = reading.first(EXPERTS_PER_TOKEN_NAMES)
    found = reading.located(name) if name else None
    if isinstance(experts, Located) and not experts.value:
        return reading.derived(0, "a dense model")
    if found is None:
        return absent(reading, "num_experts_per_tok")
    return found.with_value(max(found.value, default=0)) if isinstance(found.value, list) else found


def moe_intermediate_size(reading: Reading) -> Maybe[Any]:
    """The width of one routed expert; None for a dense model."""
    experts = num_experts(reading)
    if isinstance(experts, Located) and not experts.value:
        return reading.derived(None, "a dense model")
    if found := first_number(reading, ("moe_intermediate_size", "expert_ffn_hidden_size")):
        return found
    if reading.model_type in EXPERT_WIDTH_IS_INTERMEDIATE:
        return intermediate_size(reading)
    return absent(reading, "moe_intermediate_size")


def intermediate_size(reading: Reading) -> Maybe[int]:
    """The width of a dense feed-forward layer."""
    if found := reading.located("intermediate_size"):
        return _of_all_layers(found, "intermediate_size")
    hidden = reading.value("hidden_size")
    if reading.model_type in FOUR_TIMES_HIDDEN and hidden:
        times = reading.value("expansion_ratio") or 4
        return reading.derived(times * hidden, f"{times} x hidden_size {hidden}")
    if _blocks(reading):
        return Unknown("intermediate_size differs from layer to layer (block_configs)")
    return absent(reading, "intermediate_size")


def _of_all_layers(found: Located[Any], name: str) -> Maybe[int]:
    """The one value of a list with an entry for each layer, where they agree."""
    if not isinstance(found.value, list):
        return found
    if len(set(found.value)) == 1:
        return found.with_value(found.value[0])
    return Unknown(f"{name} differs from layer to layer", found.span)


def max_position_embeddings(reading: Reading) -> Maybe[int]:
    """The smallest length that the config names, as vLLM derives it before rope scaling."""
    lengths = [found for name in LENGTH_NAMES if (found := reading.written(name)) and found.value]
    if not lengths:
        return plain("max_position_embeddings")(reading)
    return min(lengths, key=lambda found: found.value)


ALREADY_SCALED = frozenset(
    ("default", "su", "longrope", "llama3", "mrope", "yarn", "deepseek_yarn", "deepseek_llama_scaling")
)
"""Kinds of rope scaling whose factor is in the length that the config states."""


def longest_context(reading: Reading) -> Maybe[float]:
    """Tokens of the longest request that the engine takes the model to be made for, rope scaling counted.

    Lengths were corrected in repositories after their release, so a catalogue row does not tell.
    """
    if reading.catalogue_id:
        why = "the length of a model in the catalogue may not be that of its newest config.json"
        return Unknown(why, settle_by="shardlint models add MODEL")  # said once for all models of a run
    stated = reading.written("model_max_length")
    own: Maybe[Any] = stated if stated is not None and stated.value else max_position_embeddings(reading)
    if isinstance(own, Unknown):
        return own
    scalings = list(_rope_scalings(reading))
    if not is_count(own.value) or any(not isinstance(factor, (int, float)) for _, factor, _ in scalings):
        return Unknown("the length of the model or its scaling is no number", own.span)
    if "gemma3" in reading.model_type or not scalings:
        return own
    lengths = [own.value if kind in ALREADY_SCALED else own.value * factor for kind, factor, _ in scalings]
    return own.with_value(max(lengths))


def yarn_context(reading: Reading) -> Maybe[float | None]:
    """The length that a YaRN scaling makes of the original one; None without such a scaling."""
    lengths = [
        factor * original
        for kind, factor, original in _rope_scalings(reading)
        if "yarn" in kind and is_count(original) and isinstance(factor, (int, float))
    ]
    return reading.derived(max(lengths, default=None), "YaRN")


def _rope_scalings(reading: Reading) -> Iterator[tuple[str, Any, Any]]:
    """Kind, factor and original length of every rope scaling that the config has."""
    for name in ("rope_scaling", "rope_parameters"):
        found = reading.value(name)
        if isinstance(found, Mapping):
            nested = [part for part in found.values() if isinstance(part, Mapping)]
            for part in nested or [found]:
                factor = part.get("factor")
                kind = str(part.get("rope_type") or part.get("type") or "default")
                yield kind, 1 if factor is None else factor, part.get("original_max_position_embeddings")


def sliding_window(reading: Reading) -> Maybe[int | None]:
    """The window of sliding layers in tokens; None where the model does not use one."""
    found = reading.located("sliding_window")
    if found is None:
        return reading.derived(None, "no sliding_window")
    if reading.value("use_sliding_window") is False:
        return reading.derived(None, "use_sliding_window is false")
    return found


def torch_dtype(reading: Reading) -> Maybe[str]:
    """The checkpoint's dtype as stated: the outer config's word counts before the text model's."""
    for keys in (("torch_dtype",), ("dtype",)):
        outer = reading.raw.get(keys[0])
        if isinstance(outer, str):
            return reading.top(outer, keys[0])
    found = reading.located("torch_dtype") or reading.located("dtype")
    return found or absent(reading, "torch_dtype")


def tie_word_embeddings(reading: Reading) -> Maybe[bool]:
    """Whether embedding and output head are one weight: the whole config's word and class count before the text's."""
    outer = reading.raw.get("tie_word_embeddings")
    if isinstance(outer, bool):
        return reading.top(outer, "tie_word_embeddings")
    found = reading.written("tie_word_embeddings") or _tied_by_the_outer_class(reading)
    return found or reading.located("tie_word_embeddings") or reading.derived(False, "no tie_word_embeddings")


def _tied_by_the_outer_class(reading: Reading) -> Located[bool] | None:
    """What the class of a config with parts takes where neither it nor its text model says."""
    outer = class_of(str(reading.raw.get("model_type") or "")) if reading.path else None
    if outer is None or "tie_word_embeddings" not in outer.defaults:
        return None
    tied = bool(outer.defaults["tie_word_embeddings"])
    return Located(tied, reading.place(()), "tie_word_embeddings", "default", f"class default of {outer.name}")


def quant_method(reading: Reading) -> Maybe[str | None]:
    """How the checkpoint's weights are quantised, in vLLM's word; None for a plain checkpoint."""
    for key in ("quantization_config", "compression_config"):
        for path, holder in (((key,), reading.raw), ((*reading.path, key), reading.text)):
            found = holder.get(key)
            if isinstance(found, Mapping):
                return _method_of(reading, found, path)
    side = reading.side_files.get("hf_quant_config.json", {}).get("quantization")
    if isinstance(side, Mapping) and side.get("quant_algo"):
        method = _modelopt_method(str(side["quant_algo"]))
        return Located(method, reading.place(()), "", "written", "quant_algo of hf_quant_config.json")
    return reading.derived(None, "no quantization_config")


def _method_of(reading: Reading, config: Mapping[str, Any], path: tuple[str, ...]) -> Maybe[str | None]:
    producer, inner = config.get("producer"), config.get("quantization")
    by_modelopt = isinstance(producer, Mapping) and producer.get("name") == "modelopt"
    if by_modelopt and isinstance(inner, Mapping) and inner.get("quant_algo"):
        return reading.top(_modelopt_method(str(inner["quant_algo"])), *path)
    if isinstance(method := config.get("quant_method"), str):
        return reading.top(method.lower().replace("compressed_tensors", "compressed-tensors"), *path, "quant_method")
    return Unknown("quantization_config names no quant_method", reading.place(path))


def _modelopt_method(quant_algo: str) -> str:
    return {"NVFP4": "modelopt_fp4", "MIXED_PRECISION": "modelopt_mixed"}.get(quant_algo.upper(), "modelopt")


def has_own_code(reading: Reading) -> Maybe[bool]:
    """Whether the model's repository brings the code of its class (`auto_map`); a catalogue row does not say."""
    if reading.catalogue_id:
        return Unknown(f"whether {reading.catalogue_id} brings code of its own is not recorded")
    mapped = reading.raw.get("auto_map")
    has_class = isinstance(mapped, Mapping) and any(str(name).startswith("AutoModel") for name in mapped)
    return reading.derived(has_class, "auto_map")


def weight_bytes_stated(reading: Reading) -> Maybe[int]:
    """Bytes of the checkpoint's weights where somebody published them (a catalogue row, an index file)."""
    if is_count(read := reading.side_files.get(SIZES_FILE, {}).get("total_bytes")):
        return Located(read, reading.place(()), "", "written", f"total_bytes of {SIZES_FILE}")
    index = reading.side_files.get(INDEX_FILE, {}).get("metadata")
    total = index.get("total_size") if isinstance(index, Mapping) else None
    if is_count(total):
        return Located(total, reading.place(()), "", "written", f"total_size of {INDEX_FILE}")
    if reading.catalogue_id and is_count(stated := reading.raw.get("weight_bytes")):
        return Located(stated, reading.place(()), "", "written", f"bytes of the checkpoint of {reading.catalogue_id}")
    more = reading.raw.get("weight_bytes_with_mtp") if reading.catalogue_id else None
    why = f"the published {more} bytes hold layers for token prediction too" if more else "nobody states it"
    return Unknown(f"the size of the checkpoint is not known: {why}", settle_by=f"{INDEX_FILE} beside config.json")


def fewest_key_value_heads(reading: Reading) -> Maybe[int]:
    """The smallest number of KV heads of any kind of layer: what decides about replication."""
    counts = [num_key_value_heads(reading)]
    counts += [found for name in OTHER_KV_HEAD_NAMES if (found := reading.located(name))]
    unknown = next((count for count in counts if isinstance(count, Unknown)), None)
    return unknown or min((count for count in counts if isinstance(count, Located)), key=lambda count: count.value)


FOUR_TIMES_HIDDEN = frozenset(("gpt2", "bloom", "gpt_bigcode", "gptj", "codegen", "mpt", *FALCON))
OTHER_KV_HEAD_NAMES = ("num_global_key_value_heads", "swa_num_key_value_heads")

READERS: Mapping[str, Callable[[Reading], Maybe[Any]]] = {
    "num_attention_heads": num_attention_heads,
    "num_key_value_heads": num_key_value_heads,
    "fewest_key_value_heads": fewest_key_value_heads,
    "num_hidden_layers": num_hidden_layers,
    "hidden_size": plain("hidden_size"),
    "head_dim": head_dim,
    "intermediate_size": intermediate_size,
    "moe_intermediate_size": moe_intermediate_size,
    "vocab_size": plain("vocab_size"),
    "num_experts": num_experts,
    "num_experts_per_tok": num_experts_per_tok,
    "is_mla": lambda reading: reading.derived(is_mla(reading), f"model type {reading.model_type}"),
    "kv_lora_rank": kv_lora_rank,
    "q_lora_rank": optional("q_lora_rank"),
    "qk_nope_head_dim": optional("qk_nope_head_dim"),
    "qk_rope_head_dim": optional("qk_rope_head_dim"),
    "v_head_dim": optional("v_head_dim"),
    "max_position_embeddings": max_position_embeddings,
    "longest_context": longest_context,
    "yarn_context": yarn_context,
    "sliding_window": sliding_window,
    "tie_word_embeddings": tie_word_embeddings,
    "torch_dtype": torch_dtype,
    "quant_method": quant_method,
    "has_own_code": has_own_code,
    "weight_bytes_stated": weight_bytes_stated,
}
"""Every fact that a `Geometry` has, by its standard name."""
