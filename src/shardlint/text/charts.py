"""A template of a chart, filled in with the values and the names that lie beside it."""

from __future__ import annotations

from functools import lru_cache

from shardlint.text.documents import documents
from shardlint.text.nodes import Node
from shardlint.text.source import Library, Source

_FOLDER = "templates"
_ONES_OWN = ("values.yaml", "Chart.yaml")


def chart_of(path: str) -> str | None:
    """The folder of the chart that a path is a template of (`''` for the one at hand); None where it is none."""
    folders = path.replace("\\", "/").split("/")[:-1]
    if _FOLDER not in folders:
        return None
    above = folders[: len(folders) - 1 - folders[::-1].index(_FOLDER)]
    return "".join(f"{folder}/" for folder in above)


def filled(source: Source, library: Library) -> tuple[Source, str] | None:
    """The template with what its chart's own values tell, and their path; None where nothing of it is told."""
    chart = chart_of(source.path) if "{{" in source.text else None
    if chart is None:
        return None
    values, about = (_root(library.sibling(chart + name)) for name in _ONES_OWN)
    if values is None:
        return None
    from shardlint.text import go_templates

    found = go_templates.filled(source, values, about)
    return None if found is None else (found, chart + _ONES_OWN[0])


def _root(file: object) -> Node | None:
    return _root_of(file) if isinstance(file, Source) else None


@lru_cache(maxsize=8)
def _root_of(file: Source) -> Node | None:
    return next((document.root for document in documents(file).documents if document.root is not None), None)
