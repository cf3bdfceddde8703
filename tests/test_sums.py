"""What the documents show is what their commands print."""

import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from shardlint.front.main import main

ROOT = Path(__file__).parent.parent
LEFT_OUT = "..."


class Example(NamedTuple):
    """A command, what it is given on standard input, and the runs of lines that it is said to print."""

    words: list[str]
    given: str
    runs: list[str]


def examples(page: str) -> Iterator[Example]:
    for command, output in re.findall(r"^```console\n\$ (.+)\n((?:.*\n)*?)```$", page, flags=re.MULTILINE):
        feeding, _, fed = command.rpartition(" | ")
        _echo, *given = shlex.split(feeding) or [""]
        _shardlint, *words = shlex.split(fed)
        runs = [run.strip("\n") for run in re.split(rf"^{re.escape(LEFT_OUT)}\n", output, flags=re.MULTILINE)]
        yield Example(words, " ".join(given), [run for run in runs if run])


SUMS = list(examples((ROOT / "docs" / "sums.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("example", SUMS, ids=[" ".join(example.given.split()[3:]) for example in SUMS])
def test_the_sums_are_those_of_the_commands(
    example: Example, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{example.given}\n".encode())))
    assert main(example.words) == 0
    printed = capsys.readouterr().out
    at = 0
    for run in example.runs:  # in this order, each of whole lines
        found = f"\n{printed}".find(f"\n{run}\n", at)
        assert found >= 0, f"not printed after the lines before it:\n{run}\n\nprinted:\n{printed}"
        at = found + len(run)


def test_the_page_of_sums_has_all_of_the_layouts() -> None:
    layouts = [example.given.partition("Llama-3.1-")[2] for example in SUMS if example.given]
    assert layouts[:5] == ["8B", "8B -tp 2", "8B -tp 16", "8B -pp 2", "70B -tp 8 -pp 2"]
