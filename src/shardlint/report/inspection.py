"""What was read, for a person: every value with the place where it stands, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shardlint.deployment import Deployment
from shardlint.findings import Located, Maybe, Report, Unknown
from shardlint.findings.words import EACH_ITS_OWN
from shardlint.report.fields import fields, unresolved
from shardlint.report.json import Effective, Memory
from shardlint.report.paint import paint
from shardlint.report.plain import plain


def inspect_text(
    report: Report, effective: Sequence[Effective], memories: Sequence[Memory], colour: bool
) -> Iterator[str]:
    """The lines of `shardlint inspect`; `effective`, `memories`: one for each of the report's deployments."""
    for deployment, values, memory in zip(report.deployments, effective, memories, strict=True):
        yield from _deployment(deployment, values, colour)
        if memory is not None:
            yield from _memory(memory)
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


def _memory(memory: Mapping[str, Any]) -> Iterator[str]:
    """What the GPUs keep for the KV cache and what that holds, or why it is not known."""
    if memory["kv_cache_bytes"] is None:
        settle_by = f" ({plain(memory['settle_by'])})" if memory["settle_by"] else ""
        yield f"  KV cache: unknown: {plain(memory['reason'])}{settle_by}"
        return
    kept = _ranged(memory["kv_cache_bytes"], 2**30)
    yield f"  KV cache: {kept} GiB of each {plain(memory['gpu'] or 'GPU')}, {memory['certainty']}"
    if memory["kv_cache_tokens"] is not None:
        yield f"  KV cache: {_in_replicas(memory, 'kv_cache_tokens', 'tokens')}"
    if memory["concurrent_requests"] is not None:
        asked = f"requests of {memory['max_model_len']} tokens at once"
        yield f"  KV cache: {_in_replicas(memory, 'concurrent_requests', asked)}"
    if (memory["data_parallel_replicas"] or 1) > 1:
        yield f"  KV cache: {EACH_ITS_OWN}"
    if memory["reason"]:
        yield f"  KV cache: {plain(memory['reason'])}"


def _in_replicas(memory: Mapping[str, Any], name: str, noun: str) -> str:
    """`16 (15 to 17) requests in each replica, 64 (60 to 68) in all 4`."""
    each, replicas = memory[name], memory["data_parallel_replicas"] or 1
    told = f"{_ranged(each)} {noun} in each replica"
    if replicas == 1:
        return told
    return f"{told}, {_ranged({at: value * replicas for at, value in each.items()})} in all {replicas}"


def _ranged(values: Mapping[str, float], unit: int = 1) -> str:
    """`11.2 (9.8 to 12.5)`; one number where all are the same."""
    low, likely, high = (_number(values[name] / unit) for name in ("low", "likely", "high"))
    return likely if low == high else f"{likely} ({low} to {high})"


def _number(value: float) -> str:
    return f"{value:.1f}" if value % 1 and value < 1000 else f"{value:,.0f}"


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
