"""Which forms are asked of a document: those whose signs it shows."""

import pytest

from shardlint.deployment import Launch
from shardlint.manifests import launches
from shardlint.text import Source, documents


class Form:
    FILES = ("*",)

    def __init__(self, name, **signs):
        self.NAME = name
        vars(self).update(signs)

    def launches(self, document, library):
        yield Launch(self.NAME, "x", self.NAME, document.source.span(0, 0))


FORMS = (
    Form("guesses", FALLBACK=True, WITHOUT=("kind", "mine")),
    Form("pods", KINDS=("Pod", "Job")),
    Form("jobs-of-a-group", KINDS=("Job",), GROUP="example.org/"),
    Form("keys", KEYS=("handler", "run"), WITHOUT=("kind",)),
    Form("scripts", LANGUAGES=("shell",)),
    Form("both", KINDS=("Pod",), KEYS=("handler",)),
)


@pytest.mark.parametrize(
    ("text", "path", "asked"),
    [
        ("kind: Pod\n", "x.yaml", ["pods", "both"]),
        ("kind: Job\n", "x.yaml", ["pods"]),
        ("kind: Job\napiVersion: batch.example.org/v1\n", "x.yaml", ["pods", "jobs-of-a-group"]),
        ("kind: List\nitems: [{kind: Service}, {kind: Pod}]\n", "x.yaml", ["pods", "both"]),
        ("kind: Service\nrun: 1\n", "x.yaml", []),
        ("kind: Service\nhandler: 1\n", "x.yaml", ["both"]),
        ("base: &base\n  run: 1\n<<: *base\n", "x.yaml", ["keys"]),
        ("other: 1\n", "x.yaml", ["guesses"]),
        ("mine: 1\n", "x.yaml", []),
        ("- run: 1\n", "x.yaml", []),
        ("{}\n", "x.yaml", []),
        ("kind: Pod\n", "x.sh", ["scripts"]),
        ("kind: Pod\n", "Dockerfile", []),
    ],
)
def test_a_form_is_asked_where_a_document_shows_its_signs(text, path, asked):
    (document,) = documents(Source(path, text)).documents
    assert [launch.form for launch in launches(document, None, FORMS).launches] == asked


@pytest.mark.parametrize(("text", "path"), [("[1]\n", "x.yaml"), ("x\n", "x.sh"), ("kind: Pod\n", "x.yaml")])
def test_a_form_that_names_no_signs_is_asked_of_everything(text, path):
    (document,) = documents(Source(path, text)).documents
    assert [launch.form for launch in launches(document, None, (Form("any"),)).launches] == ["any"]
