"""Commands of a shell script: as they stand, in containers, and manifests in here-documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from shardlint import manifests
from shardlint.deployment import Launch, Word
from shardlint.deployment.launch import NOTHING
from shardlint.findings import Located, Maybe, Problem, Unknown
from shardlint.manifests import (
    _card_names,
    _devices,
    _docker_exec,
    _docker_run,
    _mounts,
    _submitted,
    _surroundings,
    _wrappers,
)
from shardlint.manifests._started import first_word, script_index, stages
from shardlint.text import shell
from shardlint.text.source import Fragment, Inset, Library, Source, beside

Step = tuple[Launch | Problem, _wrappers.Options]
"""A launch, and the options of the `srun` that it runs under."""

MOST_WRAPPERS = 6
"""`ssh host "srun bash -c '...'"`: scripts inside one another that are followed."""


def launches_of(
    script: Fragment, form: str, library: Library, env: Mapping[str, Word] = NOTHING, base: Launch | None = None
) -> Iterator[Launch | Problem]:
    """The launches of every command, each named after the file, and what of the script could not be read."""
    return (launch for launch, _ in steps_of(script, form, library, env, base))


def steps_of(
    script: Fragment, form: str, library: Library, env: Mapping[str, Word] = NOTHING, base: Launch | None = None
) -> Iterator[Step]:
    """The same with the options of each launch's `srun`.

    `env` is what is set before the script starts, `base` what all launches share where it is no file of its own.
    """
    name = script.source.path.replace("\\", "/").rpartition("/")[2]
    base = base or Launch(name, "script", form, script.span(0, 0), unit=name)
    files = partial(_beside, script.source, library)
    read = shell.read(script, env, files=files)
    for problem in read.problems:
        yield problem, {}
    containers: dict[str, Launch] = {}
    for command, stage in zip(read.commands, stages(read.commands), strict=True):
        if command.words:
            own = base._replace(together=f"{base.unit} {stage}")
            yield from _remembered(command, _of_command(command, own, files), containers)
        for heredoc in command.heredocs:
            for launch in _inside(heredoc, base, files, library):
                yield launch, {}


def _remembered(command: shell.Command, steps: Iterator[Step], containers: dict[str, Launch]) -> Iterator[Step]:
    """The steps of a command, or what it runs in a container that an earlier one has started under a name."""
    run, inside = _docker_run.read(command.words), _docker_exec.read(command.words)
    if inside is not None and inside.container in containers:
        yield from ((launch, {}) for launch in _in_container(inside, command, containers[inside.container]))
        return
    name = run.last("name") if run is not None else None
    for launch, options in steps:
        if isinstance(launch, Launch) and isinstance(name, Located):
            containers.setdefault(name.value, launch)
        yield launch, options


def _in_container(inside: _docker_exec.Exec, command: shell.Command, container: Launch) -> Iterator[Launch]:
    base = container._replace(
        at=first_word(command),
        env={**container.env, **inside.env},
        entrypoint_of_image=False,
        conditional=command.conditional,
        background=command.background or inside.detached,
    )
    yield from _handed_to_shell(command, inside.first, base, base.gpus_per_pod)


def _beside(script: Source, library: Library, path: str) -> Source | Unknown:
    return library.sibling(beside(script.path, path))


def _of_command(
    command: shell.Command, base: Launch, files: shell.Files, around: _wrappers.Options = NOTHING, depth: int = 0
) -> Iterator[Step]:
    """A command behind the programs that run it; the commands of the script that they hand to a shell."""
    base = base._replace(
        at=first_word(command),
        argv=command.words,
        env=command.env,
        conditional=command.conditional,
        background=command.background,
    )
    wrapped = _wrappers.unwrapped(command.words)
    options = {**around, **wrapped.options}
    base = base._replace(
        image=wrapped.image or base.image,
        cards=_card_names.usable(_card_names.EVERY, base.env),
        together="" if wrapped.names else base.together,
    )
    script = _script_within(command, wrapped)
    if script is not None and depth < MOST_WRAPPERS:
        for inner in shell.read(script, _seen_by(wrapped, command), None, files).commands:
            if inner.words:
                again = inner._replace(conditional=inner.conditional or command.conditional)
                yield from _of_command(again, base, files, options, depth + 1)
        return
    inside = command._replace(words=command.words[wrapped.start :], texts=command.texts[wrapped.start :])
    run = _docker_run.read(inside.words)
    if (submitted := _submitted.read(inside, base)) is not None:
        yield submitted, options
    elif run is not None:
        yield from ((launch, options) for launch in _of_container(run, inside, base, files))
    else:
        yield base._replace(argv=inside.words, gpus_per_pod=_devices.usable(base.gpus_per_pod, base.env)), options


def _script_within(command: shell.Command, wrapped: _wrappers.Wrapped) -> Fragment | None:
    """The text that programs before it give to a shell (`srun bash -c TEXT`, `ssh host TEXT`)."""
    if not wrapped.names:
        return None
    texts = command.texts[wrapped.start :]
    if wrapped.joins:
        return shell.joined(texts)
    place = script_index([text.text for text in texts])
    return None if place is None else texts[place]


def _seen_by(wrapped: _wrappers.Wrapped, command: shell.Command) -> Mapping[str, Word]:
    """The variables of the script inside: another host has its own."""
    return NOTHING if "ssh" in wrapped.names else command.env


def _of_container(
    run: _docker_run.DockerRun, command: shell.Command, base: Launch, files: shell.Files
) -> Iterator[Launch]:
    """`docker run`: its words, or the commands of the script that a shell in the container is given."""
    env = run.environment(command.env, files)
    given = run.cards(env)
    if given is not None and base.gpus_per_pod is not None:
        given = _devices.fewer(base.gpus_per_pod, given)
    unit = f"{base.unit}:{base.at.line}:{base.at.column}"
    base = base._replace(
        unit=unit,
        env=env,
        image=run.image,
        gpus_per_pod=given,
        mounts=_mounts.of_docker_run(run),
        container=_surroundings.of_run(run),
        cards=run.card_names(env),
        background=base.background or run.detached,
    )
    place = script_index([_docker_run.text_of(word) for word in run.words])
    script = None if place is None else run.first + place - (len(run.words) - len(run.argv))
    if script is None or not run.first <= script < len(command.texts):
        yield base._replace(argv=run.words, entrypoint_of_image=run.last("entrypoint") is None)
        return
    yield from _commands_of(command, script, base, given)


def _handed_to_shell(command: shell.Command, first: int, base: Launch, cards: Maybe[int] | None) -> Iterator[Launch]:
    """The words from the first on, or the commands of the script that they hand to a shell."""
    words = command.words[first:]
    place = script_index([_docker_run.text_of(word) for word in words])
    if place is None:
        yield base._replace(argv=words, gpus_per_pod=_devices.usable(cards, base.env))
    else:
        yield from _commands_of(command, first + place, base, cards)


def _commands_of(command: shell.Command, script: int, base: Launch, cards: Maybe[int] | None) -> Iterator[Launch]:
    """The commands of the word that is a script for a shell in a container."""
    for inner in shell.read(command.texts[script], base.env, command.texts[script + 2 :]).commands:
        if inner.words:
            surroundings = {**base.env, **inner.env}
            yield base._replace(
                at=first_word(inner),
                argv=inner.words,
                env=surroundings,
                gpus_per_pod=_devices.usable(cards, surroundings),
                cards=_card_names.usable(base.cards, inner.env),
            )


_SCRIPT = re.compile(r"\s*#!\S*/(?:env\s+)?(?:ba|da|z|k)?sh\b")


def _inside(heredoc: Fragment, base: Launch, files: shell.Files, library: Library) -> Iterator[Launch]:
    """The launches of a manifest in a here-document, or of a script or unit that it writes."""
    if not heredoc.text.strip():
        return
    if _SCRIPT.match(heredoc.text):
        for inner in shell.read(heredoc, files=files).commands:
            if inner.words:
                yield from (launch for launch, _ in _of_command(inner, base, files) if isinstance(launch, Launch))
    elif "[Service]" in heredoc.text or "[Container]" in heredoc.text:
        from shardlint.manifests import _units  # few scripts write units

        for found in _units.launches_of(_source_of(heredoc), base.form, library):
            if isinstance(found, Launch):
                yield found._replace(name=base.name, kind=base.kind)
    elif ":" in heredoc.text:
        from shardlint.text import yaml  # the one place where a script needs it

        for document in yaml.documents(_source_of(heredoc)).documents:
            yield from manifests.launches(document, library).launches


def _source_of(heredoc: Fragment) -> Source:
    """The text as a file: as it stands, with the rest of the script blanked, or with variables of the script in it."""
    start, end = heredoc.offsets[0], heredoc.offsets[len(heredoc.text) - 1] + 1
    text = heredoc.source.text
    if text[start:end] != heredoc.text:
        return Inset(Fragment(heredoc.restored(), heredoc.source, heredoc.offsets))
    blank = "".join(character if character == "\n" else " " for character in text[:start])
    return Source(heredoc.source.path, blank + text[start:end])
