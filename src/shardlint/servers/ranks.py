"""What a command line says about its own place among the processes of one engine instance.

Only these few flags are looked at, by their spelling, which the engines share; what they mean is the engines' business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.deployment import Launch, Word
from shardlint.findings import Located
from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple

_RANKS = ("node_rank", "data_parallel_rank", "data_parallel_start_rank")
_SIZES = ("nnodes", "data_parallel_size", "dp_size", "tensor_parallel_size", "tp_size", "tp")
_NOT_ZERO = Pattern(r"\d*[1-9]\d*", re.ASCII)
_FLAG = Pattern(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)


class Rank(NamedTuple):
    """The place of one command."""

    is_rank: bool
    """The command says which of several processes it is."""
    follows: bool
    """It is not the first of them."""
    model: str
    sizes: tuple[str, ...]
    """As written; the processes of one instance have them in common."""


def rank_of(launch: Launch) -> Rank:
    """Read off the flags; a rank that the file does not tell (`$RANK`) counts as the first."""
    flags = dict(_flags(launch.argv))
    later = any(_is_later(flags.get(name)) for name in _RANKS)
    follows = later or "headless" in flags
    is_rank = follows or any(name in flags for name in (*_RANKS, "nnodes"))
    model = flags.get("model") or flags.get("model_path") or _model(launch.argv)
    return Rank(is_rank, follows, model, tuple(flags.get(name, "") for name in _SIZES))


def _is_later(rank: str | None) -> bool:
    return rank is not None and _NOT_ZERO.fullmatch(rank) is not None


def _flags(argv: tuple[Word, ...]) -> Iterator[tuple[str, str]]:
    """Flags with the word that follows them (`--nnodes 2`, `--nnodes=2`), dashes as underscores."""
    for place, word in enumerate(argv):
        if (flag := _FLAG.fullmatch(_text(word))) is None:
            continue
        following = _text(argv[place + 1]) if place + 1 < len(argv) else ""
        value = flag.group(2) if flag.group(2) is not None else "" if _FLAG.fullmatch(following) else following
        yield flag.group(1).replace("-", "_"), value


def _model(argv: tuple[Word, ...]) -> str:
    """The word after `serve`."""
    words = [_text(word) for word in argv]
    after = words.index("serve") + 1 if "serve" in words else len(words)
    return words[after] if after < len(words) else ""


def _text(word: Word) -> str:
    return word.value if isinstance(word, Located) else word.spelled
