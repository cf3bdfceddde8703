"""A rendered chart as one text: each place is that of the file that its comment names."""

from __future__ import annotations

from shardlint.text import Source, documents
from shardlint.text.rendered import Rendered

TEXT = """\
before: 1
---
# Source: chat/templates/a.yaml
a: 1
---
# Source: chat/templates/b.yaml
b: 2
---
# Source: chat/templates/a.yaml
c: 3
"""


def test_places_are_those_of_the_files_as_they_would_be_written():
    source = Rendered("-", TEXT)
    places = {}
    for document in documents(source).documents:
        for key, _ in document.root.items():
            places[key.text] = (key.span.path, key.span.line)
    assert places == {
        "before": ("-", 1),
        "a": ("chat/templates/a.yaml", 3),
        "b": ("chat/templates/b.yaml", 3),
        "c": ("chat/templates/a.yaml", 6),
    }
    texts = dict(source.texts())
    assert texts["-"] == TEXT
    for name, (path, line) in places.items():
        assert texts[path].splitlines()[line - 1].startswith(f"{name}:")


def test_names_may_be_made_paths():
    source = Rendered("chart", TEXT, lambda name: name.replace("chat/", "charts/chat/"))
    assert "charts/chat/templates/b.yaml" in dict(source.texts())


def test_a_file_by_itself_holds_itself():
    assert dict(Source("x.yaml", "a").texts()) == {"x.yaml": "a"}
