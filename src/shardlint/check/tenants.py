"""From the deployments of a file to the engines that share the cards of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardlint.architectures import Rows
from shardlint.deployment import Deployment
from shardlint.findings import Located, Maybe, Unknown
from shardlint.layout.placement import Tenant, Tenants

if TYPE_CHECKING:
    from shardlint.check.facts import DeploymentFacts

MOST_ENGINES = 64
"""Of one file that are compared with each other: far more than any host runs."""
OTHER_SHARE = ("kv-cache-memory-bytes", "num-gpu-blocks-override", "enable-sleep-mode", "device")
"""Flags after which an engine does not hold the share that it was given."""
POOLING = {"runner": ("pooling",), "task": ("embed", "embedding", "classify", "score", "reward"), "convert": ("embed",)}
"""Flags by which a model may answer without a cache."""
WITH_CACHE = ("ForCausalLM", "ForConditionalGeneration")


def tenants_of(facts: DeploymentFacts) -> Maybe[Tenants] | None:
    """The deployment and the engines that run on its host at the same time; None where it is alone."""
    deployments = facts.of_file[:MOST_ENGINES]
    at = next((place for place, one in enumerate(deployments) if one is facts.deployment), len(deployments))
    before = [one for one in deployments[:at] if _run_together(one, facts.deployment)]
    if not before and _copies(facts.deployment) == 1:
        return None
    own = _tenant(facts)
    if not isinstance(own, Tenant):
        return own
    found = [_tenant(facts.beside(one)) for one in before]
    unknown = next((one for one in found if isinstance(one, Unknown)), None)
    if unknown is not None:
        return unknown
    known = tuple(one for one in found if isinstance(one, Tenant))
    later = [one for one in deployments[at + 1 :] if _run_together(facts.deployment, one)]
    return Located(Tenants(known, own, _cards([_tenant(facts.beside(one)) for one in later])), origin="derived")


def _cards(tenants: Sequence[Tenant | Unknown | None]) -> frozenset[str] | None:
    if any(isinstance(one, Unknown) for one in tenants):
        return None
    return frozenset(card for one in tenants if isinstance(one, Tenant) for card in one.cards)


def _run_together(first: Deployment, second: Deployment) -> bool:
    """Whether the second one certainly starts while the first one runs, on the same host and not on other cards."""
    one, other = first.server.primary, second.server.primary
    certain = not one.conditional and not other.conditional and one.background
    apart = one.cards is not None and other.cards is not None and not set(one.cards) & set(other.cards)
    together = bool(one.together) and one.together == other.together
    return certain and together and not apart and first.engine == second.engine


def _copies(deployment: Deployment) -> int:
    """Of a service on one host; other controllers spread theirs."""
    copies = deployment.replicas
    return copies.value if deployment.kind == "service" and isinstance(copies, Located) else 1


def _tenant(facts: DeploymentFacts) -> Tenant | Unknown | None:
    """None for one that has no cards, or does not take the share that is written."""
    launch = facts.deployment.server.primary
    share, placement = facts.knob("gpu_memory_utilization"), facts.placement
    if launch.cards is None:
        if facts.gpus_per_pod is None:
            return None
        return Unknown(
            f"which cards {launch.name} is given is not in this file", launch.at, settle_by="naming the cards"
        )
    if any(name.startswith(OTHER_SHARE) for name in facts.deployment.engine_fields):
        return None
    for needed in (share, placement):
        if isinstance(needed, Unknown):
            return needed
    if share is None or isinstance(share, Unknown) or isinstance(placement, Unknown):
        return None
    used = launch.cards[: placement.value.ranks_per_host or 0]
    return Tenant(launch.name, used, share.value, _copies(facts.deployment), _has_cache(facts), share.span or launch.at)


def _has_cache(facts: DeploymentFacts) -> bool | None:
    if isinstance(facts.rows, Rows):
        return bool(facts.rows.caches or facts.rows.states)
    fields = facts.deployment.engine_fields
    if any(isinstance(value := fields.get(name), Located) and value.value in words for name, words in POOLING.items()):
        return None
    architecture = facts.architecture
    return True if isinstance(architecture, Located) and architecture.value.endswith(WITH_CACHE) else None
