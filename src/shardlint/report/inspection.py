"""What was read, for a person: every value with the place where it stands, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from shardlint.deployment import Deployment
from shardlint.findings import Located, Maybe, Report, Unknown
from shardlint.report.fields import fields, unresolved
from shardlint.report.json import Effective
from shardlint.report.paint import paint
from shardlint.report.plain import plain


def inspect_text(report: Report, effective: Sequence[Effective], colour: bool) -> Iterator[str]:
    """The lines of `shardlint inspect`; `effective`: one for each of the report's deployments."""
    for deployment, values in zip(report.deployments, effective, strict=True):
        yield from _deployment(deployment, values, colour)
        yield ""
    for note in report.files:
        if note.reason:
            yield f"not read: {plain(note.path)}: {plain(note.reason)}"


def _deployment(deployment: Deployment, effective: Effective, colour: bool) -> Iterator[str]:
    at = deployment.at
    name = paint(plain(deployment.name), "strong", colour)
    yield f"{plain(at.path)}:{at.line}:{at.column}: {name} ({deployment.engine}, read as {deployment.form})"
    reasons = dict(unresolved(deployment))
    values = {**fields(deployment), **deployment.engine_fields}
    width = max(map(len, values))
    for field, value in values.items():
        text = _said(value, reasons.get(field), effective.get(field), at.path)
        if text:
            yield f"  {field:<{width}}  {text}"


def _said(value: Maybe[Any] | None, reason: Unknown | None, default: Maybe[Any] | None, path: str) -> str:
    """One field's value and origin; empty where nothing was written and nothing is done by default."""
    if isinstance(value, Located):
        return f"{plain(str(value.value))}  {_origin(value, path)}"
    if isinstance(value, Unknown):
        reason = value
    if reason is not None:
        written = f" ({plain(reason.spelled)})" if reason.spelled and reason.spelled not in reason.reason else ""
        return f"unknown: {plain(reason.reason)}{written}"
    return f"{plain(str(default.value))}  {plain(default.source)}" if isinstance(default, Located) else ""


def _origin(value: Located[Any], path: str) -> str:
    if value.span is None:
        return plain(value.source or value.origin)
    place = f"{value.span.line}:{value.span.column}"
    return f"at {place}" if value.span.path == path else f"at {plain(value.span.path)}:{place}"
