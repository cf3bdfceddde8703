"""Files that have none of the known forms, and look all the same as if they started an engine."""

from __future__ import annotations

import re

from shardlint.text import Source

NO_FORM = "has none of the forms that are known"
_SIGNS = (
    r"vllm/vllm-[\w.-]+|(?<![\w./-])[\w./-]*vllm-openai[\w.-]*(?::[\w.-]+)?|lmsysorg/sglang[\w.:-]*|nvcr\.io/nim/[\w./:-]+"
    r"|\bvllm serve\b|\bvllm\.entrypoints\.[\w.]+|\bsglang\.launch_server\b|\btrtllm-serve\b"
    r"|\btext-generation-(?:launcher|inference)\b|--tensor-parallel-size|--tp-size"
)
"""Images and commands of engines, as text: compiled for the few files without a form."""
_COMMENT = re.compile(r"[ \t]*(?:#|//|--[ \t])")


def reason(source: Source) -> str:
    """Why nothing was read, with the first thing in the file that speaks of an engine and where it stands."""
    sign = next((sign for sign in re.finditer(_SIGNS, source.text) if not _in_comment(source.text, sign.start())), None)
    if sign is None:
        return NO_FORM
    place = source.span(*sign.span())
    return f"{NO_FORM}, and looks like the deployment of a model: {sign[0][:80]} in line {place.line}"


def _in_comment(text: str, at: int) -> bool:
    return _COMMENT.match(text, text.rfind("\n", 0, at) + 1) is not None
