"""Models of Qwen that hear: with Whisper's encoder or a newer one, and with a tower for images or without."""

from __future__ import annotations

from collections.abc import Mapping

from shardlint.architectures.blocks.tower import Bricks
from shardlint.architectures.families import dense, experts
from shardlint.architectures.families.decoders import Family
from shardlint.architectures.families.sound_models import whole_whisper
from shardlint.architectures.families.towers import qwen2_5_vl, qwen3_vl
from shardlint.architectures.families.with_tower import LANGUAGE_MODEL, VisionTower
from shardlint.architectures.model import Missing, Model
from shardlint.architectures.part import Part
from shardlint.architectures.rows import Row, Rows

THINKER = "thinker_config"
BEGIN_AND_END = 2
HALVINGS = 3
"""Convolutions that each halve the frequencies."""
KERNEL = 3 * 3


def qwen2_5_omni(model: Model) -> Rows:
    """Qwen2.5-Omni's thinker: Qwen2.5-VL's tower, and Whisper's encoder without learnt positions."""
    audio, tower = _part(model, "audio_config"), Bricks("audio_tower", "cut")
    width, output = audio.number("d_model"), audio.number("output_dim", model.hidden_size)
    heard = (
        *(row for row in whole_whisper(audio) if not row.name.endswith("embed_positions")),
        tower.whole("audio_bos_eos_token", BEGIN_AND_END, output),
        tower.whole("proj", output, width, bias=True),
    )
    return _thinker(model, dense.qwen2(model), heard, qwen2_5_vl)


def qwen3_omni(model: Model) -> Rows:
    """Qwen3-Omni's thinker: Qwen3-VL's tower, and an encoder of sounds that ranks cut."""
    return _thinker(model, experts.qwen3_moe(model), _encoder(model), qwen3_vl)


def qwen3_asr(model: Model) -> Rows:
    """Qwen3-ASR: Qwen3-Omni's encoder of sounds before a Qwen3."""
    return _thinker(model, dense.qwen3(model), _encoder(model), None)


def _encoder(model: Model) -> tuple[Row, ...]:
    audio, tower, name = _part(model, "audio_config"), Bricks("audio_tower"), "layers.#"
    width, inner, depth = (audio.number(key) for key in ("d_model", "encoder_ffn_dim", "encoder_layers"))
    channels, bands = audio.number("downsample_hidden_size"), audio.number("num_mel_bins")
    for _ in range(HALVINGS):
        bands = (bands + 1) // 2
    attention = (f"{name}.self_attn.qkv_proj", f"{name}.self_attn.out_proj")
    output = audio.number("output_dim", model.hidden_size)
    return (
        tower.whole("conv2d1", channels, KERNEL, bias=True),
        *(tower.whole(f"conv2d{at}", channels, channels * KERNEL, bias=True) for at in range(2, HALVINGS + 1)),
        tower.whole("conv_out", width, channels * bands),
        *tower.attention(attention, width, audio.number("encoder_attention_heads"), depth),
        tower.column(f"{name}.fc1", inner, width, times=depth),
        tower.row(f"{name}.fc2", width, inner, times=depth),
        *(
            tower.whole(f"{name}.{key}", width, bias=True, times=depth)
            for key in ("self_attn_layer_norm", "final_layer_norm")
        ),
        tower.whole("ln_post", width, bias=True),
        tower.whole("proj1", width, width, bias=True),
        tower.whole("proj2", output, width, bias=True),
    )


def _part(model: Model, key: str) -> Part:
    """A part of the thinker, beside which these models have others that vLLM does not serve."""
    part = Part(model.geometry, f"{THINKER}.{key}")
    if not part.is_known:
        raise Missing(f"the config of {model.geometry.model_id} does not tell {THINKER}.{key}")
    return part


def _thinker(model: Model, rows: Rows, heard: tuple[Row, ...], tower: VisionTower | None) -> Rows:
    seen = tower(model, _part(model, "vision_config")) if tower else ()
    text = (row._replace(name=LANGUAGE_MODEL + row.name) for row in rows.weights)
    renames = (
        ("thinker.model.", f"{LANGUAGE_MODEL}model."),
        ("thinker.lm_head.", f"{LANGUAGE_MODEL}lm_head."),
        ("thinker.", ""),
    )
    return rows._replace(weights=(*heard, *seen, *text), renames=renames)


FAMILIES: Mapping[str, Family] = {
    "Qwen2_5OmniForConditionalGeneration": qwen2_5_omni,
    "Qwen2_5OmniModel": qwen2_5_omni,
    "Qwen3ASRForConditionalGeneration": qwen3_asr,
    "Qwen3OmniMoeForConditionalGeneration": qwen3_omni,
}
"""Architecture class -> family."""
