"""The JSON of the contract: what is printed is read back and held against the published schemas."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from reports import MISSING, OPEN_WORD, REPORT, deployment, span

from shardlint.deployment import Deployment
from shardlint.findings import FileNote, Located, Report, Unknown
from shardlint.report.json import check_json, inspect_json


def schema(name: str) -> Any:
    return json.loads(files("shardlint.report").joinpath(f"schemas/{name}-1.json").read_text())


def inspected(*deployments: Deployment, effective: dict[str, Any] | None = None) -> Any:
    report = Report(files=(FileNote("a.yaml", "k8s-deployment", None),), deployments=deployments)
    return json.loads(inspect_json(report, [effective or {}] * len(deployments), [None] * len(deployments)))


def unresolved(item: Deployment) -> dict[str, Any]:
    [row] = inspected(item)["deployments"]
    named = {entry["field"]: entry for entry in row["unresolved"]}
    assert all(row.get(field) is None for field in named), "a field has a value or is named in unresolved, never both"
    return named


class TestCheck:
    def test_it_is_what_the_schema_says(self) -> None:
        jsonschema.validate(json.loads(check_json(REPORT)), schema("check"))

    def test_a_finding(self) -> None:
        first = json.loads(check_json(REPORT))["findings"][0]
        assert first == {
            "code": "SL101",
            "rule": "query-heads",
            "family": "tp-heads",
            "severity": "error",
            "effect": "refuses-at-start",
            "certainty": "exact",
            "path": "a.yaml",
            "line": 3,
            "column": 28,
            "end_line": 3,
            "end_column": 29,
            "message": "32 query heads do not divide by tensor_parallel_size 6",
            "sum": "32 / 6 = 5 remainder 2",
            "help": ["--tensor-parallel-size=4", "--tensor-parallel-size=8"],
            "url": "shardlint/rules/query_heads.md",
            "related": first["related"],
        }
        assert first["related"][1]["path"] == "catalogue:org/model"

    def test_counts(self) -> None:
        counts = {"files": 2, "deployments": 0, "errors": 1, "warnings": 0, "notes": 1, "ignored": 1, "not_checked": 4}
        assert json.loads(check_json(REPORT))["summary"] == counts

    def test_what_was_not_checked(self) -> None:
        said = json.loads(check_json(REPORT))["not_checked"]
        assert len(said) == len(MISSING)
        assert said[0] == {
            "deployment": "Deployment/a",
            "rule": "query-heads",
            "missing": "geometry",
            "reason": "no config.json of x is here",
            "settle_by": "--models",
        }

    def test_no_output_can_fail_to_be_encoded(self) -> None:
        odd = Report(files=(FileNote("caf\u00e9\udcff.yaml", None, None),))
        assert json.loads(inspect_json(odd, [], []).encode("ascii"))["files"][0]["path"] == "caf\u00e9\udcff.yaml"


class TestInspect:
    def test_it_is_what_the_schema_says(self) -> None:
        item = deployment(
            image_tag=Located("v0.10.0"),
            model=Located("org/model"),
            knobs={"tensor_parallel_size": Located(8), "enable_expert_parallel": Located(True)},
            engine_fields={"mem-fraction-static": Located(0.8), "odd": Unknown("why")},
            pods=Located(2),
        )
        effective = {"pipeline_parallel_size": Located(1, origin="default", source="the default of vLLM 0.10.0")}
        document = inspected(item, effective=effective)
        jsonschema.validate(document, schema("inspect"))
        [row] = document["deployments"]
        assert (row["path"], row["line"], row["column"]) == ("a.yaml", 2, 5)
        assert (row["tensor_parallel_size"], row["enable_expert_parallel"], row["pods"]) == (8, True, 2)
        assert row["engine_fields"] == {"mem-fraction-static": 0.8, "odd": None}
        assert row["effective"] == {"pipeline_parallel_size": {"value": 1, "source": "the default of vLLM 0.10.0"}}

    @pytest.mark.parametrize(("size", "spread"), [(8, True), (1, None)])
    def test_a_size_of_expert_parallelism_says_that_there_is_one(self, size: int, spread: bool | None) -> None:
        [row] = inspected(deployment(knobs={"expert_parallel_size": Located(size)}))["deployments"]
        assert row["enable_expert_parallel"] is spread
        assert "enable_expert_parallel" in unresolved(deployment(knobs={"expert_parallel_size": Unknown("templated")}))

    def test_what_is_not_written_is_null_and_not_a_default(self) -> None:
        [row] = inspected(deployment())["deployments"]
        assert row["pipeline_parallel_size"] is None
        assert row["replicas"] is None

    def test_what_each_deployment_must_have_is_named_when_the_file_is_silent(self) -> None:
        assert set(unresolved(deployment(engine_version=None))) == {"engine_version", "model", "gpus_per_pod", "gpu"}

    def test_an_unknown_is_named_with_its_text_and_place(self) -> None:
        unknown = Unknown("templated", span(3, 5, 20), "{{ .Values.tp }}")
        named = unresolved(deployment(knobs={"tensor_parallel_size": unknown}))
        assert named["tensor_parallel_size"] == {
            "field": "tensor_parallel_size",
            "reason": "templated",
            "text": "{{ .Values.tp }}",
            "line": 3,
            "column": 5,
        }

    def test_a_length_that_the_engine_works_out_is_no_gap(self) -> None:
        assert "max_model_len" not in unresolved(deployment(knobs={"max_model_len": Located(None, span(2, 1, 2))}))

    @pytest.mark.parametrize("field", ["tensor_parallel_size", "model", "max_model_len"])
    def test_what_may_stand_in_an_open_word_is_unknown(self, field: str) -> None:
        named = unresolved(deployment(open_words=(OPEN_WORD,)))
        assert named[field]["text"] == "$EXTRA"
        assert named[field]["reason"] == "may stand in $EXTRA: EXTRA is not set in this file"
        assert "replicas" not in named
