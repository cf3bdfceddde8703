"""Modules as an engine asks a quantisation method for them, and the lists of names that a checkpoint gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import translate
from typing import Any, Literal

from shardlint.architectures.model import Missing
from shardlint.architectures.rows import AttentionKind, ElementType
from shardlint.architectures.schemes import Scheme
from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple

ModuleKind = Literal["linear", "experts", "head"]
Names = Mapping[str, Any] | Sequence[str]


class Module(NamedTuple):
    """One module of the model: a linear layer, the experts of a layer, or the output head.

    `shards` are the full names of what the checkpoint has in place of a merged layer, empty where it has the same;
    of experts, those of the first one's projections.
    """

    name: str
    kind: ModuleKind
    shards: tuple[str, ...] = ()


class Method(NamedTuple):
    """A quantisation method with the numbers of one checkpoint.

    `scheme_of` says how a module is stored, None for one that is left as it is; it raises Missing for what is not
    known.  `scalars` are the numbers that the method keeps beside each attention with a cache.
    """

    scheme_of: Callable[[Module], Scheme | None]
    scalars: Mapping[AttentionKind, Mapping[ElementType, int]]
    table_scheme_of: Callable[[Module], Scheme | None] = lambda module: None
    """The same of a table of embeddings beside that of the words, which most methods leave alone."""


def strings(value: Any) -> list[str]:
    """The strings of a list, however deeply it is nested; empty for anything else."""
    if isinstance(value, str):
        return [value]
    found: list[str] = []
    for item in value if isinstance(value, (list, tuple)) else ():
        found += [item] if isinstance(item, str) else strings(item)
    return found


def renamed(names: Iterable[str], renames: Sequence[tuple[str, str]]) -> list[str]:
    """Names of a repository in the engine's spelling."""
    return [_renamed(name, renames) for name in names]


def _renamed(name: str, renames: Sequence[tuple[str, str]]) -> str:
    for theirs, ours in renames:
        if name.startswith(theirs):
            return ours + name[len(theirs) :]
    return name


def all_or_none(module: Module, matches: Callable[[str], bool]) -> bool:
    """Whether all shards of a module match. Raises Missing where only some do, which no engine can build."""
    answers = {matches(shard) for shard in module.shards or (module.name,)}
    if len(answers) == 2:
        raise Missing(f"only a part of {module.name} is quantised", "a checkpoint that treats its parts alike")
    return answers.pop()


def exactly(names: Sequence[str]) -> Callable[[str], bool]:
    """A test for being one of these names."""
    known = frozenset(names)
    return known.__contains__


def containing(names: Sequence[str]) -> Callable[[str], bool]:
    """A test for containing one of these texts."""
    return lambda name: any(part in name for part in names)


def wildcards(names: Sequence[str]) -> Callable[[str], bool]:
    """A test for matching one of these shell patterns as a whole; names without wildcards match nothing."""
    patterns = [translate(name) for name in names if any(character in name for character in "*?[")]
    if not patterns:
        return lambda name: False
    any_of_them = re.compile("|".join(patterns))
    return lambda name: any_of_them.match(name) is not None


def exactly_or_by_expression(names: Sequence[str]) -> Callable[[str], bool]:
    """A test for being one of these names, or matching one that is written `re:` from the start."""
    known = frozenset(name for name in names if not name.startswith("re:"))
    expressions = [expression(name[3:]) for name in names if name.startswith("re:")]
    return lambda name: name in known or any(one.match(name) for one in expressions)


MOST_REPETITIONS = 5
"""Unbounded repetitions in an expression of a checkpoint; real ones have up to four, more could take for ever."""
_REPETITION = Pattern(r"(?<!\\)[*+]|\{\d*,\d*\}")
_NESTED_REPETITION = Pattern(r"[*+}][^()]*\)[*+{]")


def expression(text: str) -> re.Pattern[str]:
    """A regular expression of a checkpoint. Raises Missing where it is none, or one that might take for ever."""
    if len(_REPETITION.findall(text)) > MOST_REPETITIONS or _NESTED_REPETITION.search(text):
        raise Missing(f'"{text}" in the quantisation config has too many repetitions to be tried')
    try:
        return re.compile(text)
    except re.error as fault:
        raise Missing(f'"{text}" in the quantisation config is no regular expression') from fault
