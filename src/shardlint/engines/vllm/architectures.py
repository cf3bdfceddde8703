"""Which model classes vLLM has, release by release, and which of them have pipeline parallelism."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from functools import lru_cache
from typing import Any, Literal

from shardlint.engines.engine import data_text
from shardlint.engines.versions import Version
from shardlint.findings import Unknown

FOLDER = os.path.dirname(__file__)  # noqa: PTH120 pathlib costs 5 ms
TRANSFORMERS_BACKEND = "vLLM may still load it through its Transformers backend"


def supports_pp(architecture: str, version: Version) -> bool | Unknown:
    """Whether the class has pipeline parallelism in this release, as the registry of vLLM computes it."""
    facts = facts_at(architecture, version)
    if isinstance(facts, Unknown):
        return facts
    if len(facts) > 1:
        return _between(architecture, version, "has pipeline parallelism")
    (fact,) = facts
    if fact is None:
        return Unknown(f"vLLM {version} has no class {architecture}; {TRANSFORMERS_BACKEND}")
    return fact


def knows(architecture: str, version: Version) -> bool | Unknown:
    """Whether the registry of this release has the class."""
    facts = facts_at(architecture, version)
    if isinstance(facts, Unknown):
        return facts
    present = {fact is not None for fact in facts}
    return present.pop() if len(present) == 1 else _between(architecture, version, "is there")


def in_transformers(architecture: str) -> bool:
    """Whether the Transformers of the newest known release have a generating class of this name."""
    return f"\n{architecture}\n" in _transformers_text()


Ability = Literal["lora", "text", "pooling"]


def can(architecture: str, what: Ability) -> bool | None:
    """Whether a class of the newest release takes adapters, generates text or pools; None where it is not recorded."""
    abilities = row(architecture).get("can")
    return None if abilities is None else what in abilities.split()


def has_config_class(model_type: str) -> bool:
    """Whether the newest release can read a config.json of this type without code from the model's repository."""
    return f"\n{model_type}\n" in data_text(FOLDER, "model_types.txt")


@lru_cache(maxsize=1)
def _transformers_text() -> str:
    return data_text(FOLDER, "transformers_classes.txt")


def facts_at(architecture: str, version: Version) -> set[bool | None] | Unknown:
    """What the samples around a version say: True or False for pipeline parallelism, None for "no such class".

    Two facts where the version lies between two samples that differ.  After the newest sample, its facts.
    """
    around = samples_around(version)
    if not around:
        return Unknown(f"the model classes of vLLM {version} are not recorded, those since {sampled()[0]} are")
    ranges = row(architecture).get("pp", ())
    return {_fact_in(ranges, sample) for sample in around}


def _fact_in(ranges: Any, sample: int) -> bool | None:
    return next((bool(supports) for since, until, supports in ranges if is_within(sample, since, until)), None)


def is_within(sample: int, since: str, until: str | None) -> bool:
    """Whether a sample, by number, is one of those between two."""
    samples = sampled()
    return samples.index(since) <= sample and (until is None or sample <= samples.index(until))


@lru_cache(maxsize=64)
def samples_around(version: Version) -> tuple[int, ...]:
    """The samples, by number, that tell of a version: itself, both around it, none before the first."""
    samples = sampled()
    place = bisect_left(samples, version, key=Version.of)
    if place == len(samples):
        return (place - 1,)
    if Version.of(samples[place]) == version:
        return (place,)
    return (place - 1, place) if place else ()


def _between(architecture: str, version: Version, what: str) -> Unknown:
    return Unknown(f"whether {architecture} {what} in vLLM {version} is not recorded: the releases around it differ")


@lru_cache(maxsize=1)
def _text() -> str:
    return data_text(FOLDER, "architectures.jsonl")


@lru_cache(maxsize=1)
def sampled() -> tuple[str, ...]:
    """The releases that were looked at, the oldest first."""
    head = json.loads(_text().partition("\n")[0])
    return tuple(head["versions"])


@lru_cache(maxsize=64)
def row(architecture: str) -> dict[str, Any]:
    """The row of one class, {} where there is none: `pp` ranges, and `moe`, `hybrid`, `mla` ... where they hold."""
    text = _text()
    start = text.find(f'\n{{"name":{json.dumps(architecture)},')
    if start < 0:
        return {}
    found: dict[str, Any] = json.loads(text[start : text.index("\n", start + 1)])
    return found
