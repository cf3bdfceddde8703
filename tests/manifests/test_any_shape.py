"""Whatever a document holds, reading it raises nothing and every place lies in the file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardlint import manifests
from shardlint.deployment import Launch
from shardlint.findings import Unknown
from shardlint.text.documents import documents
from shardlint.text.source import Library, Source

KEYS = [
    "spec",
    "template",
    "containers",
    "initContainers",
    "command",
    "args",
    "env",
    "envFrom",
    "name",
    "value",
    "valueFrom",
    "configMapKeyRef",
    "resources",
    "limits",
    "requests",
    "claims",
    "nvidia.com/gpu",
    "nodeSelector",
    "affinity",
    "nodeAffinity",
    "resourceClaims",
    "leaderWorkerTemplate",
    "workerTemplate",
    "leaderTemplate",
    "size",
    "replicas",
    "replicatedJobs",
    "jobTemplate",
    "image",
    "entrypoint",
    "environment",
    "deploy",
    "reservations",
    "devices",
    "device_ids",
    "count",
    "gpus",
    "runtime",
    "extends",
    "file",
    "service",
    "env_file",
    "items",
    "objects",
    "metadata",
    "restartPolicy",
    "services",
]
TEXTS = [
    "",
    "x",
    "sh",
    "-c",
    "vllm serve $M --tp ${TP:-2}",
    "$(A)",
    "${A:-1}",
    "{{ .Values.x }}",
    "Always",
    "0,1",
    "all",
    "llm",
]
LEAF = st.sampled_from([*TEXTS, 1, 0.5, None, True])
TREE = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=30,
)
KINDS = [
    "Deployment",
    "StatefulSet",
    "Pod",
    "Job",
    "CronJob",
    "JobSet",
    "LeaderWorkerSet",
    "List",
    "Template",
    "DaemonSet",
]


class Nothing(Library):
    def sibling(self, path: str) -> Unknown:
        return Unknown(f"there is no {path}")

    def model(self, model_id: str) -> Unknown:
        return Unknown(f"there is no {model_id}")


def read(text: str):
    source = Source("any.yaml", text)
    found = [manifests.launches(document, Nothing())[:2] for document in documents(source).documents]
    return source, [launch for _, launches in found for launch in launches]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(KINDS), TREE, st.lists(TREE, max_size=2))
def test_objects_of_any_shape_are_read(kind, spec, containers):
    holder = {"spec": {"template": {"spec": {"containers": containers}}}} if containers else {"spec": spec}
    source, launches = read(json.dumps({"kind": kind, "items": [holder], **holder}))
    lines = source.text.splitlines() or [""]
    for launch in launches:
        for word in launch.argv:
            assert word.span is None or word.span.end_line <= len(lines)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b"]), st.dictionaries(st.sampled_from(KEYS), TREE, max_size=6)))
def test_services_of_any_shape_are_read(services):
    read(json.dumps({"services": services}))


@pytest.mark.parametrize(
    "text",
    [
        "kind: List\nitems: &a [*a, {kind: List, items: *a}]\n",
        "kind: List\nitems: &a [" + "{kind: List, items: *a}, " * 200 + "]\n",
        "kind: Pod\nspec: &s {containers: [&c {args: [x], env: *e}], initContainers: [*c]}\n".replace("*e", "[]"),
        "kind: Pod\nspec: &s\n  containers: &c\n  - *s\n",
        "services: &s {a: &a {extends: {service: b}, <<: *s}, b: {extends: {service: a}}}\n",
        "kind: Pod\nspec: {containers: [" + "&c {args: [x]}, " + "*c, " * 20_000 + "]}\n",
    ],
)
def test_aliases_that_turn_on_themselves_end(text):
    _, launches = read(text)
    assert len(launches) <= manifests.MAX_LAUNCHES


def test_variables_of_variables_do_not_grow_without_end():
    variables = [{"name": "A0", "value": "--tp=2 "}]
    variables += [{"name": f"A{level}", "value": f"$(A{level - 1})" * 9} for level in range(1, 40)]
    container = {"image": "vllm/vllm-openai", "env": variables, "args": ["$(A1)", "--seed=$(A39)"]}
    _, (launch,) = read(json.dumps({"kind": "Pod", "spec": {"containers": [container]}}))
    assert launch.argv[-2].value == "--tp=2 " * 9
    assert isinstance(launch.argv[-1], Unknown) and "longer than" in launch.argv[-1].reason


class Sure:
    NAME = "sure"
    FILES = ("*",)

    def launches(self, document, library):
        if "mine" in document.root:
            yield Launch("x", "x", "sure", document.root.span)


class Guess(Sure):
    NAME = "a-guess"
    FALLBACK = True

    def launches(self, document, library):
        yield Launch("y", "y", "a-guess", document.root.span)


@pytest.mark.parametrize(("text", "form"), [("mine: 1\n", "sure"), ("other: 1\n", "a-guess")])
def test_a_form_that_guesses_is_asked_only_where_no_other_is_sure(text, form):
    (document,) = documents(Source("x.yaml", text)).documents
    found = manifests.launches(document, Nothing(), (Guess(), Sure()))
    assert found.form == form
    assert len(found.launches) == 1
