"""Scripts that a container runs from a ConfigMap of the same file (`bash /scripts/start.sh`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.findings import Located
from shardlint.manifests._objects import of_kind_in_file
from shardlint.manifests._started import SHELLS, Started, first_word, stages
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Scalar
from shardlint.text.source import Fragment, Source


def commands(started: Iterable[Started], document: Document) -> Iterator[Started]:
    """The commands, those of a mounted script in the place of the one that runs it."""
    for command in started:
        script = _script(command, document)
        if script is None:
            yield command
            continue
        from shardlint.text import shell  # few manifests bring scripts

        found = shell.read(script, command.env).commands
        for inner, stage in zip(found, stages(found), strict=True):
            if inner.words:
                env, conditional = {**command.env, **inner.env}, inner.conditional or command.conditional
                yield Started(inner.words, env, first_word(inner), False, conditional, inner.background, stage)


def _script(command: Started, document: Document) -> Fragment | None:
    """The text of the script that a command names by its path; None where the file does not hold it."""
    words = [word.value if isinstance(word, Located) else word.spelled for word in command.argv[:4]]
    if words and words[0].rpartition("/")[2] in SHELLS:
        words = [word for word in words[1:] if not word.startswith("-")]
    return file_of(words[0], document.source) if words and "/" in words[0] else None


def file_of(path: str, source: Source) -> Fragment | None:
    """The text that a ConfigMap of the same file has under a path's last part."""
    if not source.holds("ConfigMap"):
        return None
    name = path.rpartition("/")[2]
    for item in of_kind_in_file(source, "ConfigMap"):
        data = item.get("data")
        value = data.get(name) if isinstance(data, Mapping) else None
        if isinstance(value, Scalar):
            return value.fragment()
    return None
