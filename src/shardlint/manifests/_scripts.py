"""Commands of a shell script: as they stand, in containers, and manifests in here-documents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from shardlint import manifests
from shardlint.deployment import Launch
from shardlint.findings import Problem, Unknown
from shardlint.manifests import _card_names, _devices, _docker_run, _mounts
from shardlint.manifests._started import first_word, script_index, stages
from shardlint.text import shell
from shardlint.text.source import Fragment, Library, Source, beside


def launches_of(script: Fragment, form: str, library: Library) -> Iterator[Launch | Problem]:
    """The launches of every command, each named after the file, and what of the script could not be read."""
    name = script.source.path.replace("\\", "/").rpartition("/")[2]
    base = Launch(name, "script", form, script.span(0, 0), unit=name)
    files = partial(_beside, script.source, library)
    read = shell.read(script, {}, files=files)
    yield from read.problems
    for command, stage in zip(read.commands, stages(read.commands), strict=True):
        if command.words:
            yield from _of_command(command, base._replace(together=f"{name} {stage}"), files)
        for heredoc in command.heredocs:
            yield from _inside(heredoc, library)


def _beside(script: Source, library: Library, path: str) -> Source | Unknown:
    return library.sibling(beside(script.path, path))


def _of_command(command: shell.Command, base: Launch, files: shell.Files) -> Iterator[Launch]:
    base = base._replace(
        at=first_word(command),
        argv=command.words,
        env=command.env,
        conditional=command.conditional,
        background=command.background,
    )
    run = _docker_run.read(command.words)
    if run is None:
        cards = _card_names.usable(_card_names.EVERY, base.env)
        yield base._replace(gpus_per_pod=_devices.usable(None, base.env), cards=cards)
    else:
        yield from _of_container(run, command, base, files)


def _of_container(
    run: _docker_run.DockerRun, command: shell.Command, base: Launch, files: shell.Files
) -> Iterator[Launch]:
    """`docker run`: its words, or the commands of the script that a shell in the container is given."""
    env = run.environment(command.env, files)
    given = run.cards(env)
    unit = f"{base.unit}:{base.at.line}:{base.at.column}"
    base = base._replace(
        unit=unit,
        env=env,
        image=run.image,
        gpus_per_pod=given,
        mounts=_mounts.of_docker_run(run),
        cards=run.card_names(env),
        background=base.background or run.detached,
    )
    place = script_index([_docker_run.text_of(word) for word in run.words])
    script = None if place is None else run.first + place - (len(run.words) - len(run.argv))
    if script is None or not run.first <= script < len(command.texts):
        yield base._replace(argv=run.words, entrypoint_of_image=run.last("entrypoint") is None)
        return
    for inner in shell.read(command.texts[script], env, command.texts[script + 2 :]).commands:
        if inner.words:
            surroundings = {**env, **inner.env}
            yield base._replace(
                at=first_word(inner),
                argv=inner.words,
                env=surroundings,
                gpus_per_pod=_devices.usable(given, surroundings),
                cards=_card_names.usable(base.cards, inner.env),
            )


def _inside(heredoc: Fragment, library: Library) -> Iterator[Launch]:
    """The launches of a manifest in a here-document; the rest of the script is blanked, so that places stay true."""
    if not heredoc.text.strip() or ":" not in heredoc.text:
        return
    start, end = heredoc.offsets[0], heredoc.offsets[len(heredoc.text) - 1] + 1
    text = heredoc.source.text
    blank = "".join(character if character == "\n" else " " for character in text[:start])
    inner = Source(heredoc.source.path, blank + text[start:end])
    from shardlint.text import yaml  # the one place where a script needs it

    for document in yaml.documents(inner).documents:
        yield from manifests.launches(document, library).launches
