"""The stages of a Dockerfile: their images, variables and files, and what the last of them starts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from shardlint.deployment import Launch, Word
from shardlint.findings import Maybe, Span, Unknown
from shardlint.manifests import _devices
from shardlint.manifests._started import SHELLS, first_word, started
from shardlint.text import json_text, shell
from shardlint.text.dockerfile import Instruction, instructions
from shardlint.text.source import Fragment, Source
from shardlint.text.words import Array, Expander, Value, given, word_of

_WORD = re.compile(r"\S+")
_PAIR = re.compile(
    r"\s*([A-Za-z_][\w.-]*)(?:(=)((?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\\.|[^\s\"'\\])*))?(?=\s|\Z)", re.DOTALL
)
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"")
_OPTIONS = re.compile(r"(?:--[\w-]+(?:=\S*)?\s+)*")
_SHELL = ("/bin/sh", "-c")

Variables = dict[str, Maybe[str]]


class Words:
    """What CMD or ENTRYPOINT say: words (exec form), or a text for a shell."""

    def __init__(self, words: Sequence[Fragment], *, is_shell: bool) -> None:
        self.words = list(words)
        self.is_shell = is_shell


class Stage:
    """One stage while it is read."""

    def __init__(self, image: Maybe[str] | None = None, parent: Stage | None = None) -> None:
        self.image: Maybe[str] | None = parent.image if parent else image
        self.env: Variables = dict(parent.env) if parent else {}
        self.arguments: Variables = {}
        self.files: dict[str, Fragment] = dict(parent.files) if parent else {}
        self.copies: dict[str, str] = dict(parent.copies) if parent else {}
        self.entrypoint: Words | None = parent.entrypoint if parent else None
        self.command: Words | None = parent.command if parent else None
        self.own_command = False
        self.runs: list[tuple[Fragment, Variables]] = list(parent.runs) if parent else []

    @property
    def variables(self) -> Variables:
        """Those that instructions see: ENV hides ARG."""
        return {**self.arguments, **self.env}


class Stages:
    """A Dockerfile while it is read."""

    def __init__(self) -> None:
        self.last: Stage | None = None
        self._named: dict[str, Stage] = {}
        self._global: Variables = {}

    def take(self, instruction: Instruction) -> None:
        """One instruction; those that say nothing of what is started change nothing."""
        if instruction.keyword == "FROM":
            self._from(instruction.arguments)
        elif self.last is None:
            if instruction.keyword == "ARG":
                self._global.update(_pairs(instruction.arguments, self._global))
        elif (take := _TAKERS.get(instruction.keyword)) is not None:
            take(self, self.last, instruction)

    def _from(self, arguments: Fragment) -> None:
        places = [match for match in _WORD.finditer(arguments.text) if not match[0].startswith("--")]
        if not places:
            return
        parent = self._named.get(places[0][0].lower())
        self.last = Stage(_expanded(arguments, *places[0].span(), self._global), parent)
        if len(places) > 2 and places[1][0].upper() == "AS":
            self._named[places[2][0].lower()] = self.last

    def _arg(self, stage: Stage, instruction: Instruction) -> None:
        """`ARG NAME` takes the value that stands before the first FROM."""
        for name, value in _pairs(instruction.arguments, stage.variables):
            known = self._global.get(name) if isinstance(value, Unknown) else None
            stage.arguments[name] = known or value

    def _env(self, stage: Stage, instruction: Instruction) -> None:
        arguments = instruction.arguments
        first = _WORD.search(arguments.text)
        if first is not None and "=" not in first[0]:
            start = first.end() + len(arguments.text[first.end() :]) - len(arguments.text[first.end() :].lstrip())
            stage.env[first[0]] = _expanded(arguments, start, len(arguments.text), stage.variables)
        else:
            stage.env.update(list(_pairs(arguments, stage.variables)))

    def _copy(self, stage: Stage, instruction: Instruction) -> None:
        """Files of the build's folder, and those that the Dockerfile holds itself (`COPY <<EOF /start.sh`)."""
        options = [word for word in instruction.arguments.text.split() if word.startswith("--")]
        words = [word for word in instruction.arguments.text.split() if not word.startswith("--")]
        for body in instruction.heredocs[:1] if words else ():
            stage.files[words[-1]] = body
        of_context = not instruction.heredocs and not any(option.startswith("--from=") for option in options)
        if of_context and len(words) > 1 and words[-1].startswith("/"):
            stage.copies.update(_copies(words[:-1], words[-1]))

    def _run(self, stage: Stage, instruction: Instruction) -> None:
        arguments = instruction.arguments
        options = _OPTIONS.match(arguments.text)
        text = arguments.part(options.end() if options else 0, len(arguments.text))
        stage.runs += [(script, stage.variables) for script in instruction.heredocs or (text,) if "==" in script.text]

    def _command(self, stage: Stage, instruction: Instruction) -> None:
        stage.command, stage.own_command = _words(instruction.arguments), True

    def _entrypoint(self, stage: Stage, instruction: Instruction) -> None:
        """It takes a CMD away that came with the image, and keeps one of its own stage."""
        stage.entrypoint = _words(instruction.arguments)
        stage.command = stage.command if stage.own_command else None


_TAKERS = {
    "ARG": Stages._arg,
    "ENV": Stages._env,
    "COPY": Stages._copy,
    "ADD": Stages._copy,
    "RUN": Stages._run,
    "CMD": Stages._command,
    "ENTRYPOINT": Stages._entrypoint,
}


def launches_of(source: Source, form: str) -> Iterator[Launch]:
    """What the last stage starts, behind its installers; nothing where it says neither ENTRYPOINT nor CMD."""
    stages = Stages()
    for instruction in instructions(source):
        stages.take(instruction)
    stage = stages.last
    if stage is None or (stage.entrypoint is None and stage.command is None):
        return
    name = source.path.replace("\\", "/").rpartition("/")[2]
    base = Launch(name, "dockerfile", form, source.span(0, 0), image=stage.image, unit=name, mounts=stage.copies)
    for script, env in stage.runs:
        for command in shell.read(script, env).commands:
            if command.words:
                yield base._replace(at=first_word(command), argv=command.words, env=command.env)
    yield from _started(stage, base)


def _started(stage: Stage, base: Launch) -> Iterator[Launch]:
    entrypoint = stage.entrypoint.words if stage.entrypoint else []
    takes_command = stage.command is not None and not (stage.entrypoint and stage.entrypoint.is_shell)
    arguments = stage.command.words if stage.command and takes_command else []
    words = [*entrypoint, *arguments]
    if (script := _script(words, stage)) is not None:
        text, rest = script
        for inner in shell.read(text, stage.env, rest).commands:
            if inner.words:
                env = {**stage.env, **inner.env}
                yield _launch(base, inner.words, env, first_word(inner))
        return
    for command in started(entrypoint, arguments, stage.env):
        argv = command.argv
        if stage.entrypoint and not stage.entrypoint.is_shell and not arguments and argv:
            argv = (*argv, Unknown("given when the container starts", argv[-1].span, '"$@"'))
        launch = _launch(base, argv, command.env, command.at or base.at)
        yield launch._replace(entrypoint_of_image=command.entrypoint_of_image, conditional=command.conditional)


def _launch(base: Launch, argv: tuple[Word, ...], env: Mapping[str, Maybe[str]], at: Span) -> Launch:
    return base._replace(at=at, argv=argv, env=env, gpus_per_pod=_devices.usable(None, env))


def _script(words: Sequence[Fragment], stage: Stage) -> tuple[Fragment, Sequence[Fragment]] | None:
    """The script among the stage's own files that the words run, and its arguments."""
    place = 1 if words and words[0].text.rpartition("/")[2] in SHELLS else 0
    if place >= len(words) or words[place].text not in stage.files:
        return None
    return stage.files[words[place].text], words[place + 1 :]


def _words(arguments: Fragment) -> Words:
    """The exec form is a JSON list of strings; whatever is not is for a shell."""
    text = arguments.text
    try:
        listed = json.loads(text) if text.startswith("[") else None
    except (ValueError, RecursionError):
        listed = None
    if isinstance(listed, list) and all(isinstance(word, str) for word in listed):
        return Words([_string(arguments, match) for match in _STRING.finditer(text)], is_shell=False)
    start = arguments.offsets[0]
    shell_words = [Fragment(word, arguments.source, [start] * (len(word) + 1)) for word in _SHELL]
    return Words([*shell_words, arguments], is_shell=True)


def _string(arguments: Fragment, match: re.Match[str]) -> Fragment:
    """One string of the JSON list, without its quotes."""
    places = json_text.decode(match[0], match.start())
    return Fragment(json.loads(match[0]), arguments.source, [arguments.offsets[place] for place in places])


def _copies(sources: Sequence[str], target: str) -> Iterator[tuple[str, str]]:
    """Where the image has them: in the target if that is a folder, else as the target."""
    for source in sources:
        within = target + source.rstrip("/").rpartition("/")[2] if target.endswith("/") else target
        yield within, source.lstrip("/")


def _pairs(arguments: Fragment, variables: Variables) -> Iterator[tuple[str, Maybe[str]]]:
    """`NAME=value ...`, every value with the variables as they are before the line; Unknown for a name alone."""
    before = dict(variables)
    for pair in _PAIR.finditer(arguments.text):
        if pair[2]:
            yield pair[1], _expanded(arguments, *pair.span(3), before)
        else:
            yield pair[1], Unknown("given when the image is built", arguments.span(*pair.span(1)), pair[1])


def _expanded(fragment: Fragment, start: int, end: int, variables: Variables) -> Word:
    """A stretch of an instruction with its quotes taken off and its variables replaced."""

    def lookup(name: str) -> Value | Array | None:
        value = variables.get(name)
        return None if value is None else given(value, fragment.source)

    pieces = Expander(fragment, lookup, lambda name, value: None).expand(start, end)
    return word_of(tuple(pieces), fragment, start, end)
