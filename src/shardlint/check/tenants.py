"""From the deployments of a file to the engines that share the cards of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardlint.architectures import Rows
from shardlint.deployment import Deployment
from shardlint.findings import Located, Maybe, Unknown
from shardlint.layout.placement import Tenant

if TYPE_CHECKING:
    from shardlint.check.facts import DeploymentFacts

OTHER_SHARE = ("kv-cache-memory-bytes", "num-gpu-blocks-override", "enable-sleep-mode", "device")
"""Flags after which an engine does not hold the share that it was given."""
POOLING = {"runner": ("pooling",), "task": ("embed", "embedding", "classify", "score", "reward"), "convert": ("embed",)}
"""Flags by which a model may answer without a cache."""
WITH_CACHE = ("ForCausalLM", "ForConditionalGeneration")


def tenants_of(facts: DeploymentFacts) -> Maybe[tuple[Tenant, ...]] | None:
    """The engines that may run on this host before the deployment, and itself as the last one.

    None where there is nobody else.
    """
    own = facts.deployment
    before = facts.of_file[: next((at for at, one in enumerate(facts.of_file) if one is own), 0)]
    others = [facts.beside(other) for other in before if _run_together(other, own)]
    if not others and _copies(own) == 1:
        return None
    itself = _tenant(facts)
    if not isinstance(itself, Tenant):
        return itself
    found: list[Tenant] = []
    for other in others:
        tenant = _tenant(other)
        if isinstance(tenant, Unknown):
            return tenant
        found += [tenant] if tenant is not None else []
    return Located((*found, itself), origin="derived")


def _run_together(other: Deployment, own: Deployment) -> bool:
    first, second = other.server.primary, own.server.primary
    certain = not first.conditional and not second.conditional and first.background
    return certain and bool(first.together) and first.together == second.together and other.engine == own.engine


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
