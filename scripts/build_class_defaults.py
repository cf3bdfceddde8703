"""Makes `class_defaults.jsonl`: what an absent key of config.json means, asked of the config classes themselves.

Usage: python scripts/build_class_defaults.py VLLM_DIR

Needs `transformers` (torch is not needed) and the unpacked wheel of vLLM, whose own config classes replace some
of transformers'. A default is kept where the class gives it whatever the number of heads and the width are;
one that follows from them (KV heads, head size) is left to the readers.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

TARGET = Path(__file__).parent.parent / "src" / "shardlint" / "facts" / "data" / "class_defaults.jsonl"
PROBED = ("num_attention_heads", "hidden_size", "num_hidden_layers", "qk_rope_head_dim", "qk_nope_head_dim")
FOLLOWING = ("num_key_value_heads", "num_kv_heads", "head_dim", "qk_head_dim", "ffn_hidden_size", "intermediate_size")
"""What may follow from the heads and the width: no default where that could not be tried."""
NO_GEOMETRY = re.compile(
    r"token|^_|dropout|drop_|eps$|epsilon|init|^use_cache$|^output_|return_dict|id2label|label2id|num_labels|"
    r"problem_type|chunk_size_feed_forward|transformers_version|torchscript|pruned|loss|^model_type$|aux_coef|"
    r"coefficient|layerdrop|^mask_|jitter|finetuning_task|cross_attention|^is_decoder|temperature|name_or_path|"
    r"_act$|activation|^act_|attn_implementation|experts_implementation|prob$|rate$|^use_mean|^tie_encoder"
)
PARTS = ("text_config", "vision_config", "audio_config", "thinker_config", "language_config", "llm_config")
MARKS_OF_A_LAYER_STACK = ("num_attention_heads", "num_hidden_layers", "hidden_size")


def vllm_classes(folder: Path) -> dict[str, Any]:
    """vLLM's own config classes by model type, imported with its machinery replaced."""
    for name in ("torch", "vllm", "vllm.logger", "vllm.transformers_utils", "vllm.transformers_utils.utils"):
        sys.modules.setdefault(name, MagicMock(__path__=[str(folder / name.replace(".", "/"))], __spec__=None))
    folders = (
        path.parent for part in ("transformers_utils/configs", "models") for path in folder.glob(f"vllm/{part}/**/*.py")
    )
    for path in set(folders):
        package = ModuleType(".".join(path.relative_to(folder).parts))
        package.__path__ = [str(path)]
        sys.modules[package.__name__] = package
    registry = (folder / "vllm/transformers_utils/config.py").read_text()
    exports = dict(
        re.findall(r'"(\w+)": "(vllm\.[\w.]+)"', (folder / "vllm/transformers_utils/configs/__init__.py").read_text())
    )
    named = re.findall(r'^\s+(?:\*\*\{")?([\w-]+)"?[=:] ?"(\w+Config)"', registry, re.MULTILINE)
    transformers = importlib.import_module("transformers")
    modules = {name: importlib.import_module(exports[name]) if name in exports else transformers for _, name in named}
    found = {model_type: getattr(modules[name], name, None) for model_type, name in named}
    return {model_type: config_class for model_type, config_class in found.items() if config_class}


def transformers_classes() -> dict[str, Any]:
    auto = importlib.import_module("transformers.models.auto.configuration_auto")
    return {model_type: auto.CONFIG_MAPPING[model_type] for model_type in auto.CONFIG_MAPPING_NAMES}


def row(model_type: str, config_class: Any) -> dict[str, Any] | None:
    instance = made(config_class)
    if instance is None:
        return None
    spellings = {
        name: kept_as for name, kept_as in (config_class.attribute_map or {}).items() if not NO_GEOMETRY.search(name)
    }
    parts = {part: kind for part in PARTS if (kind := getattr(getattr(instance, part, None), "model_type", ""))}
    defaults = dict(fixed_defaults(config_class, instance, spellings))
    if not parts and not any(mark in defaults for mark in MARKS_OF_A_LAYER_STACK):
        return None
    found = {"id": model_type, "class": config_class.__name__, "defaults": defaults}
    return found | ({"spellings": spellings} if spellings else {}) | ({"parts": parts} if parts else {})


def fixed_defaults(config_class: Any, instance: Any, spellings: dict[str, str]) -> Iterator[tuple[str, Any]]:
    held = vars(instance)
    asked = [name for name in PROBED if isinstance(held.get(spellings.get(name, name)), int)]
    probes = [made(config_class, **{name: 2 * held[spellings.get(name, name)]}) for name in asked]
    asked_as = {spellings.get(name, name) for name in asked}
    for name in sorted({*held, *spellings}):
        kept_as = spellings.get(name, name)
        value = held.get(kept_as)
        if NO_GEOMETRY.search(name) or not isinstance(value, bool | int | str) or len(str(value)) > 40:
            continue
        same = all(vars(probe).get(kept_as) == value for probe in probes if probe)
        tried = all(probes) or name not in FOLLOWING
        if kept_as in asked_as or (same and tried):
            yield name, value


def made(config_class: Any, **kwargs: int) -> Any:
    """An instance with all defaults; None for a class that cannot be made so."""
    try:
        return config_class(**kwargs)
    except Exception as error:
        if not kwargs:
            print(f"left out: {config_class.__name__}: {type(error).__name__}: {str(error)[:90]}")
        return None


def main(vllm_folder: Path) -> None:
    classes = transformers_classes() | vllm_classes(vllm_folder)
    rows = [found for model_type, config_class in sorted(classes.items()) if (found := row(model_type, config_class))]
    text = "".join(json.dumps(found) + "\n" for found in rows)
    TARGET.write_text(text)
    print(f"{len(rows)} config classes, {len(text):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
