"""Foreign JSON text becomes a clean config, or the list of all that is wrong with it.

The schema is pydantic's; its core is used without the model classes because they cost twice the start-up time, and
both are imported only here, when a user's config.json has to be judged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from shardlint.facts.json_places import place_of
from shardlint.facts.reading import TEXT_PARTS
from shardlint.findings import Span, Unknown
from shardlint.text.source import Source

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

MOST_CHARACTERS = 16_000_000
"""A hundred times the largest config.json known (22,000 quantised layers named one by one)."""
LARGEST_COUNT = 10**9

COUNTS = (
    "num_attention_heads n_head n_heads num_heads decoder_attention_heads encoder_attention_heads "
    "num_key_value_heads n_head_kv num_kv_heads multi_query_group_num num_attention_groups "
    "num_global_key_value_heads swa_num_key_value_heads swa_num_attention_heads "
    "num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers "
    "hidden_size n_embd n_embed d_model head_dim hidden_size_per_head attention_head_dim kv_channels "
    "global_head_dim swa_head_dim vocab_size padded_vocab_size "
    "kv_lora_rank q_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim "
    "max_position_embeddings n_positions max_seq_len seq_length model_max_length max_target_positions "
    "max_sequence_length max_seq_length seq_len expansion_ratio"
)
COUNTS_OF_LAYERS = (
    "intermediate_size n_inner ffn_dim ffn_hidden_size d_ff decoder_ffn_dim "
    "moe_intermediate_size expert_ffn_hidden_size "
    "num_experts moe_num_experts n_routed_experts num_local_experts "
    "num_experts_per_tok num_experts_per_token top_k_experts moe_topk moe_top_k moe_k"
)
"""Counts that may be a list with one entry for each layer."""
FLAGS = "multi_query new_decoder_architecture multi_query_attention use_sliding_window tie_word_embeddings"
WORDS = "model_type torch_dtype dtype"
OBJECTS = "quantization_config compression_config attn_config ffn_config"
LISTS = "compress_ratios block_configs layer_types"


def clean(source: Source) -> tuple[dict[str, Any], tuple[Unknown, ...]]:
    """The config as a dict, and every fault with its place and reason; a faulty value is not in the dict.

    Keys that nobody here reads pass as they are, bare `Infinity` and `NaN` in them included.
    """
    if len(source.text) > MOST_CHARACTERS:
        reason = f"{source.path} has {len(source.text)} characters; more than {MOST_CHARACTERS} are not read"
        return {}, (Unknown(reason, source.span(0, 0)),)
    try:
        config = json.loads(source.text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        return {}, (Unknown(f"{source.path} is not JSON: {error.msg}", source.span(error.pos, error.pos)),)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        return {}, (Unknown(f"{source.path} is not read: {reason}", source.span(0, 0)),)
    if not isinstance(config, dict):
        return {}, (Unknown(f"{source.path} holds no JSON object but {_shown(config)}", source.span(0, 0)),)
    return config, tuple(_faults(config, source))


def clean_mapping(config: Mapping[str, Any], name: str = "config.json") -> tuple[dict[str, Any], tuple[Unknown, ...]]:
    """The same for a config that is a dict already (a Python caller's): places are unknown then."""
    judged = dict(config)
    return judged, tuple(_faults(judged, Source(name, "")))


def _faults(config: dict[str, Any], source: Source) -> list[Unknown]:
    """Every fault; the faulty values are taken out of the config."""
    from pydantic_core import ValidationError

    try:
        _validator().validate_python(config)
    except ValidationError as errors:
        found: dict[tuple[str, ...], Unknown] = {}
        for error in errors.errors(include_url=False):
            path = tuple(_keys(error["loc"]))
            if path not in found:  # of a union each branch complains
                found[path] = _fault(source, path, error["msg"], _value_at(config, path))
        for path in found:
            _value_at(config, path[:-1]).pop(path[-1], None)
        return list(found.values())
    return []


def _fault(source: Source, path: tuple[str, ...], message: str, value: Any) -> Unknown:
    span: Span | None = place_of(source, path) if source.text else None
    wanted = message.removeprefix("Input ")
    return Unknown(f"{'.'.join(path)} of {source.path} is {_shown(value)}, which {wanted}", span, _shown(value))


def _keys(location: tuple[int | str, ...]) -> list[str]:
    """The keys down to the value that is at fault; the names of a union's branches and list places are no keys."""
    keys: list[str] = []
    for part in location:
        if not isinstance(part, str) or (keys and keys[-1] not in TEXT_PARTS):
            break
        keys.append(part)
    return keys


def _value_at(config: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        config = config.get(key)
    return config


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, dict | list) else f"a {'list' if isinstance(value, list) else 'object'}"
    return text if len(text) <= 40 else text[:37] + "..."


@cache
def _validator() -> SchemaValidator:
    from pydantic_core import SchemaValidator, core_schema

    count = core_schema.int_schema(strict=True, ge=0, le=LARGEST_COUNT)
    kinds = (
        (COUNTS, count),
        (COUNTS_OF_LAYERS, core_schema.union_schema([count, core_schema.list_schema(count, strict=True)])),
        ("sliding_window", core_schema.int_schema(strict=True, ge=-1, le=LARGEST_COUNT)),
        (FLAGS, core_schema.bool_schema(strict=True)),
        (WORDS, core_schema.str_schema(strict=True)),
        (OBJECTS, core_schema.dict_schema(strict=True)),
        (LISTS, core_schema.list_schema(strict=True)),
        ("architectures", core_schema.list_schema(core_schema.str_schema(strict=True), strict=True)),
    )
    fields = {
        name: core_schema.typed_dict_field(core_schema.nullable_schema(schema), required=False)
        for names, schema in kinds
        for name in names.split()
    }
    inner = core_schema.nullable_schema(core_schema.definition_reference_schema("config"))
    parts = {part: core_schema.typed_dict_field(inner, required=False) for part in TEXT_PARTS}
    config = core_schema.typed_dict_schema({**fields, **parts}, extra_behavior="allow", strict=True, ref="config")
    schema = core_schema.definitions_schema(core_schema.definition_reference_schema("config"), [config])
    return SchemaValidator(schema)
