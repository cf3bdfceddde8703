"""The nearest layout that no rule refuses, as the first advice of every finding that refuses the written one.

Each rule advises by what it knows: heads by heads, memory by memory.  What mends one fault may be another, so the
sizes near the written ones are tried with all rules, and the first that none refuses is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from shardlint.check.facts import DeploymentFacts
from shardlint.check.trying import Trial
from shardlint.deployment.spelling import respelled
from shardlint.findings import Finding, Located, Maybe, NotChecked, Span, Unknown
from shardlint.findings.records import NamedTuple

MOST_TRIED = 16
"""Layouts: each costs a judgement by every rule."""
MOST_RANKS = 512

OF_THE_LAYOUT = frozenset(
    {
        "tp-heads", "tp-kv-heads", "tp-vocab", "tp-vision", "tp-mamba", "tp-width", "tp-quant-block", "pp-partition",
        "pp-unsupported", "world-vs-gpus", "mem-weights", "mem-kv", "ep-moe", "dcp",
    }
)  # fmt: skip
"""Families whose errors refuse a layout, and not the way in which it is asked for."""

TENSOR, PIPELINE = "tensor_parallel_size", "pipeline_parallel_size"
NAMES = (TENSOR, PIPELINE)


class Pair(NamedTuple):
    """The two sizes that are varied."""

    tensor: int
    pipeline: int

    @property
    def ranks(self) -> int:
        return self.tensor * self.pipeline


def with_suggestions(
    facts: DeploymentFacts, trial: Trial, said: Sequence[Finding | NotChecked]
) -> list[Finding | NotChecked]:
    """All that was said, the findings that refuse the sizes with a layout first in their advice that works."""
    places = _places(facts)
    refused = [item for item in said if isinstance(item, Finding) and _refuses(item) and item.span in places]
    written = _written(facts) if refused else None
    found = None if written is None else _known_nearest(facts, trial, written)
    if written is None or found is None:
        return list(said)
    words = _in_words(facts, written, found)
    return [_advised(item, words) if isinstance(item, Finding) and item in refused else item for item in said]


def _refuses(finding: Finding) -> bool:
    """Whether a finding says that this layout does not work."""
    return finding.severity == "error" and finding.family in OF_THE_LAYOUT


def _written(facts: DeploymentFacts) -> Pair | None:
    sizes = [facts.knob(name) for name in NAMES]
    known = [size.value for size in sizes if isinstance(size, Located) and isinstance(size.value, int)]
    return Pair(*known) if len(known) == len(sizes) and min(known) > 0 else None


def _size(facts: DeploymentFacts, name: str) -> Located[Any] | None:
    """A size as it is written."""
    size = facts.deployment.knobs.get(name)
    return size if isinstance(size, Located) else None


def _places(facts: DeploymentFacts) -> set[Span]:
    """Where the two sizes are written; where neither is, nothing can be advised in the author's words."""
    written = (_size(facts, name) for name in NAMES)
    return {size.span for size in written if size is not None and size.span is not None}


def _known_nearest(facts: DeploymentFacts, trial: Trial, written: Pair) -> Pair | None:
    """The same for all deployments of a model that say the same: overlays and copies are many."""
    own = facts.deployment
    said = [(name, _told(value)) for name, value in sorted({**own.engine_fields, **own.knobs}.items())]
    machines = [_told(fact) for fact in (facts.gpus_per_node, facts.nodes, facts.accelerators, own.replicas)]
    surroundings = (own.form, own.kind, len(own.open_words), len(own.server.others))
    return facts.once(lambda: _nearest(facts, trial, written), "nearest", tuple(said), tuple(machines), surroundings)


def _told(value: Maybe[Any] | None) -> str:
    return repr(value.value) if isinstance(value, Located) else "" if value is None else value.reason


def _nearest(facts: DeploymentFacts, trial: Trial, written: Pair) -> Pair | None:
    """The first of the near layouts that no rule refuses."""
    for pair in _near(written, _most_ranks(facts, written)):
        knobs = {TENSOR: pair.tensor, PIPELINE: pair.pipeline}
        if not any(map(_refuses, trial.findings(knobs, OF_THE_LAYOUT))):
            return pair
    return None


def _most_ranks(facts: DeploymentFacts, written: Pair) -> int:
    gpus, nodes, copies = facts.gpus_per_node, facts.nodes, facts.knob("data_parallel_size")
    if isinstance(gpus, Unknown) or isinstance(nodes, Unknown) or not isinstance(copies, Located):
        return min(MOST_RANKS, 2 * written.ranks)
    there: int = gpus.value * nodes.value // max(1, copies.value)
    return max(1, min(MOST_RANKS, there))


def _near(written: Pair, most: int) -> Iterator[Pair]:
    """Layouts of at most so many ranks: as many ranks as there are first, then the sizes nearest to the written."""
    pairs = [
        Pair(tensor, pipeline)
        for tensor in range(1, most + 1)
        for pipeline in range(1, most // tensor + 1)
        if pipeline in (1, written.pipeline, most // tensor)
    ]
    wanted = min(written.ranks, most)  # where the GPUs are not known, twice the written ranks may be as near as half
    pairs.sort(
        key=lambda pair: (
            pair.pipeline != written.pipeline,
            abs(pair.ranks - wanted),
            -pair.ranks,
            abs(pair.tensor - written.tensor),
        )
    )
    yield from [pair for pair in pairs if pair != written][:MOST_TRIED]


def _advised(finding: Finding, words: str) -> Finding:
    others = tuple(advice for advice in finding.help if advice != words)
    return finding._replace(help=(words, *others))


def _in_words(facts: DeploymentFacts, written: Pair, found: Pair) -> str:
    """Only what changes, in the author's spelling; an edit where that is one value."""
    changed = [
        respelled(_size(facts, name), new, name)
        for name, new, old in zip(NAMES, found, written, strict=True)
        if new != old
    ]
    return changed[0] if len(changed) == 1 else " ".join(changed)
