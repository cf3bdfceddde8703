"""The words of the command line."""

from __future__ import annotations

from typing import NamedTuple

HOOK_OPTION = "--force-exclude"
COMMANDS = ("check", "inspect", "smoke", "model", "models", "show", "plan", "explain", "rules")


class Options(NamedTuple):
    """What was asked for. `None` and `()` mean: not said here, so the settings of the project may say it."""

    command: str
    paths: tuple[str, ...] = ()
    rule: str = ""
    format: str = "text"
    models: str | None = None
    hardware: str | None = None
    vllm: str | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    fail_on: str | None = None
    strict: bool = False
    diff: bool = False
    """Of `check`: patches in the place of the report."""
    against: str | None = None
    """Of `check`: a release of vLLM, what it would change in the place of the report."""
    force_exclude: bool = False
    render: bool = False
    """Of `check` and `inspect`."""
    config: str | None = None
    no_color: bool = False
    no_plugins: bool = False
    deployment: str | None = None
    deadline: float | None = None
    action: str = ""
    """Of `models`: `add` or `list`."""
    ids: tuple[str, ...] = ()
    model: str = ""
    """Of `model`: an id or a folder."""
    timeout: float | None = None
    gpus: str | None = None
    """Of `plan`: NAME:COUNT, the GPUs of a node."""
    nodes: int | None = None
    """Of `plan` and `smoke`."""
    node_rank: int | None = None
    """Of `smoke`, as all up to `compare`."""
    launch: str = "auto"
    master: str | None = None
    level: str = "quick"
    stall: float | None = None
    allocate: bool = False
    share_gpu: bool = False
    against_vllm: bool = False
    image: str | None = None
    compare: str | None = None
    max_model_len: int | None = None
    requests: int | None = None
    objective: str = ""
    all: bool = False
    emit: str | None = None
    choose: int = 1
    derive: bool = False
    """Of `show`."""
    tokens: int | None = None
    svg: str | None = None
    html: str | None = None


def parse(words: list[str]) -> Options:
    """Raises CannotRun for what makes no sense; prints and leaves for `--help`."""
    command, rest = (words[0], words[1:]) if words and words[0] in COMMANDS else ("check", words)
    from_hook = command == "check" and rest[:1] == [HOOK_OPTION]
    paths = rest[from_hook:]
    if command in ("check", "inspect") and paths and all(word == "-" or not word.startswith("-") for word in paths):
        # a hook's call: argparse would cost as much as reading ten manifests
        return Options(command, tuple(paths), force_exclude=from_hook)
    from shardlint.front.parser import parse_options

    return Options(command, **parse_options(command, rest))
