"""The layouts of a plan, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from shardlint.findings.records import NamedTuple
from shardlint.findings.words import counted
from shardlint.report.paint import paint
from shardlint.report.plain import plain

SCHEMA = 1
GIB = 2**30
SHOWN = 5


class Range(NamedTuple):
    """An estimate: what it is at least, likely and at most."""

    low: float
    likely: float
    high: float


class Warned(NamedTuple):
    """A warning that a check of the layout gives."""

    code: str
    rule: str
    message: str


class LayoutLine(NamedTuple):
    """One layout that works. None stands for what is not known, with the reason in `unknown`."""

    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    enable_expert_parallel: bool
    decode_context_parallel_size: int
    nodes_per_replica: int
    gpus: int
    idle_gpus: int
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    """Why it stands where it does."""
    warnings: tuple[Warned, ...]
    """What checking it would warn of."""
    missing: str
    """By how much it misses what was asked for; empty for a layout that does not."""
    weight_bytes_per_gpu: int | None
    """Of the GPU that holds the most."""
    kv_bytes_per_gpu: Range | None
    """What is left for the KV cache on the GPU that decides."""
    kv_tokens: Range | None
    """Of all replicas together, each of which has a cache of its own."""
    requests: Range | None
    """Requests of the full length that all replicas hold at once, of each replica the whole ones."""
    bytes_sent_per_token: int | None
    """By a tensor parallel rank into all-reduces, for each token of a step, before the algorithm's own factor."""
    unknown: str


class RefusedLine(NamedTuple):
    """Layouts that do not work, for one reason."""

    layouts: tuple[str, ...]
    reason: str


class PlanReport(NamedTuple):
    """Everything that `shardlint plan` says."""

    model: str
    engine: str
    hardware: str
    objective: str
    max_model_len: int | None
    requests: int
    missed: str
    """Where no layout holds what was asked for: that, and what would hold it."""
    layouts: tuple[LayoutLine, ...]
    refused: tuple[RefusedLine, ...]
    assumptions: tuple[str, ...]


def plan_json(report: PlanReport) -> str:
    """ASCII, as all of shardlint's JSON."""
    fields = report._asdict() | {
        "schema": SCHEMA,
        "layouts": [_as_dict(layout) for layout in report.layouts],
        "refused": [refused._asdict() for refused in report.refused],
    }
    return json.dumps(fields, indent=2)


def _as_dict(layout: LayoutLine) -> dict[str, Any]:
    ranges = {name: value._asdict() for name, value in layout._asdict().items() if isinstance(value, Range)}
    return layout._asdict() | ranges | {"warnings": [warned._asdict() for warned in layout.warnings]}


def plan_text(report: PlanReport, colour: bool, shown: int | None = SHOWN) -> Iterator[str]:
    """The lines of `shardlint plan`; `shown` bounds the layouts, None shows all."""
    length = "the model's length" if report.max_model_len is None else f"{report.max_model_len} tokens"
    yield paint(f"{plain(report.model)} on {plain(report.hardware)}, {plain(report.engine)}", "strong", colour)
    yield f"objective: {report.objective}; asked for: {counted(report.requests, 'request')} of {length} at once"
    yield ""
    if not report.layouts:
        yield "no layout works on these GPUs"
    if report.missed:
        yield paint(plain(report.missed), "strong", colour)
        yield ""
    for number, layout in enumerate(report.layouts[:shown], 1):
        yield from _layout(number, layout, colour)
    if shown is not None and len(report.layouts) > shown:
        yield f"and {len(report.layouts) - shown} more (--all shows them)"
    if report.refused:
        yield ""
        yield "refused:"
        for refused in report.refused:
            yield f"  {listed(refused.layouts)}: {plain(refused.reason)}"
    yield ""
    for assumption in report.assumptions:
        yield f"assumed: {plain(assumption)}"


def _layout(number: int, layout: LayoutLine, colour: bool) -> Iterator[str]:
    yield f"{number}. {paint(' '.join(layout.flags), 'strong', colour)}"
    for reason in layout.reasons:
        yield f"   {plain(reason)}"
    if layout.missing:
        yield f"   {plain(layout.missing)}"
    for warned in layout.warnings:
        yield f"   warning[{warned.code} {warned.rule}]: {plain(warned.message)}"
    yield f"   {_figures(layout)}"


def _figures(layout: LayoutLine) -> str:
    parts = [counted(layout.gpus, "GPU") + (f", {layout.idle_gpus} idle" if layout.idle_gpus else "")]
    if layout.weight_bytes_per_gpu is not None:
        parts.append(f"{layout.weight_bytes_per_gpu / GIB:.1f} GiB of weights on the fullest")
    if layout.requests is not None and layout.kv_tokens is not None:
        tokens, requests = layout.kv_tokens, layout.requests
        parts.append(f"KV cache for about {tokens.likely:,.0f} tokens ({tokens.low:,.0f} to {tokens.high:,.0f})")
        replicas = layout.data_parallel_size
        each = f", {requests.likely / replicas:.0f} in each of {replicas} replicas" if replicas > 1 else ""
        whole = counted(round(requests.likely), "request")
        parts.append(f"{whole} at once ({requests.low:.0f} to {requests.high:.0f}){each}")
    elif layout.unknown:
        parts.append(f"memory not known: {plain(layout.unknown)}")
    if layout.bytes_sent_per_token:
        parts.append(f"{layout.bytes_sent_per_token / 1024:,.0f} KiB of all-reduces for each token")
    return "; ".join(parts)


def listed(layouts: Sequence[str], most: int = 8) -> str:
    """Layouts in a row, the first of many."""
    more = f" and {len(layouts) - most} more" if len(layouts) > most else ""
    return ", ".join(layouts[:most]) + more
