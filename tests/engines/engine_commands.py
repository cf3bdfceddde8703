"""Command lines for these tests: every word stands on line 1, where it stands in the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from shardlint import engines
from shardlint.deployment import Deployment, Launch, Server, Word
from shardlint.engines.flags import Reading
from shardlint.engines.flags import read as read_flags
from shardlint.engines.versions import Version
from shardlint.findings import Located, Span, Unknown

AT = Span("run.sh", 1, 1, 1, 2)


def words(text: str) -> tuple[Word, ...]:
    """Words parted by blanks; one with a `$` is unknown."""
    return tuple(_word(match[0], match.start() + 1) for match in re.finditer(r"\S+", text))


def _word(text: str, column: int) -> Word:
    span = Span("run.sh", 1, column, 1, column + len(text))
    if "$" in text:
        return Unknown(f"{text} is not set in this file", span, text)
    return Located(text, span, text)


def located(texts: Sequence[str]) -> tuple[Word, ...]:
    return tuple(Located(text) for text in texts)


def launch(command: str = "", image: str | None = None, env: dict[str, str] | None = None, **more: Any) -> Launch:
    more.setdefault("entrypoint_of_image", False)
    return Launch(
        name="run.sh",
        kind="script",
        form="shell_script",
        at=AT,
        argv=words(command),
        image=None if image is None else Located(image, AT, image),
        env={name: Located(value, AT, value) for name, value in (env or {}).items()},
        **more,
    )


def server(command: str = "", engine: str = "vllm", others: Sequence[Launch] = (), **more: Any) -> Server:
    return Server(engine, launch(command, **more), tuple(others))


def deployment(command: str = "", **more: Any) -> Deployment:
    return engines.read(server(command, **more))


def read(command: str, version: str | None = None, *, takes_positional: bool = True) -> Reading:
    """The words after `vllm serve`, read with the flags of a release."""
    table = engines.engine("vllm").table
    era = table.era(None if version is None else Version.parse(version))
    return read_flags(words(command), table, era, takes_positional=takes_positional)


def under(text: str, span: Span | None) -> str:
    """What a span covers of a text on one line."""
    assert span is not None
    return text[span.column - 1 : span.end_column - 1]


def messages(reading: Reading) -> list[str]:
    return [problem.message for problem in reading.problems]
