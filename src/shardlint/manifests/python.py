"""Python files that start vLLM or SGLang in their own process: `LLM(...)`, `EngineArgs(...)`, `Engine(...)`."""

from __future__ import annotations

from collections.abc import Iterable

from shardlint.deployment import Launch
from shardlint.findings import Problem
from shardlint.text.documents import Document
from shardlint.text.source import Library

NAME = "python"
FILES = ("*.py",)
LANGUAGES = ("python",)


def launches(document: Document, library: Library) -> Iterable[Launch | Problem]:
    """The launches of every call that makes an engine and states an argument of it as a literal."""
    text = document.source.text
    if "from vllm" in text or "import vllm" in text or "sglang" in text:
        from shardlint.manifests import _python_calls  # few files call an engine

        yield from _python_calls.launches_of(document.source, NAME)
