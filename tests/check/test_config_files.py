"""`--config FILE` beside a manifest: read through the library, judged where it is written, and read once."""

from __future__ import annotations

import pytest

from shardlint.check import Settings, check, read
from shardlint.deployment import Deployment
from shardlint.findings import Located, Report, Unknown
from shardlint.text import Library, Source


class Files(dict[str, str], Library):
    """A library that is a dict of paths."""

    def model(self, model_id: str) -> Unknown:
        return Unknown("no models here")

    def sibling(self, path: str) -> Source | Unknown:
        return Source(path, self[path]) if path in self else Unknown(f"there is no {path}")

    def reading(self, *paths: str) -> Report:
        return read([Source(path, self[path]) for path in paths], self, Settings())

    def checked(self, *paths: str) -> Report:
        return check([Source(path, self[path]) for path in paths], self, Settings())


SERVE = "# ours\nmodel: Qwen/Qwen3-8B\ntensor-parallel-size: 3 # for now\n"


def only(report: Report) -> Deployment:
    (deployment,) = report.deployments
    return deployment


@pytest.mark.parametrize(
    ("manifest", "named", "file"),
    [
        ("run.sh", "serve.yaml", "serve.yaml"),
        ("a/run.sh", "./serve.yaml", "a/serve.yaml"),
        ("a/b/run.sh", "../serve.yaml", "a/serve.yaml"),
        ("./a/run.sh", "conf/serve.yaml", "./a/conf/serve.yaml"),
        ("a/run.sh", "/etc/serve.yaml", "/etc/serve.yaml"),
    ],
)
def test_a_finding_stands_in_the_file_that_is_named(manifest: str, named: str, file: str) -> None:
    report = Files({manifest: f"vllm serve --config {named}\n", file: SERVE}).checked(manifest)
    places = {(finding.path, finding.line, finding.column, finding.end_column) for finding in report.findings}
    assert places == {(file, 3, 23, 24)}
    assert {finding.help[0] for finding in report.findings} == {"tensor-parallel-size: 4"}


def test_a_file_that_is_not_there_is_said_and_nothing_guessed() -> None:
    deployment = only(Files({"run.sh": "vllm serve m --config serve.yaml\n"}).reading("run.sh"))
    (word,) = deployment.open_words
    assert word.reason == "the flags in --config serve.yaml were not read: there is no serve.yaml"


@pytest.mark.parametrize("text", ["", "- a\n", "a: [\n", "a: 1\n---\nb: 2\n"])
def test_a_file_that_holds_no_keys_is_said(text: str) -> None:
    files = Files({"run.sh": "vllm serve m --config serve.yaml\n", "serve.yaml": text})
    (word,) = only(files.reading("run.sh")).open_words
    assert word.reason.endswith("serve.yaml is no YAML of one mapping")


CONFIG_MAP = """apiVersion: v1
kind: Pod
metadata: {name: llm}
spec:
  containers:
  - {name: llm, image: vllm/vllm-openai:v0.33.0, args: [--config, /config/vllm.yaml]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: llm}
data:
  vllm.yaml: |
    model: Qwen/Qwen3-8B
    tensor-parallel-size: 3
"""


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (CONFIG_MAP, 14, 27),
        (
            CONFIG_MAP.replace("|\n    model", '"model')
            .replace("8B\n    tensor", "8B\\ntensor")
            .replace("3\n", '3"\n'),
            12,
            59,
        ),
    ],
)
def test_a_file_of_a_config_map_is_found_by_its_name(text: str, line: int, column: int) -> None:
    report = Files({"pod.yaml": text}).checked("pod.yaml")
    assert {(finding.line, finding.column, finding.end_column) for finding in report.findings} == {
        (line, column, column + 1)
    }


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        (
            "a/compose.yaml",
            "services: {llm: {image: vllm/vllm-openai, command: --config /c/serve.yaml, volumes: [%s]}}",
        ),
        ("a/compose.yaml", "services: {llm: {command: vllm serve --config /c/serve.yaml, volumes: [%s]}}"),
        ("a/run.sh", "docker run -v %s vllm/vllm-openai --config /c/serve.yaml"),
        ("a/run.sh", "docker run --volume=%s vllm/vllm-openai sh -c 'vllm serve --config /c/serve.yaml'"),
    ],
)
@pytest.mark.parametrize("mount", ["./conf:/c:ro", "./conf/serve.yaml:/c/serve.yaml"])
def test_a_file_that_is_mounted_is_found_on_the_host(manifest: str, text: str, mount: str) -> None:
    report = Files({manifest: text % mount + "\n", "a/conf/serve.yaml": SERVE}).checked(manifest)
    assert {(finding.path, finding.line) for finding in report.findings} == {("a/conf/serve.yaml", 3)}


@pytest.mark.parametrize(
    "text",
    [
        "services: {llm: {command: vllm serve --config /c/serve.yaml, volumes: [{type: bind, source: ./conf, target: /c}]}}",
        "services: {llm: {command: vllm serve --config /c/serve.yaml, volumes: [conf:/c]}}",
    ],
)
def test_a_long_mount_counts_and_a_named_volume_does_not(text: str) -> None:
    deployment = only(Files({"compose.yaml": text, "conf/serve.yaml": SERVE}).reading("compose.yaml"))
    assert ("tensor_parallel_size" in deployment.knobs) == ("bind" in text)


@pytest.mark.parametrize(
    "copy", ["COPY conf/serve.yaml /c/", "COPY --chown=1 conf/ /c", "ADD conf/serve.yaml /c/serve.yaml"]
)
def test_a_file_that_is_copied_into_an_image_is_found_beside_its_dockerfile(copy: str) -> None:
    text = f'FROM vllm/vllm-openai:v0.33.0\n{copy}\nCMD ["--config", "/c/serve.yaml"]\n'
    report = Files({"a/Dockerfile": text, "a/conf/serve.yaml": SERVE}).checked("a/Dockerfile")
    assert {(finding.path, finding.line) for finding in report.findings} == {("a/conf/serve.yaml", 3)}


def test_a_file_that_a_command_of_the_run_names_is_no_deployment_of_its_own() -> None:
    files = Files({"run.sh": "vllm serve --config serve.yaml -tp 4\n", "serve.yaml": SERVE})
    assert only(files.reading("serve.yaml")).name == "serve.yaml"
    both = files.reading("serve.yaml", "run.sh")
    size = only(both).knobs["tensor_parallel_size"]
    assert isinstance(size, Located) and size.value == 4
    assert [(note.form, note.reason) for note in both.files] == [("vllm-config", None), ("shell-script", None)]


def test_a_file_alone_is_judged_like_a_command() -> None:
    report = Files({"a/serve.yaml": SERVE}).checked("a/serve.yaml")
    assert "query-heads" in {finding.rule for finding in report.findings}
    assert {(finding.line, finding.column) for finding in report.findings} == {(3, 23)}


def test_a_comment_counts_in_its_own_file() -> None:
    ignored = SERVE.replace("# for now", "# shardlint: ignore[SL101, SL102, SL104] until June")
    files = Files({"run.sh": "\n\nvllm serve --config serve.yaml\n", "serve.yaml": ignored})
    report = files.checked("run.sh")
    assert (report.findings, len(report.ignored)) == ((), 3)
    assert files.checked("run.sh", "serve.yaml").findings == ()
    files = Files({"run.sh": "\n\nvllm serve --config serve.yaml # shardlint: ignore[SL101]\n", "serve.yaml": SERVE})
    assert {finding.rule for finding in files.checked("run.sh").findings} >= {"query-heads", "unused-ignore"}
