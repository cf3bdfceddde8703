"""Commands that only start another: `exec`, `env`, `timeout 60`, ... What they take before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import basename

from shardlint.findings.records import NamedTuple
from shardlint.text.words import Value, hole_of, text_of

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)


class Prefix(NamedTuple):
    """`valued`: options that take the next word; `words`: how many words stand before the command."""

    valued: frozenset[str] = frozenset()
    words: int = 0


def _prefix(valued: str = "", words: int = 0) -> Prefix:
    return Prefix(frozenset(valued.split()), words)


PREFIXES: dict[str, Prefix] = {
    "exec": _prefix("-a"),
    "nohup": _prefix(),
    "env": _prefix("-u --unset -C --chdir"),
    "time": _prefix("-f --format -o --output"),
    "sudo": _prefix("-u --user -g --group -h --host -p --prompt -C -D --chdir -R -r -t -T -U"),
    "timeout": _prefix("-k --kill-after -s --signal", 1),
    "setsid": _prefix(),
    "numactl": _prefix("-N --cpunodebind -C --physcpubind -m --membind -p --preferred -i --interleave"),
    "taskset": _prefix("", 1),
    "chrt": _prefix("", 1),
    "stdbuf": _prefix("-i --input -o --output -e --error"),
    "nice": _prefix("-n --adjustment"),
    "ionice": _prefix("-c --class -n --classdata"),
    "command": _prefix(),
    "builtin": _prefix(),
    "unbuffer": _prefix(),
    "catchsegv": _prefix(),
    "tini": _prefix("-p -e"),
    "dumb-init": _prefix("-r --rewrite"),
    "gosu": _prefix("", 1),
    "su-exec": _prefix("", 1),
}


def name_of(value: Value) -> str:
    """The command that a word names, its folder left out; `''` where it is not known."""
    return basename(text_of(value)) if hole_of(value) is None else ""


def command_start(words: Sequence[Value]) -> int:
    """How many words stand before the command that really runs; all of them where none does (`exec > log`)."""
    at = 0
    while at < len(words) and (prefix := PREFIXES.get(name_of(words[at]))) is not None:
        after = _after(words, at + 1, prefix, takes_assignments=name_of(words[at]) in ("env", "sudo"))
        if name_of(words[at]) == "command" and text_of(words[at + 1] if at + 1 < len(words) else ()) in ("-v", "-V"):
            return at  # only asks whether a command exists
        at = after
    return at


def _after(words: Sequence[Value], at: int, prefix: Prefix, *, takes_assignments: bool) -> int:
    while at < len(words) and hole_of(words[at]) is None:
        text = text_of(words[at])
        if text == "--":
            at += 1
            break
        if text.startswith("-") and len(text) > 1:
            at += 2 if text in prefix.valued else 1
        elif takes_assignments and ASSIGNMENT.match(text):
            at += 1
        else:
            break
    return at + prefix.words


def shell_text(words: Sequence[Value]) -> int | None:
    """The index of the text in `bash -c TEXT`; None where the command is no such thing."""
    if not words or name_of(words[0]) not in ("bash", "sh", "dash", "zsh", "ash", "ksh"):
        return None
    at, has_text = 1, False
    while at < len(words) and hole_of(words[at]) is None:
        text = text_of(words[at])
        if text == "--":
            at += 1
            break
        if text[:1] not in ("-", "+") or len(text) < 2:
            break
        has_text = has_text or (not text.startswith("--") and "c" in text)
        at += 2 if text in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file") or _ends_with_option(text) else 1
    return at if has_text and at < len(words) else None


def _ends_with_option(text: str) -> bool:
    """`-eo pipefail`: the last letter of a cluster takes the next word."""
    return not text.startswith("--") and len(text) > 2 and text[-1] == "o"
