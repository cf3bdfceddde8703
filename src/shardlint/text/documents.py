"""A file as documents: which language it is in, what its documents hold, what could not be read."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from shardlint.findings import Problem
from shardlint.findings.records import NamedTuple
from shardlint.text.nodes import Mapping, Node
from shardlint.text.source import Fragment, Library, Source

Kind = Literal["yaml", "shell", "dockerfile", "properties", "unit", "terraform", "nix", "python"]

SHELL_SUFFIXES = (".sh", ".bash", ".zsh", ".ksh", ".sbatch", ".slurm")
YAML_SUFFIXES = (".yaml", ".yml", ".json", ".jsonc", ".tpl", ".j2", ".gotmpl", ".tmpl", "template")
_OTHER_SUFFIXES: dict[str, Kind] = {
    ".properties": "properties",
    ".service": "unit",
    ".container": "unit",
    ".tf": "terraform",
    ".nix": "nix",
    ".py": "python",
}
_UNIT_START = r"(?:\s*(?:[#;][^\n]*)?\n)*\[(?:Unit|Service|Container)\]\s*\n"
_DOCKERFILE = r"(?:docker|container)file$|(?:^|[/\\])(?:docker|container)file[.-][^/\\]*$"
_SUFFIX = r"[^/\\.][^/\\]*\.[A-Za-z]\w*$"
_SHEBANG = r"#!.*\b(?:ba|da|k|z|a)?sh\b"
_YAML_START = r"(?:\s*(?:#[^\n]*)?\n)*(?:---(?:\s|$)|%YAML|[\"']?[\w./-]+[\"']?\s*:(?:\s|$)|- |[\[{])"
"""Patterns as text, compiled on first use: of a file whose name tells, none is needed (1.5 ms of every run)."""


class Document(NamedTuple):
    """One YAML or JSON document (`root`, None where it is empty), one shell script (`script`), or one file as it is."""

    source: Source
    kind: Kind
    root: Node | None = None
    script: Fragment | None = None
    templated: bool = False
    """Whether a template (Go, Jinja) decides any part of it."""
    library: Library | None = None
    """Where other files are, once somebody reads it who may look at them."""


class Parsed(NamedTuple):
    """What a file holds, and what could not be read of it (family `file`)."""

    documents: tuple[Document, ...] = ()
    problems: tuple[Problem, ...] = ()


def kind_of(source: Source) -> Kind | None:
    """By the name's ending and the first line, then by the look of the text; None for other languages.

    JSON counts as YAML. Text without an ending that tells (standard input, `serve`) is shell unless it looks like YAML.
    """
    path = source.path.lower()
    if not path.endswith((*SHELL_SUFFIXES, ".yaml", ".yml", ".json")) and re.search(_DOCKERFILE, path):
        return "dockerfile"
    if path.endswith(SHELL_SUFFIXES):
        return "shell"
    if path.endswith(YAML_SUFFIXES):
        return "yaml"
    if (other := _OTHER_SUFFIXES.get(path[path.rfind(".") :])) is not None:
        return other
    head = source.text[:4096].removeprefix("\ufeff")
    if head.startswith("#!"):
        return "shell" if re.match(_SHEBANG, head) else None
    if "[" in head and re.match(_UNIT_START, head):
        return "unit"
    if re.match(_YAML_START, head):
        return "yaml"
    return None if re.search(_SUFFIX, path) else "shell"


@lru_cache(maxsize=16)
def documents(source: Source) -> Parsed:
    """The documents of a file; none for a language that is not read.

    Never raises for what the file says: see `Parsed.problems`.  Kept for a while, as what stands beside an object is
    asked for soon after it.
    """
    kind = kind_of(source)
    if kind is None:
        return Parsed()
    if kind == "shell":
        return Parsed((Document(source, "shell", script=Fragment.whole(source)),))
    if kind != "yaml":
        return Parsed((Document(source, kind),))
    from shardlint.text import yaml

    parsed = yaml.documents(source)
    if source.path.lower().endswith(".tpl") and "{{" in source.text and not _says_something(parsed):
        return Parsed((_script_of_template(source),))
    guessed = not source.path.lower().endswith(YAML_SUFFIXES) and re.search(_SUFFIX, source.path) is not None
    return Parsed() if guessed and parsed.problems else parsed  # it was no YAML after all


def is_well_formed(source: Source) -> bool:
    """Whether a file of YAML parses without a problem, as far as that is cheap to tell."""
    from shardlint.text import yaml

    return yaml.is_well_formed(source.text)


def _says_something(parsed: Parsed) -> bool:
    """Whether YAML makes more of a text than one long line of words."""
    return not parsed.problems and any(isinstance(document.root, Mapping) for document in parsed.documents)


def _script_of_template(source: Source) -> Document:
    """A file of named templates that are no YAML: what they make is taken for shell text."""
    from shardlint.text import templates

    masked = templates.mask_script(source.text)
    script = Fragment(masked.text, source, range(len(source.text) + 1))
    return Document(source, "shell", script=script, templated=True)
