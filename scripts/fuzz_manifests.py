"""Spoils manifests at random and reads and judges each: whatever a file holds, there is a report and no crash.

Usage: python scripts/fuzz_manifests.py FOLDER [--rounds N] [--seed N] [--slowest SECONDS]

Every file below FOLDER is read as it is, then in each round cut, shuffled, with bytes flipped, with template syntax put
in, with lines doubled, and under the name of another kind of file.  Prints what raised and what was slow, with the
arguments that repeat it; the exit code is 1 where there was any.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from shardlint.check import Settings, check, read
from shardlint.findings import Report, Unknown
from shardlint.text import Library, ModelFiles, Source

TEMPLATES = (
    "{{ .Values.x }}", "{{- if .Values.x }}\n", "{{- end }}\n", "${X}", "${X:-1}", "$(X)", "{% if x %}", "<x>", "$((",
    "{{ toYaml . | nindent 4 }}", "`", "<<EOF\n", "%{ if x }", "''${", "{{", "}}",
)  # fmt: skip
NAMES = (
    "a.yaml", "a.json", "a.sh", "Dockerfile", "a.service", "a.container", "a.tf", "a.nix", "a.py", "a.properties",
    "a.sbatch", "a.env", "compose.yaml", "values.yaml", "-",
)  # fmt: skip
MOST_CHARACTERS = 200_000
"""Larger files are passed over: what makes them slow is their size."""


class Nothing(Library):
    """A library in which nothing is found."""

    def sibling(self, path: str) -> Source | Unknown:
        return Unknown(f"there is no {path}")

    def model(self, model_id: str) -> ModelFiles | Unknown:
        return Unknown(f"there is no {model_id}")


def cut(text: str, chance: random.Random) -> str:
    """A stretch of it taken away, or all behind a place."""
    first = chance.randrange(len(text) + 1)
    last = chance.choice((len(text), min(len(text), first + chance.randrange(1, 200))))
    return text[:first] + text[last:]


def shuffled(text: str, chance: random.Random) -> str:
    """Some of its lines in another order."""
    lines = text.splitlines(keepends=True)
    first = chance.randrange(len(lines) + 1)
    last = min(len(lines), first + chance.randrange(2, 30))
    some = lines[first:last]
    chance.shuffle(some)
    return "".join([*lines[:first], *some, *lines[last:]])


def flipped(text: str, chance: random.Random) -> str:
    """A few bytes changed; what is no text any more is shown as one that stands for it."""
    data = bytearray(text.encode("utf-8", "replace"))
    for _ in range(chance.randrange(1, 6)):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data.decode("utf-8", "replace")


def templated(text: str, chance: random.Random) -> str:
    """Template syntax put in at a few places."""
    for _ in range(chance.randrange(1, 5)):
        place = chance.randrange(len(text) + 1)
        text = text[:place] + chance.choice(TEMPLATES) + text[place:]
    return text


def doubled(text: str, chance: random.Random) -> str:
    """A stretch of its lines written twice, the second time indented otherwise."""
    lines = text.splitlines(keepends=True)
    first = chance.randrange(len(lines) + 1)
    some = lines[first : first + chance.randrange(1, 20)]
    indent = chance.choice(("", "  ", "\t"))
    return "".join([*lines[:first], *some, *(indent + line for line in some), *lines[first + len(some) :]])


SPOILERS: tuple[Callable[[str, random.Random], str], ...] = (cut, shuffled, flipped, templated, doubled)


def spoiled(source: Source, chance: random.Random) -> Source:
    """A file with one or two faults, now and then under another name."""
    text = source.text
    for _ in range(chance.randrange(1, 3)):
        text = chance.choice(SPOILERS)(text, chance)
    return Source(source.path if chance.random() < 0.8 else chance.choice(NAMES), text)


def report_of(source: Source) -> Report:
    """What is read of a file and what is said of it; places are asked for, as a printer would."""
    read([source], Nothing(), Settings())
    report = check([source], Nothing(), Settings())
    for finding in report.findings:
        assert finding.span.line >= 1 and finding.message
    return report


def files_in(folder: Path) -> Iterator[Source]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            text = path.read_bytes().decode("utf-8", "replace")
            if len(text) <= MOST_CHARACTERS:
                yield Source(str(path), text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slowest", type=float, default=5.0)
    options = parser.parse_args()
    faults = 0
    for number, source in enumerate(files_in(options.folder)):
        for turn in range(options.rounds + 1):
            chance = random.Random(f"{options.seed} {number} {turn}")
            candidate = spoiled(source, chance) if turn else source
            began = time.perf_counter()
            try:
                report_of(candidate)
            except Exception:
                faults += 1
                print(
                    f"{source.path} as {candidate.path}, round {turn}, seed {options.seed}:\n{traceback.format_exc()}"
                )
            if time.perf_counter() - began > options.slowest:
                faults += 1
                print(f"{source.path} as {candidate.path}, round {turn}: {time.perf_counter() - began:.1f} s")
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
