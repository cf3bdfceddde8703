"""`docker run` and its kin: options, image, and the words after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from shardlint.deployment import Word
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests import _card_names, _devices, _docker
from shardlint.text.source import Source

PROGRAMS = frozenset({"docker", "podman", "nerdctl"})
_VERBS = frozenset({"run", "create"})
_GLOBAL_WITH_WORD = frozenset({"-c", "--context", "-H", "--host", "-l", "--log-level", "--config", "--url", "-n"})
_SWITCHES = frozenset(
    [
        "detach",
        "interactive",
        "tty",
        "rm",
        "privileged",
        "init",
        "read-only",
        "publish-all",
        "no-healthcheck",
        "oom-kill-disable",
        "sig-proxy",
        "quiet",
        "disable-content-trust",
        "help",
        "replace",
        "rmi",
        "no-hosts",
        "env-host",
        "http-proxy",
        "latest",
    ]
)
"""Long options that take no word; all others take the next one."""
_SHORT_SWITCHES = frozenset("ditPq")
_DETACHED = re.compile(r"--detach(?:=true)?|-[itPq]*d[itPq]*")
_NAMED_FOR_OPTIONS = re.compile(r"ARG|FLAG|OPT|EXTRA|PARAM|ENV|VOL|MOUNT|[@*]", re.IGNORECASE)


class DockerRun:
    """One `docker run`, read. Options by their long names, each with all its values."""

    def __init__(self) -> None:
        self.options: dict[str, list[Word]] = {}
        self.detached = False
        self.open_options: list[Unknown] = []
        """Words before the image that may hold any options."""
        self.image: Word | None = None
        self.argv: tuple[Word, ...] = ()
        """The words after the image."""
        self.first = 0
        """Which word of the whole command is the first of them."""

    @property
    def words(self) -> tuple[Word, ...]:
        """What is started: the entrypoint where one is given, and the words after the image."""
        entrypoint = self.last("entrypoint")
        return self.argv if entrypoint is None else (entrypoint, *self.argv)

    def last(self, name: str) -> Word | None:
        values = self.options.get(name)
        return values[-1] if values else None

    def environment(
        self, outer: Mapping[str, Maybe[str]], files: Callable[[str], Source | Unknown]
    ) -> dict[str, Maybe[str]]:
        """The container's variables: those of `--env-file`, then `-e`; `-e NAME` alone takes the caller's."""
        env: dict[str, Maybe[str]] = {}
        for word in self.options.get("env-file", []):
            from shardlint.manifests import _dotenv  # few commands name a file

            file = files(word.value) if isinstance(word, Located) else word
            if isinstance(file, Source):
                env.update(_dotenv.raw_variables_of(file, outer))
        for word in self.options.get("env", []):
            name, equals, _ = text_of(word).strip("\"'").partition("=")
            env[name] = after(word, len(name) + 1) if equals else outer.get(name, _of_caller(word))
        return env

    def card_names(self, env: Mapping[str, Maybe[str]]) -> _card_names.Names | None:
        """The same cards by name; None where they are not known."""
        asked, runtime = self.last("gpus"), self.last("runtime")
        given = _card_names.of_devices(self.options.get("device", []))
        if asked is not None:
            given = _card_names.of_gpus_option(asked)
        elif given is None and isinstance(runtime, Located) and runtime.value == "nvidia":
            given = _card_names.EVERY
        return _card_names.usable(_card_names.from_runtime(given, env), env)

    def cards(self, env: Mapping[str, Maybe[str]]) -> Maybe[int] | None:
        """The cards that the container gets; None where nothing gives it any."""
        asked = self.last("gpus")
        given = _docker.gpus(asked) if asked is not None else _docker.devices(self.options.get("device", []))
        runtime = self.last("runtime")
        if given is None and isinstance(runtime, Located) and runtime.value == "nvidia":
            given = _docker.all_of_host(runtime)
        return _devices.usable(_devices.from_runtime(given, env), env)


def read(words: Sequence[Word]) -> DockerRun | None:
    """The command as `docker run`; None where it is another one."""
    if not words or text_of(words[0]).rpartition("/")[2] not in PROGRAMS:
        return None
    place = 1
    while place < len(words) and (text_of(words[place]).startswith("-") or text_of(words[place]) == "container"):
        place += 2 if text_of(words[place]) in _GLOBAL_WITH_WORD else 1
    if place + 1 >= len(words) or text_of(words[place]) not in _VERBS:
        return None
    run = DockerRun()
    place += 1
    while place < len(words) and run.image is None:
        place = _step(run, words, place)
    run.argv, run.first = tuple(words[place:]), place
    return run


def options(words: Sequence[Word], **given: list[Word]) -> DockerRun:
    """Options alone, where a manifest lists them beside what it states in fields (`given`, by their long names)."""
    run = DockerRun()
    run.options.update({name.replace("_", "-"): list(values) for name, values in given.items()})
    place = 0
    while place < len(words):
        place = _step(run, words, place)
    return run


def _step(run: DockerRun, words: Sequence[Word], place: int) -> int:
    """Reads the option at a place, or the image; returns the next place."""
    word, text = words[place], text_of(words[place])
    run.detached = run.detached or _DETACHED.fullmatch(text) is not None
    if text.startswith("--"):
        name, equals, _ = text[2:].partition("=")
        value = after(word, len(name) + 3) if equals else None
        return _option(run, name, value, words, place)
    if text.startswith("-") and len(text) > 1:
        letters = text[1:]
        switches = len(letters) - len(letters.lstrip("".join(_SHORT_SWITCHES)))
        if switches == len(letters):
            return place + 1
        stuck = after(word, switches + 2) if len(letters) > switches + 1 else None
        return _option(run, _long(letters[switches]), stuck, words, place)
    if isinstance(word, Unknown) and _NAMED_FOR_OPTIONS.search(text):
        run.open_options.append(word)
    else:
        run.image = word
    return place + 1


def _option(run: DockerRun, name: str, value: Word | None, words: Sequence[Word], place: int) -> int:
    if value is None and name not in _SWITCHES and place + 1 < len(words):
        place += 1
        value = words[place]
    if value is not None:
        run.options.setdefault(name, []).append(value)
    return place + 1


def _long(letter: str) -> str:
    return {"e": "env", "v": "volume", "p": "publish", "w": "workdir"}.get(letter, letter)


def text_of(word: Word) -> str:
    """The word, or where it is unknown its text."""
    return word.value if isinstance(word, Located) else word.spelled


def after(word: Word, start: int) -> Word:
    """The rest of a word (`--env=A=b` -> `A=b`)."""
    if isinstance(word, Located):
        return Located(word.value[start:], word.span, word.spelled)
    return Unknown(word.reason, word.span, word.spelled[start:], word.settle_by)


def _of_caller(word: Word) -> Unknown:
    return Unknown("taken from the caller's environment", word.span, text_of(word))
