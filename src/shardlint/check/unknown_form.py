"""Files that have none of the known forms, and look all the same as if they started an engine."""

from __future__ import annotations

import re

from shardlint.findings.patterns import Pattern
from shardlint.text import Source

NO_FORM = "has none of the forms that are known"
_SIGNS = (
    ("vllm/vllm-", r"vllm/vllm-[\w.-]+"),
    ("vllm-openai", r"(?<![\w./-])[\w./-]*vllm-openai[\w.-]*(?::[\w.-]+)?"),
    ("lmsysorg/sglang", r"lmsysorg/sglang[\w.:-]*"),
    ("nvcr.io/nim/", r"nvcr\.io/nim/[\w./:-]+"),
    ("vllm serve", r"\bvllm serve\b"),
    ("vllm.entrypoints", r"\bvllm\.entrypoints\.[\w.]+"),
    ("sglang.launch_server", r"\bsglang\.launch_server\b"),
    ("trtllm-serve", r"\btrtllm-serve\b"),
    ("text-generation-", r"\btext-generation-(?:launcher|inference)\b"),
    ("--tensor-parallel-size", "--tensor-parallel-size"),
    ("--tp-size", "--tp-size"),
)
"""Images and commands of engines: text that each has, which is soon looked for, and the pattern, seldom compiled."""
_COMMENT = Pattern(r"[ \t]*(?:#|//|--[ \t])")


def reason(source: Source) -> str:
    """Why nothing was read, with the first thing in the file that speaks of an engine and where it stands."""
    text = source.text
    there = "|".join(pattern for part, pattern in _SIGNS if part in text)
    found = re.finditer(there, text) if there else ()
    sign = next((sign for sign in found if not _in_comment(text, sign.start())), None)
    if sign is None:
        return NO_FORM
    place = source.span(*sign.span())
    return f"{NO_FORM}, and looks like the deployment of a model: {sign[0][:80]} in line {place.line}"


def _in_comment(text: str, at: int) -> bool:
    return _COMMENT.match(text, text.rfind("\n", 0, at) + 1) is not None
