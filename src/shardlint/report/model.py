"""What is known of one model, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.report.plain import plain

SCHEMA = 1
OF_NO_FILE = ("catalogue:", "plugin:")
"""How the places of numbers begin that stand in no file of the user's."""


class PartLine(NamedTuple):
    """One part of the model; `bytes` is None where its storage is not known."""

    name: str
    parameters: int
    bytes: int | None


class CacheLine(NamedTuple):
    """Layers that keep keys and values in one way. `bytes_per_token` are of one of them."""

    layers: int
    bytes_per_token: float
    window: int | None


class DegreeLine(NamedTuple):
    """One value of a degree, every other degree 1. `legal` is None where nobody can tell."""

    value: int
    legal: bool | None
    reasons: tuple[str, ...] = ()
    """Why it is not legal or not known; of a legal value, what it costs beyond its share."""
    weight_bytes: int | None = None
    """Of the rank that holds the most."""
    kv_bytes_per_token: float | None = None
    """Of that rank which keeps the most, windowed layers counted like full ones."""


class ModelReport(NamedTuple):
    """Everything that `shardlint model` says."""

    model: str
    engine: str
    architecture: str
    model_type: str
    origin: str
    assumption: str
    facts: Mapping[str, Maybe[Any]]
    layers: int | None
    parts: tuple[PartLine, ...]
    weight_bytes: int | None
    caches: tuple[CacheLine, ...] | None
    kv_bytes_per_token: float | None
    state_bytes_per_sequence: int | None
    basis: str
    """What tensor parallelism is judged by."""
    tensor: tuple[DegreeLine, ...]
    pipeline: tuple[DegreeLine, ...]
    unknown: str | None = None
    """Why parts or bytes are missing, and what would settle it."""

    @property
    def parameters(self) -> int | None:
        """Of the whole model; None where its family is not described."""
        return sum(part.parameters for part in self.parts) if self.parts else None


def model_json(report: ModelReport) -> str:
    """ASCII, as all of shardlint's JSON."""
    fields = report._asdict()
    tensor, pipeline = fields.pop("tensor"), fields.pop("pipeline")
    fields |= {
        "schema": SCHEMA,
        "facts": {name: _fact(fact) for name, fact in report.facts.items()},
        "parameters": report.parameters,
        "parts": [part._asdict() for part in report.parts],
        "caches": None if report.caches is None else [cache._asdict() for cache in report.caches],
        "tensor_parallel_size": [line._asdict() for line in tensor],
        "pipeline_parallel_size": [line._asdict() for line in pipeline],
    }
    return json.dumps(fields, indent=2)


def _fact(fact: Maybe[Any]) -> dict[str, Any]:
    if isinstance(fact, Unknown):
        return {"value": None, "unknown": fact.reason, "settle_by": fact.settle_by or None}
    return {"value": fact.value, "where": _where(fact)}


def _where(fact: Located[Any]) -> str:
    """The place of a number: file, line and column, a row of the catalogue, or what it follows from."""
    if fact.span is None:
        return fact.source or fact.origin
    if fact.span.path.startswith(OF_NO_FILE):
        return f"{fact.span.path.partition(':')[0]}: {fact.source or fact.spelled}"
    said = (fact.source or fact.spelled).removesuffix(f" of {fact.span.path}")
    at = f"{fact.span.path}:{fact.span.line}:{fact.span.column}"
    return f"{at} ({said})" if said else at


def model_text(report: ModelReport) -> Iterator[str]:
    """The lines for people."""
    kind = report.architecture or report.model_type or "a class that is not known"
    yield f"{plain(report.model)} ({plain(kind)}), from {plain(report.origin)}; as {report.engine} takes it"
    if report.assumption:
        yield f"  assumed: {plain(report.assumption)}"
    if report.unknown:
        yield f"  not known: {plain(report.unknown)}"
    yield from ("", "geometry", *_facts(report.facts))
    if report.parts:
        yield from ("", "parameters and bytes on one GPU", *_parts(report))
    yield from ("", "KV cache on one GPU", *_caches(report))
    yield from ("", f"--tensor-parallel-size, judged by {report.basis}", *_degrees(report.tensor))
    yield from ("", "--pipeline-parallel-size, judged by the class and its layers", *_degrees(report.pipeline))


def _facts(facts: Mapping[str, Maybe[Any]]) -> Iterator[str]:
    width = max(map(len, facts))
    for name, fact in facts.items():
        if isinstance(fact, Unknown):
            settle = f"; to settle it: {plain(fact.settle_by)}" if fact.settle_by else ""
            yield f"  {name:<{width}}  unknown: {plain(fact.reason)}{settle}"
        elif fact.value is not None:
            yield f"  {name:<{width}}  {plain(str(fact.value)):<10}  {plain(_where(fact))}"


def _parts(report: ModelReport) -> Iterator[str]:
    total = PartLine("all", report.parameters or 0, report.weight_bytes)
    for part in (*report.parts, total):
        yield f"  {part.name:<14}  {part.parameters:>17,}  {_bytes(part.bytes)}"


def _caches(report: ModelReport) -> Iterator[str]:
    if report.caches is None:
        yield "  not known"
        return
    for cache in report.caches:
        window = f", the last {cache.window:,} tokens at most" if cache.window else ""
        yield f"  {cache.layers} layers of {cache.bytes_per_token:,} bytes per token{window}"
    yield f"  {report.kv_bytes_per_token or 0:,} bytes per token with all layers counted"
    if report.state_bytes_per_sequence:
        yield f"  {report.state_bytes_per_sequence:,} bytes of recurrent state per sequence"


def _degrees(lines: Sequence[DegreeLine]) -> Iterator[str]:
    words = {True: "legal", False: "not legal", None: "not known"}
    for line in lines:
        held = []
        if line.legal and line.weight_bytes is not None:
            held.append(f"{_bytes(line.weight_bytes)} of weights a GPU")
        if line.legal and line.kv_bytes_per_token is not None:
            held.append(f"{line.kv_bytes_per_token:,} bytes of KV per token")
        said = "; ".join((*held, *map(plain, line.reasons)))
        yield f"  {line.value:>3}  {words[line.legal]}{': ' if said else ''}{said}"


def _bytes(number: int | None) -> str:
    return "bytes not known" if number is None else f"{number:,} bytes ({number / 2**30:.2f} GiB)"
