"""Reports as the JSON of the contract; the schemas beside this file say the same for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from shardlint.deployment import Deployment
from shardlint.findings import Finding, Located, Maybe, Report, Span, Unknown
from shardlint.report.fields import ALL_KNOB_FIELDS, fields, unresolved

SCHEMA = 1

Effective = Mapping[str, Maybe[Any] | None]
"""The values that the engine will work with, by field: written ones and defaults."""
Memory = Mapping[str, Any] | None
"""What its GPUs keep for the KV cache and what that holds, as the schema of `inspect` has it; None where unasked."""


def check_json(report: Report) -> str:
    """`shardlint check --format json`. ASCII, so that no terminal or pipe can spoil it."""
    document = {
        "schema": SCHEMA,
        "findings": [finding_json(finding) for finding in report.findings],
        "not_checked": [
            {
                "deployment": item.deployment,
                "rule": item.rule,
                "missing": item.missing,
                "reason": item.reason,
                "settle_by": item.settle_by,
            }
            for item in report.not_checked
        ],
        "summary": summary(report),
    }
    return json.dumps(document, indent=2)


def inspect_json(report: Report, effective: Sequence[Effective], memories: Sequence[Memory]) -> str:
    """`shardlint inspect --format json`; `effective`, `memories`: one for each of the report's deployments."""
    document = {
        "schema": SCHEMA,
        "deployments": [_deployment(*each) for each in zip(report.deployments, effective, memories, strict=True)],
        "files": [{"path": note.path, "form": note.form, "reason": note.reason} for note in report.files],
    }
    return json.dumps(document, indent=2)


def summary(report: Report) -> dict[str, int]:
    """The counts of one run."""
    return {
        "files": len(report.files),
        "deployments": len(report.deployments),
        "errors": report.count("error"),
        "warnings": report.count("warning"),
        "notes": report.count("note"),
        "ignored": len(report.ignored),
        "not_checked": len(report.not_checked),
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding, as the schema of `check` has it."""
    return {
        "code": finding.code,
        "rule": finding.rule,
        "family": finding.family,
        "severity": finding.severity,
        "effect": finding.effect,
        "certainty": finding.certainty,
        **_place(finding.span),
        "message": finding.message,
        "sum": finding.sum,
        "help": list(finding.help),
        "url": finding.url,
        "related": [{**_place(item.span), "message": item.message} for item in finding.related],
    }


def _place(span: Span) -> dict[str, Any]:
    return {
        "path": span.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def _deployment(deployment: Deployment, effective: Effective, memory: Memory) -> dict[str, Any]:
    inferred = {} if memory is None else {"memory": dict(memory)}
    return {
        "path": deployment.at.path,
        "line": deployment.at.line,
        "column": deployment.at.column,
        "name": deployment.name,
        "kind": deployment.kind,
        "form": deployment.form,
        "engine": deployment.engine,
        **{name: _value(value) for name, value in fields(deployment).items()},
        "engine_fields": {name: _value(value) for name, value in deployment.engine_fields.items()},
        "unresolved": [_unresolved(name, unknown) for name, unknown in unresolved(deployment)],
        "effective": {
            name: {"value": item.value, "source": item.source or item.origin}
            for name in ALL_KNOB_FIELDS
            if isinstance(item := effective.get(name), Located)
        },
        **inferred,
    }


def _value(value: Maybe[Any] | None) -> Any:
    return value.value if isinstance(value, Located) else None


def _unresolved(name: str, unknown: Unknown) -> dict[str, Any]:
    span = unknown.span
    return {
        "field": name,
        "reason": unknown.reason,
        "text": unknown.spelled,
        "line": span.line if span else None,
        "column": span.column if span else None,
    }
