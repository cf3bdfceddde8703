"""Another value for what somebody wrote, in the way in which they wrote it."""

from __future__ import annotations

from typing import Any

from shardlint.findings import Change, Located
from shardlint.findings.patterns import Pattern

_KEY = Pattern(r"[\w-]+(?:: |=)")
_LAST_NUMBER = Pattern(r"\d+(?=\D*$)")

FLAGS = {
    "tensor_parallel_size": "--tensor-parallel-size",
    "pipeline_parallel_size": "--pipeline-parallel-size",
    "data_parallel_size": "--data-parallel-size",
    "prefill_context_parallel_size": "--prefill-context-parallel-size",
    "max_model_len": "--max-model-len",
}


def respelled(size: Located[Any] | None, value: int, degree: str) -> str:
    """Another value for a size, in its author's spelling (`-tp 4`, `tp: 4` in a file of flags, `tp=4` in a call).

    The flag in full where that is not at hand.
    """
    spelled = size.spelled if size is not None and size.origin == "written" else ""
    is_flag = spelled.startswith("-") or _KEY.match(spelled) is not None
    own_flag = is_flag and str(size.value if size is not None else "") in spelled
    if own_flag and size is not None:
        words = " ".join(_LAST_NUMBER.sub(str(value), spelled).split())
        return words if size.span is None else Change(words, size.span, str(size.value), str(value))
    return f"{FLAGS[degree]} {value}"
