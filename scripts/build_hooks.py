"""Makes `.pre-commit-hooks.yaml` from the names of the files that the forms of manifests have.

Usage: python scripts/build_hooks.py   (a test compares the committed file)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from shardlint.front.options import HOOK_OPTION
from shardlint.manifests import forms

FILE = Path(__file__).parent.parent / ".pre-commit-hooks.yaml"
HOOK = """\
# Made by scripts/build_hooks.py from the forms of manifests that shardlint reads.
- id: shardlint
  name: shardlint
  description: Finds bad GPU layouts in the manifests of LLM servers.
  entry: shardlint check {option}
  language: python
  files: '{files}'
  types: [text]
  # Files of one run may belong together, and a start costs more than a file.
  require_serial: true
"""


def patterns() -> list[str]:
    """The forms' patterns, less those that another one covers."""
    every = {pattern for form in forms() for pattern in form.FILES}
    return sorted(p for p in every if not any(p != other and fnmatchcase(p, other) for other in every))


def expression(globs: Iterable[str]) -> str:
    """One regular expression for paths whose last part matches one of the patterns. Raises ValueError for `[`."""
    return f"(^|/)({'|'.join(map(_expression, globs))})$"


def _expression(glob: str) -> str:
    if "[" in glob:
        raise ValueError(f"{glob}: only * and ? are translated")
    return re.escape(glob).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")


def hooks() -> str:
    """The whole file."""
    return HOOK.format(option=HOOK_OPTION, files=expression(patterns()))


if __name__ == "__main__":
    FILE.write_text(hooks())
