"""Shell scripts: engine commands as they stand, in containers, and manifests in here-documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from shardlint import manifests
from shardlint.deployment import Launch
from shardlint.manifests import _devices, _docker_run
from shardlint.text import shell
from shardlint.text.documents import Document, documents
from shardlint.text.source import Fragment, Library, Source

NAME = "shell-script"
FILES = ("*.sh", "*.bash")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every command of a script, each named after the file."""
    if document.script is None:
        return
    name = document.source.path.replace("\\", "/").rpartition("/")[2]
    for command in shell.read(document.script, {}).commands:
        if command.words:
            base = Launch(name, "script", NAME, command.span, command.words, unit=name, env=command.env)
            yield _of_command(base)
        for heredoc in command.heredocs:
            yield from _inside(heredoc, library)


def _of_command(base: Launch) -> Launch:
    run = _docker_run.read(base.argv)
    if run is None:
        return replace(base, gpus_per_pod=_devices.usable(None, base.env))
    env = run.environment(base.env)
    entrypoint = run.last("entrypoint")
    return replace(
        base,
        unit=f"{base.unit}:{base.at.line}:{base.at.column}",
        argv=run.argv if entrypoint is None else (entrypoint, *run.argv),
        entrypoint_of_image=entrypoint is None,
        env=env,
        image=run.image,
        gpus_per_pod=run.cards(env),
    )


def _inside(heredoc: Fragment, library: Library) -> Iterator[Launch]:
    """The launches of a manifest in a here-document; the rest of the script is blanked, so that places stay true."""
    if not heredoc.text.strip() or ":" not in heredoc.text:
        return
    start, end = heredoc.offsets[0], heredoc.offsets[len(heredoc.text) - 1] + 1
    text = heredoc.source.text
    blank = "".join(character if character == "\n" else " " for character in text[:start])
    inner = Source(heredoc.source.path, blank + text[start:end])
    for document in documents(inner).documents:
        yield from manifests.launches(document, library)[1]
