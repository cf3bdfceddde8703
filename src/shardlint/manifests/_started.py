"""What a container starts: its words, or the commands of the script that a shell in it is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from shardlint.deployment import Word
from shardlint.findings import Maybe, Span
from shardlint.manifests._splices import word_of
from shardlint.text.source import Fragment

if TYPE_CHECKING:
    from shardlint.text.shell import Command

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ash", "ksh"})
_INITS = re.compile(r"(?:.*/)?(?:tini|dumb-init|catatonit|env)|-[gs]|--")
"""Small inits, and their options, that do nothing but start the words after them."""
_OPTIONS_WITH_NAME = frozenset({"-o", "+o", "-O", "+O"})
_SCRIPT_OPTION = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")


class Started(NamedTuple):
    """One command of a container."""

    argv: tuple[Word, ...]
    env: Mapping[str, Maybe[str]]
    at: Span | None
    entrypoint_of_image: bool = False
    conditional: bool = False


def started(
    entrypoint: Sequence[Fragment],
    arguments: Sequence[Fragment],
    env: Mapping[str, Maybe[str]],
    word: Callable[[Fragment], Word] = word_of,
) -> Iterator[Started]:
    """The commands behind an entrypoint and its arguments; without an entrypoint the image's own stands before them."""
    words = [*entrypoint, *arguments]
    script = script_index([fragment.text for fragment in words])
    if script is not None:
        from shardlint.text import shell  # most containers name their words, and need no shell

        for command in shell.read(words[script], env, words[script + 2 :]).commands:
            if command.words:
                surroundings = {**env, **command.env}
                yield Started(command.words, surroundings, first_word(command), conditional=command.conditional)
        return
    argv = tuple(word(fragment) for fragment in words)
    yield Started(argv, env, argv[0].span if argv else None, entrypoint_of_image=not entrypoint)


def first_word(command: Command) -> Span:
    """Where the command stands; a first word that came from a variable stands elsewhere (`"$PYTHON" -m ...`)."""
    first, whole = command.words[0].span, command.span
    inside = first is not None and (whole.line, whole.column) <= (first.line, first.column) < (
        whole.end_line,
        whole.end_column,
    )
    return first if inside and first is not None else whole


def script_index(words: Sequence[str]) -> int | None:
    """Which word is the script in `sh -c SCRIPT`, whatever options stand between; None where no shell is given one."""
    first = next((place for place, word in enumerate(words) if not _INITS.fullmatch(word)), None)
    if first is None or words[first].rpartition("/")[2] not in SHELLS:
        return None
    asked = False
    for place in range(first + 1, len(words)):
        asked = asked or bool(_SCRIPT_OPTION.fullmatch(words[place]))
        if not words[place].startswith(("-", "+")) and words[place - 1] not in _OPTIONS_WITH_NAME:
            return place if asked else None
    return None
