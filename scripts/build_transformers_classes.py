"""Write the names of the generating model classes of Transformers, for the engines that fall back on them.

Usage: python scripts/build_transformers_classes.py, with an interpreter that has the release of Transformers that the
newest known vLLM installs. Nothing of it is imported but the table of its names.
"""

from __future__ import annotations

from pathlib import Path

import transformers

DATA = Path(__file__).resolve().parent.parent / "src" / "shardlint" / "engines" / "vllm" / "data"
GENERATING = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ChatModel")


def main() -> None:
    modules = transformers._class_to_module
    names = sorted(name for name, module in modules.items() if "modeling_" in module and name.endswith(GENERATING))
    head = f"# model classes of Transformers {transformers.__version__} that generate"
    (DATA / "transformers_classes.txt").write_text("\n".join([head, *names]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
