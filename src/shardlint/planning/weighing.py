"""What a layout costs and holds: the figures that choices are made by, all of them arithmetic."""

from __future__ import annotations

import math

from shardlint.check.trying import Tried
from shardlint.facts import Accelerator
from shardlint.findings import Finding, Located, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.layout import Layout
from shardlint.layout.memory import Memory, longest
from shardlint.layout.overheads import Estimate
from shardlint.planning.candidates import Candidate, Machines


class Option(NamedTuple):
    """One layout with its figures. None stands for what is not known."""

    candidate: Candidate
    refusals: tuple[Finding, ...]
    """Why the engine would not start or run it: findings of severity error."""
    warnings: tuple[Finding, ...]
    layout: Layout | None
    memory: Memory | None
    memory_unknown: str
    """Why nothing is known of the memory, where that is so."""
    idle_gpus: int
    crosses_nodes: bool
    """Whether a tensor parallel group runs over several nodes."""
    per_replica: Estimate | None
    """Requests of the full length that the KV cache of one replica holds; None for no cache or no figures."""

    @property
    def is_refused(self) -> bool:
        return bool(self.refusals)

    @property
    def is_refused_for_its_shape(self) -> bool:
        """Whether it would be refused on GPUs of any size."""
        return any(finding.family != "memory" for finding in self.refusals)

    @property
    def requests(self) -> Estimate | None:
        """Requests of the full length that all replicas hold at once: each has a cache of its own, and shares none."""
        if self.per_replica is None:
            return None
        return self.per_replica.whole().scaled(self.candidate.data_parallel_size)

    @property
    def tokens(self) -> Estimate | None:
        """Tokens of such requests that the caches of all replicas hold together."""
        if self.per_replica is None or self.memory is None:
            return None
        of_each = self.per_replica.scaled(self.memory.max_model_len).whole()
        return of_each.scaled(self.candidate.data_parallel_size)

    @property
    def holds(self) -> float:
        """Requests of the full length that it likely holds; endless where no cache limits them."""
        return float("inf") if self.requests is None else self.requests.likely

    def missing(self, requests: int) -> float:
        """How many of so many requests at once it likely holds too few; 0 where it holds them."""
        return max(0.0, requests - self.holds)

    def shorter(self, requests: int) -> int:
        """Tokens of the longest requests of which it likely holds so many at once; 0 where it holds none so many."""
        if self.memory is None:
            return 0
        of_each = math.ceil(requests / self.candidate.data_parallel_size)
        lengths = (longest(budget.needed, budget.kv.likely / of_each) for budget in self.memory.budgets)
        return min(lengths, default=0)


def weigh(candidate: Candidate, machines: Machines, tried: Tried) -> Option:
    """The figures of a layout that was tried."""
    facts = tried.facts
    layout = facts.layout if isinstance(facts.layout, Layout) else None
    memory = facts.memory
    known = memory.value if isinstance(memory, Located) else None
    return Option(
        candidate=candidate,
        refusals=tuple(finding for finding in tried.findings if finding.severity == "error"),
        warnings=tuple(finding for finding in tried.findings if finding.severity == "warning"),
        layout=layout,
        memory=known,
        memory_unknown=memory.reason if isinstance(memory, Unknown) else "",
        idle_gpus=machines.gpus - candidate.world_size,
        crosses_nodes=bool(layout and layout.crossing("tp")),
        per_replica=known.sequences() if known is not None else None,
    )


def has_fast_link(cards: tuple[Accelerator, ...], gpus: int) -> bool | None:
    """Whether that many cards are joined by more than PCIe; None where it depends on the variant or is unknown."""
    answers = {_joins(card, gpus) for card in cards}
    return answers.pop() if len(answers) == 1 else None


def _joins(card: Accelerator, gpus: int) -> bool | None:
    if card.link in (None, "none") or (card.link != "pcie" and card.link_domain == 1):
        return None  # how boards of one card are joined is the machine's matter
    return card.link != "pcie" and (card.link_domain or gpus) >= gpus
