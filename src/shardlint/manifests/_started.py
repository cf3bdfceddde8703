"""What a container starts: its words, or the commands of the script that a shell in it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shardlint.deployment import Launch, Word
from shardlint.findings import Located, Maybe, Span
from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple
from shardlint.manifests._splices import word_of
from shardlint.text.source import Fragment

if TYPE_CHECKING:
    from shardlint.text.shell import Command

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ash", "ksh"})
_INITS = Pattern(r"(?:.*/)?(?:tini|dumb-init|catatonit|env)|-[gs]|--")
"""Small inits, and their options, that do nothing but start the words after them."""
_OPTIONS_WITH_NAME = frozenset({"-o", "+o", "-O", "+O"})
_ENDERS = frozenset({"kill", "pkill", "killall", "wait", "fuser"})
_SHELL_LINE = Pattern(r"(?:/\S+/)?(?:ba|z|da|a|k)?sh\s+-\w*c\s")
"""How a whole command line begins that stands in one word; KubeRay gives such to a shell of its own."""
_SCRIPT_OPTION = Pattern(r"-[a-zA-Z]*c[a-zA-Z]*")


class Started(NamedTuple):
    """One command of a container."""

    argv: tuple[Word, ...]
    env: Mapping[str, Maybe[str]]
    at: Span | None
    entrypoint_of_image: bool = False
    conditional: bool = False
    background: bool = False
    stage: int = 0
    """Of its script: what ended before a stage began runs beside nothing in it."""

    def within(self, surroundings: Launch) -> Launch:
        """The launch of this command, in what is known of the container around it."""
        return surroundings._replace(
            at=self.at or surroundings.at,
            argv=self.argv,
            env=self.env,
            entrypoint_of_image=self.entrypoint_of_image,
            conditional=self.conditional,
        )


def started(
    entrypoint: Sequence[Fragment],
    arguments: Sequence[Fragment],
    env: Mapping[str, Maybe[str]],
    word: Callable[[Fragment], Word] = word_of,
) -> Iterator[Started]:
    """The commands behind an entrypoint and its arguments; without an entrypoint the image's own stands before them."""
    words = [*entrypoint, *arguments]
    script = script_index([fragment.text for fragment in words])
    if script is None and words and _SHELL_LINE.match(words[0].text):
        script = 0
    if script is not None:
        from shardlint.text import shell  # most containers name their words, and need no shell

        commands = shell.read(words[script], env, words[script + 2 :]).commands
        for command, stage in zip(commands, stages(commands), strict=True):
            if command.words:
                surroundings = {**env, **command.env}
                at, conditional = first_word(command), command.conditional
                yield Started(command.words, surroundings, at, False, conditional, command.background, stage)
        return
    argv = tuple(word(fragment) for fragment in words)
    yield Started(argv, env, argv[0].span if argv else None, entrypoint_of_image=not entrypoint)


def stages(commands: Sequence[Command]) -> Iterator[int]:
    """For each command of a script the number of its stage: one ends where commands before it are stopped."""
    stage = 0
    seen: set[str] = set()
    for command in commands:
        words = [word.value if isinstance(word, Located) else "" for word in command.words]
        stage += _stops_others(words, seen)
        seen.update(words)
        yield stage


def _stops_others(words: Sequence[str], seen: set[str]) -> bool:
    """Whether a command ends others or waits for them; a container only if its name was given before."""
    if words[:1] and words[0].rpartition("/")[2] in _ENDERS:
        return True
    if len(words) < 2 or words[0] not in ("docker", "podman", "nerdctl") or words[1] not in ("stop", "rm", "kill"):
        return "down" in words[1:4] and "compose" in "".join(words[:2])
    return any(word in seen or not word for word in words[2:] if not word.startswith("-"))


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
