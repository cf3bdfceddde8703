"""The kinds of objects that differ only in where their pod stands, and what their number of pods means."""

import pytest

from shardlint.findings import Unknown

POD = "{spec: {containers: [{name: main, args: [--tp=2], resources: {limits: {nvidia.com/gpu: 2}}}]}}"


@pytest.mark.parametrize(
    ("form", "kind", "spec", "replicas"),
    [
        ("k8s-statefulset", "StatefulSet", f"{{replicas: 2, template: {POD}}}", 2),
        ("k8s-replicaset", "ReplicaSet", f"{{replicas: 3, template: {POD}}}", 3),
        ("k8s-job", "Job", f"{{parallelism: 4, template: {POD}}}", 4),
        ("k8s-job", "CronJob", f"{{schedule: x, jobTemplate: {{spec: {{template: {POD}}}}}}}", None),
        (
            "k8s-job",
            "JobSet",
            f"{{replicatedJobs: [{{name: a, template: {{spec: {{parallelism: 2, template: {POD}}}}}}}]}}",
            2,
        ),
        ("k8s-pod", "Pod", POD[len("{spec: ") : -1], None),
    ],
)
def test_the_pod_is_found(read, words, form, kind, spec, replicas):
    got = read(f"kind: {kind}\nmetadata: {{name: llm}}\nspec: {spec}\n")
    assert got.form == got.only.form == form
    assert (got.only.name, got.only.kind, words(got.only)) == (f"{kind}/llm", kind, ["--tp=2"])
    assert got.only.gpus_per_pod.value == 2
    assert (got.only.replicas and got.only.replicas.value) == replicas


def test_a_daemon_set_has_as_many_copies_as_nodes(read):
    got = read(f"kind: DaemonSet\nmetadata: {{name: llm}}\nspec: {{template: {POD}}}\n")
    assert got.form == "k8s-daemonset" and isinstance(got.only.replicas, Unknown)


def test_jobs_of_a_set_are_units_of_their_own(read):
    job = "{name: %s, template: {spec: {template: {spec: {containers: [{args: [x]}]}}}}}"
    got = read(f"kind: JobSet\nmetadata: {{name: s}}\nspec: {{replicatedJobs: [{job % 'a'}, {job % 'b'}]}}\n")
    assert len({launch.unit for launch in got.launches}) == 2


def test_a_generated_name_will_do(read):
    assert read("kind: Pod\nmetadata: {generateName: run-}\nspec: {containers: [{image: x}]}").only.name == "Pod/run-"
    assert read("kind: Pod\nspec: {containers: [{image: x}]}").only.name == "Pod"


def test_json_is_read_as_well(read, words):
    got = read('{"kind": "Pod", "spec": {"containers": [{"args": ["--tp", "2"]}]}}', "pod.json")
    assert words(got.only) == ["--tp", "2"]
    assert got.cut(got.only.argv[1]) == "2"


def test_every_form_says_what_it_is():
    from fnmatch import fnmatchcase

    from shardlint import manifests

    names = [form.NAME for form in manifests.FORMS]
    assert len(names) == len(set(names)) and "lws" in names
    assert all(
        any(fnmatchcase("deploy.yaml", pattern) for pattern in form.FILES)
        for form in manifests.FORMS
        if form.NAME.startswith("k8s")
    )
