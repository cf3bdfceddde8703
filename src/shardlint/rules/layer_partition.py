"""VLLM_PP_LAYER_PARTITION with the wrong count, the wrong sum, or no numbers at all."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Change, Located, Problem, Rule
from shardlint.layout.stages import even_counts
from shardlint.rules._words import counted, listed, named

VARIABLE = "VLLM_PP_LAYER_PARTITION"
LONGEST_ADVICE = 64  # stages


def judge(
    pp_layer_partition: Located[str],
    pipeline_parallel_size: Located[int],
    num_hidden_layers: Located[int],
    engine: Engine,
    engine_version: Located[Version],
) -> Iterator[Problem]:
    text, stages, layers = pp_layer_partition.value, pipeline_parallel_size.value, num_hidden_layers.value
    faults = list(_faults(text, stages, layers))
    if not faults or stages < 1:
        return
    counts = numbers(text)
    even = even_counts(layers, stages) if stages <= LONGEST_ADVICE else []
    yield Problem(
        at=pp_layer_partition,
        message=f"{VARIABLE} {', and '.join(faults)}: {named(engine, engine_version)} fails while it builds the model",
        sum=None
        if counts is None
        else f"{' + '.join(map(str, counts[:LONGEST_ADVICE]))} = {sum(counts)}, in {counted(len(counts), 'part')}",
        help=((_evened(pp_layer_partition, even),) if even else ()) + (f"leave {VARIABLE} out",),
        related=(
            (pipeline_parallel_size, f"{counted(stages, 'pipeline stage')}"),
            (num_hidden_layers, counted(layers, "layer")),
        ),
    )


def _evened(written: Located[str], even: list[int]) -> str:
    """The advice to write equal parts, as an edit where the partition stands in a file."""
    parts = ",".join(map(str, even))
    words = f"{VARIABLE}={parts}"
    return words if written.span is None else Change(words, written.span, written.value, parts)


def numbers(text: str) -> list[int] | None:
    """The parts as the engine reads them; None where one is no whole number."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        return None


def _faults(text: str, stages: int, layers: int) -> Iterator[str]:
    """Everything that is wrong at once; the engine names only the first."""
    counts = numbers(text)
    parts = text.split(",")
    if counts is None:
        bad = [part for part in parts if numbers(part) is None]
        yield f"holds {listed(repr(part[:20]) for part in bad[:3])}, which {'are' if len(bad) > 1 else 'is'} no number"
    if len(parts) != stages:
        yield f"has {counted(len(parts), 'part')} for {counted(stages, 'pipeline stage')}"
    if counts is not None and sum(counts) != layers:
        yield f"adds up to {sum(counts)} where the model has {counted(layers, 'layer')}"


RULE = Rule("SL203", "layer-partition", "pp-partition", "error", "fails-while-loading", judge)
