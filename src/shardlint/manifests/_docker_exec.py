"""`docker exec`: a command in a container that runs already."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.deployment import Word
from shardlint.findings import Located
from shardlint.findings.records import NamedTuple
from shardlint.manifests import _docker_run
from shardlint.manifests._docker_run import after, text_of

_WITH_WORD = ("-e", "--env", "-u", "--user", "-w", "--workdir", "--env-file", "--detach-keys")


class Exec(NamedTuple):
    """The container's name, variables for the command, and which word of the whole is its first."""

    container: str
    env: dict[str, Word]
    first: int
    detached: bool


def read(words: Sequence[Word]) -> Exec | None:
    """The command as `docker exec`; None where it is another one, or the container's name is not told."""
    texts = [text_of(word) for word in words]
    if not texts or texts[0].rpartition("/")[2] not in _docker_run.PROGRAMS or "exec" not in texts[1:3]:
        return None
    place = texts.index("exec") + 1
    env: dict[str, Word] = {}
    detached = False
    while place < len(words) and texts[place].startswith("-"):
        option, equals, _ = texts[place].partition("=")
        takes_word = option in _WITH_WORD and not equals
        value = words[place + 1] if takes_word and place + 1 < len(words) else after(words[place], len(option) + 1)
        if option in ("-e", "--env"):
            name, is_set, _ = text_of(value).partition("=")
            if is_set:
                env[name] = after(value, len(name) + 1)
        detached = detached or option == "--detach" or (not option.startswith("--") and "d" in option)
        place += 2 if takes_word else 1
    if place + 1 >= len(words) or not isinstance(name_of := words[place], Located):
        return None
    return Exec(name_of.value, env, place + 1, detached)
