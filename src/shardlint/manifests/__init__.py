"""Where a command line, its environment, its GPUs and its pods stand in each form of manifest.

One module per form; a module's name that begins with an underscore is shared by several.  To add a form, add a
module with `NAME`, `FILES` and `launches`: it is found by being here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import Protocol, cast

from shardlint.deployment import ConfigEntry, Launch, Word
from shardlint.findings import Located, Problem, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.manifests._index import Index, is_fallback
from shardlint.manifests._objects import typed_objects
from shardlint.text.documents import Document, kind_of
from shardlint.text.heads import heads, kinds
from shardlint.text.nodes import Mapping, Node
from shardlint.text.source import ALL_GPUS, Fragment, Library, Source

MAX_LAUNCHES = 5_000
"""Of one document that are read; aliases could make millions of a few lines."""


class Form(Protocol):
    """A module of this room."""

    NAME: str
    """As the contract's `form`."""
    FILES: tuple[str, ...]
    """Patterns of the names that such files have."""
    # A form may say what its documents show, and is then asked of no others: LANGUAGES, the texts that are no YAML;
    # KINDS, of objects in the document, with GROUP in their apiVersion; KEYS, one of which stands at the top of the
    # document, and WITHOUT, none of which does.  With FALLBACK = True it goes by the look of a document, and is asked
    # last, and only of a document that no other form has.

    def launches(self, document: Document, library: Library) -> Iterable[Launch | Problem]:
        """All that the document starts, and what of it could not be read; nothing where it is not of the form."""
        ...


@lru_cache(maxsize=1)
def forms() -> tuple[Form, ...]:
    """Every form, by name."""
    files = os.listdir(os.path.dirname(__file__))  # noqa: PTH120, PTH208 pathlib costs 5 ms
    names = sorted({file.partition(".")[0] for file in files if "." in file and not file.startswith(("_", "."))})
    return tuple(cast(Form, import_module(f"{__name__}.{name}")) for name in names)


class Found(NamedTuple):
    """What a document starts."""

    form: str | None
    """None where it has none of the forms."""
    launches: tuple[Launch, ...]
    problems: tuple[Problem, ...]
    """What of it could not be read."""


def launches(document: Document, library: Library, among: Iterable[Form] | None = None) -> Found:
    """The form that a document has, and its launches; None and nothing where it has none.

    `among` are the forms to try, all of this room where none are given.  A document that holds objects of several forms
    (a `kind: List`) yields them all, and has the first one's name.
    """
    name: str | None = None
    found: list[Launch] = []
    problems: list[Problem] = []
    document = document._replace(library=library)
    for form in _in_question(document, index_of(forms() if among is None else tuple(among))):
        if name is not None and is_fallback(form):
            break
        part = tuple(islice(form.launches(document, library), MAX_LAUNCHES))
        if not part:
            continue
        name = name or form.NAME
        found.extend(_counted(item) for item in part if isinstance(item, Launch))
        problems.extend(item for item in part if isinstance(item, Problem))
    return Found(name, tuple(found), tuple(problems))


def can_have_any(source: Source, among: Iterable[Form]) -> bool:
    """Whether a form is to be asked of a document of a file; often its unindented lines tell already that none is."""
    index, spoken_of = index_of(tuple(among)), kinds(source)
    if not spoken_of or not index.kinds.isdisjoint(spoken_of):
        return True
    known = heads(source)
    return known is None or any(index.of_root(((head.kind, head.version),), head.keys) for head in known)


def _counted(launch: Launch) -> Launch:
    """Words that count all GPUs of the pod when they run, where the manifest says how many it has."""
    cards = launch.gpus_per_pod
    if not isinstance(cards, Located) or not any(_counts(word) for word in launch.argv):
        return launch
    number, why = str(cards.value), "all GPUs of the pod"
    return launch._replace(
        argv=tuple(
            Located(number, word.span, word.spelled, "derived", why) if _counts(word) else word for word in launch.argv
        )
    )


def _counts(word: Word) -> bool:
    return isinstance(word, Unknown) and word.reason == ALL_GPUS and not word.spelled.startswith("-")


@lru_cache(maxsize=8)
def index_of(among: tuple[Form, ...]) -> Index:
    """The forms by what their documents show."""
    return Index(among)


def _in_question(document: Document, index: Index) -> list[Form]:
    if document.kind != "yaml":
        return index.in_language(document.kind)
    objects = ((kind, version) for _, kind, version in typed_objects(document.root))
    return index.of_root(objects, document.root.names if isinstance(document.root, Mapping) else ())


def mounted(path: str, source: Source) -> Fragment | None:
    """The text of a file that a container finds at a path, where a ConfigMap of the same manifest holds it."""
    if not source.holds("ConfigMap") or kind_of(source) != "yaml":
        return None
    from shardlint.manifests._mounted import file_of

    return file_of(path, source)


def arguments(mapping: Node) -> tuple[ConfigEntry, ...]:
    """The keys of a mapping as an engine reads them that is given it as a file."""
    from shardlint.manifests._stated import entries

    return entries(mapping, with_nulls=True)


def __getattr__(attribute: str) -> tuple[Form, ...]:
    if attribute == "FORMS":
        return forms()
    raise AttributeError(attribute)
