"""Refused commands with the first layout that their findings advise, as cases for a tool that asks vLLM itself.

    python scripts/first_suggestions.py VERDICTS.jsonl CONFIGS > cases.jsonl

A line of the file is `{"id", "config_path", "args", "gpus", "verdict", ...}`; CONFIGS holds the config.json files.  A
case is the same command with the advised sizes behind its own, which argparse lets win.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from shardlint import check_command
from shardlint.check.suggesting import OF_THE_LAYOUT
from shardlint.findings import Change, Finding

SIZES = re.compile(r"--(tensor|pipeline)-parallel-size[ =](\d+)")


def main(verdicts: str, configs: str) -> None:
    """Prints the cases; says on standard error how many refused commands have none."""
    without = 0
    for line in Path(verdicts).read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["verdict"] != "reject":
            continue
        advised = sizes_of(case, Path(configs))
        if advised is None:
            continue
        without += not advised
        if advised:
            kept = ("id", "config_path", "gpus", "env", "extra_paths")
            made = {name: case[name] for name in kept if name in case}
            print(json.dumps({**made, "args": [*case["args"], *advised], "was": case["message"]}))
    print(f"{without} refused layouts have no advised layout", file=sys.stderr)


def sizes_of(case: dict[str, Any], configs: Path) -> list[str] | None:
    """The sizes that the findings about the layout advise; None where none is about it, or something else is refused
    as well, and empty where there is no such advice."""
    config = json.loads((configs / case["config_path"]).read_text(encoding="utf-8"))
    report = check_command(
        ["vllm", "serve", "some/model", *case["args"]],
        config=config,
        env=case.get("env"),
        gpus_per_node=case.get("gpus"),
        engine_version="0.33.0",
    )
    refusing = [each for each in report.findings if each.severity == "error" and each.family in OF_THE_LAYOUT]
    if not refusing or len(refusing) < sum(each.severity == "error" for each in report.findings):
        return None
    advised = [_words(finding) for finding in refusing]
    return advised[0] if all(words == advised[0] for words in advised) else None


def _words(finding: Finding) -> list[str]:
    first = finding.help[0] if finding.help else ""
    found = SIZES.findall(first)
    if not found and isinstance(first, Change):
        short = re.match(r"-(tp|pp)\b", first)
        found = [({"tp": "tensor", "pp": "pipeline"}[short[1]], first.text)] if short else []
    return [word for name, size in found for word in (f"--{name}-parallel-size", size)]


if __name__ == "__main__":
    main(*sys.argv[1:3])
