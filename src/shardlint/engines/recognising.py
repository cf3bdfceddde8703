"""Which engine a command starts, if any, and at which word its flags begin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from shardlint.deployment import Launch, Word
from shardlint.engines.engine import Command, Engine
from shardlint.engines.images import split
from shardlint.findings import Located, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple

WRAPPERS = frozenset(
    {
        "accelerate", "apptainer", "catchsegv", "conda", "ddtrace-run", "deepspeed", "docker-entrypoint.sh",
        "dumb-init", "env", "exec", "gosu", "hatch", "ionice", "mamba", "micromamba", "mpiexec", "mpirun", "nice",
        "nohup", "nsys", "numactl", "nvidia_entrypoint.sh", "opentelemetry-instrument", "pipenv", "pixi", "poetry",
        "py-spy", "ray", "rye", "screen", "setsid", "singularity", "srun", "stdbuf", "su-exec", "sudo", "taskset",
        "time", "timeout", "tini", "tini-static", "torchrun", "trtllm-llmapi-launch", "uv", "uvx", "xvfb-run",
    }
)  # fmt: skip
"""Programs that run the command after their own words."""
EXECUTORS = frozenset({"docker", "podman", "nerdctl", "kubectl"})
"""Programs that do so after `exec`."""

_PYTHON = Pattern(r"(?:python|pypy)[\d.]*")
_HUB_ID = Pattern(r"[\w.-]+/[\w.-]+")
_NO_ENGINE = Pattern(
    r"router|sidecar|bench|perf|proxy|gateway|frontend|operator|exporter|(?<![a-z])(?:sim|simulator|mock)(?![a-z])",
    re.IGNORECASE,
)
_ASSIGNMENT = Pattern(r"[A-Za-z_]\w*=.*", re.DOTALL)


class Start(NamedTuple):
    """How an engine is started: by which command, and the number of the first word that is its own."""

    command: Command
    first_flag: int


def recognise(launch: Launch, engines: Sequence[Engine]) -> tuple[Engine, Start] | None:
    """The engine that a launch starts, or None: a sidecar, a client, a tool that only mentions one."""
    places = tuple(_beginnings(launch.argv))
    for engine in engines:
        if (start := _written_start(launch.argv, places, engine)) is not None:
            return engine, start
    if launch.argv and not launch.entrypoint_of_image:
        return _handed_on(launch.argv, engines) if launch.image is not None else None
    return by_image(launch, engines)


def _handed_on(argv: Sequence[Word], engines: Sequence[Engine]) -> tuple[Engine, Start] | None:
    """The engine to which a script of the container hands its flags, where these are the engine's own."""
    if not _text(argv[0]).endswith(".sh") or not begins_as_flags(argv[1:]):
        return None
    engine = next((engine for engine in engines if has_marks(argv[1:], engine)), None)
    return None if engine is None else (engine, Start(engine.entry or engine.commands[0], 1))


def _written_start(argv: Sequence[Word], places: Iterable[int], engine: Engine) -> Start | None:
    """Where the command line itself starts the engine: at one of the places where a command may begin."""
    for place in places:
        for command in engine.commands:
            if (words := _length(argv, place, command)) is not None:
                return Start(command, place + words)
    return None


def _beginnings(argv: Sequence[Word]) -> Iterator[int]:
    """The numbers of the words where a command may begin: the first, and every later one behind a wrapper."""
    if not argv:
        return
    yield 0
    first = argv[0]
    name = _program(first)
    runs_another = isinstance(first, Unknown) or name in WRAPPERS or _ASSIGNMENT.fullmatch(first.value) is not None
    if runs_another or (name in EXECUTORS and len(argv) > 1 and _text(argv[1]) == "exec"):
        yield from range(1, len(argv))


def _length(argv: Sequence[Word], place: int, command: Command) -> int | None:
    """How many words from `place` on say this command, None where they do not."""
    said = _module_length(argv, place, command.name) if command.is_module else _program_length(argv, place, command)
    if said is None or command.subcommand is None:
        return said
    if _text_at(argv, place + said) == command.subcommand:
        return said + 1
    return said if command.optional_subcommand and _text_at(argv, place + said) != "disaggregated" else None


def _program_length(argv: Sequence[Word], place: int, command: Command) -> int | None:
    word = argv[place]
    if isinstance(word, Unknown):
        named = command.subcommand is not None and command.name in word.spelled.lower()
        return 1 if named and all(isinstance(before, Unknown) for before in argv[:place]) else None
    return 1 if _program(word) == command.name else None


def _module_length(argv: Sequence[Word], place: int, module: str) -> int | None:
    """`python -u -m MODULE`, or the path of the module's file."""
    head = argv[place]
    if place > 0 and _text(head) == "-m":  # torchrun -m MODULE
        return 2 if _text_at(argv, place + 1) == module else None
    if isinstance(head, Located) and not _PYTHON.fullmatch(_program(head)):
        return None
    for at in range(place + 1, min(place + 8, len(argv))):
        text = _text(argv[at])
        if text == "-m":
            return at + 2 - place if _text_at(argv, at + 1) == module else None
        if text.endswith(".py"):
            return at + 1 - place if f"/{text}".endswith(f"/{module.replace('.', '/')}.py") else None
    return None


def by_image(launch: Launch, engines: Sequence[Engine]) -> tuple[Engine, Start] | None:
    """The engine whose image runs its own entrypoint, or whose flags stand after an unknown one."""
    repository = repository_of(launch)
    if _NO_ENGINE.search(repository.rpartition("/")[2]):
        return None
    for engine in engines:
        if _says(engine.images, repository) and (not launch.argv or _are_arguments(launch.argv, engine)):
            return engine, _entry_start(engine, launch.argv)
    related = [engine for engine in engines if _says(engine.kin, repository.lower())]
    marked = [engine for engine in engines if has_marks(launch.argv, engine)]
    for engine in related or marked:
        if _are_arguments(launch.argv, engine) or _is_told_by_variables(launch, engine):
            return engine, _entry_start(engine, launch.argv)
    return None


@lru_cache(maxsize=1024)
def _says(pattern: str, repository: str) -> bool:
    """Whether a pattern stands in the name of a repository: many containers run the same image."""
    return re.search(pattern, repository) is not None


def _is_told_by_variables(launch: Launch, engine: Engine) -> bool:
    """An image that is given no words, and variables in their place."""
    return not launch.argv and any(variable in launch.env for variable in engine.environment)


def _are_arguments(argv: Sequence[Word], engine: Engine) -> bool:
    """Flags, or a model's bare name before flags that are this engine's own."""
    if begins_as_flags(argv):
        return True
    is_name = bool(argv) and "/" not in _text(argv[0]) and not _PYTHON.fullmatch(_text(argv[0]))
    return is_name and has_marks(argv, engine)


def repository_of(launch: Launch) -> str:
    """The image without its tag; of a templated one the raw text."""
    if launch.image is None:
        return ""
    return launch.image.spelled if isinstance(launch.image, Unknown) else split(launch.image.value).repository


def begins_as_flags(argv: Sequence[Word]) -> bool:
    """Whether the words read as arguments of a server, not as a command of their own (`ray start`, `sleep 1d`)."""
    if not argv:
        return False
    first = argv[0]
    if isinstance(first, Unknown):
        return True
    text = first.value
    if text.startswith("-") or text == "serve" or _HUB_ID.fullmatch(text):
        return True
    return "/" in text and len(argv) > 1 and _text(argv[1]).startswith("--")


def has_marks(argv: Sequence[Word], engine: Engine) -> bool:
    """Whether flags of this engine alone stand among the words."""
    keys = {_key(word.value if isinstance(word, Located) else word.spelled) for word in argv}
    return not keys.isdisjoint(engine.marks)


def _entry_start(engine: Engine, argv: Sequence[Word]) -> Start:
    command = engine.entry or engine.commands[0]
    says_subcommand = bool(argv) and command.subcommand is not None and _text(argv[0]) == command.subcommand
    return Start(command, 1 if says_subcommand else 0)


def _key(text: str) -> str:
    key = text.partition("=")[0]
    return key.replace("_", "-") if key.startswith("--") else key


def _program(word: Word) -> str:
    return _text(word).rpartition("/")[2]


def _text(word: Word) -> str:
    return word.value if isinstance(word, Located) else ""


def _text_at(argv: Sequence[Word], place: int) -> str:
    return _text(argv[place]) if place < len(argv) else ""
