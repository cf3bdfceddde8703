"""A result as text for people and as JSON for programs: two readers of the same claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardlint.smoke.claims import CLAIMS, JUDGED_FROM_OUTSIDE, expected
from shardlint.smoke.result import Claim, SmokeResult

SCHEMA = 1

NEVER_PROVEN = ("bandwidth", "memory", "several nodes")
UNPROVEN_ON_CPU = ("NCCL",)


def text(result: SmokeResult, name: str = "") -> str:
    """The first line says what was proven and what was not; then one line for each claim, a fault on its own line."""
    lines = [headline(result, name)]
    if not result.could_not_run:
        lines += [f"scale: {result.plan.scale}", *_claim_lines(result), _verdict(result)]
    return "".join(line + "\n" for line in lines)


def json_data(result: SmokeResult, name: str = "") -> dict[str, Any]:
    """Plain data with every claim of every rank."""
    plan = result.plan
    return {
        "schema": SCHEMA,
        "deployment": name or None,
        "headline": headline(result, name),
        "exit_code": result.exit_code,
        "could_not_run": result.could_not_run or None,
        "proven": list(result.proven),
        "failed": list(result.failed),
        "not_reached": list(result.not_reached),
        "not_proven": list(not_proven(result)),
        "environment": {
            "backend": result.backend or None,
            "torch": result.torch or None,
            "seconds": round(result.seconds, 3),
        },
        "plan": {key: value for key, value in plan.to_json().items() if key != "deviations"},
        "claims": [claim._asdict() for claim in result.claims],
    }


def headline(result: SmokeResult, name: str = "") -> str:
    """What ran where, what it proved, what it did not."""
    what = f"{name or 'layout'} ({result.plan.degrees})"
    if result.could_not_run:
        return f"{what} was not tried: {result.could_not_run}"
    parts = [f"{what} on {_where(result)}", f"proven: {', '.join(result.proven) or 'nothing'}"]
    if result.failed:
        parts.append(f"FAILED: {', '.join(result.failed)}")
    if result.not_reached:
        parts.append(f"not reached: {', '.join(result.not_reached)}")
    return "; ".join([*parts, f"not proven: {', '.join(not_proven(result))}"])


def not_proven(result: SmokeResult) -> tuple[str, ...]:
    """What this run cannot show however it ends."""
    return (*(UNPROVEN_ON_CPU if result.backend != "nccl" else ()), *NEVER_PROVEN, *result.plan.untried)


def _where(result: SmokeResult) -> str:
    ranks = len(result.plan.ranks)
    if result.backend == "nccl":
        return f"{_number(ranks, 'GPU')} of one host (NCCL, torch {result.torch})"
    return f"CPU ({_number(ranks, 'process', 'processes')} of one host, gloo, torch {result.torch})"


def _claim_lines(result: SmokeResult) -> Iterator[str]:
    """A claim over one kind of group is one line where it holds; else each thing that was seen against it is."""
    for name in expected(result.plan):
        claims = [claim for claim in result.claims if claim.name == name]
        for kind in dict.fromkeys(claim.kind for claim in claims):
            of_kind = sorted(claim for claim in claims if claim.kind == kind)
            wrong = [claim for claim in of_kind if not claim.ok]
            yield from _wrong_lines(wrong) if wrong else (_held_line(name, of_kind),)
        if not claims:
            yield f"----  {name}: not reached"


def _held_line(name: str, claims: list[Claim]) -> str:
    groups = sorted({claim.group for claim in claims})
    return f"ok    {name}, {claims[0].kind} {' '.join(_members(group) for group in groups)}: {CLAIMS[name]}"


def _wrong_lines(claims: list[Claim]) -> Iterator[str]:
    """What several ranks of a group see alike is said once."""
    seen_by: dict[Claim, list[int]] = {}
    for claim in claims:
        seen_by.setdefault(claim._replace(rank=-1), []).append(claim.rank)
    for claim, ranks in seen_by.items():
        witnesses = "" if claim.name in JUDGED_FROM_OUTSIDE else f" (seen by rank {', '.join(map(str, ranks))})"
        yield f"FAIL  {claim.name}, {claim.kind} {_members(claim.group)}: {claim.message}{witnesses}"


def _members(group: tuple[int, ...]) -> str:
    """[0,1,2,3] for a few members, [0..31] for a run of many."""
    if len(group) > 4 and group == tuple(range(group[0], group[-1] + 1)):
        return f"[{group[0]}..{group[-1]}]"
    return "[" + ",".join(map(str, group)) + "]"


def _verdict(result: SmokeResult) -> str:
    judged = len({(claim.name, claim.kind, claim.group) for claim in result.claims})
    wrong = len({(claim.name, claim.kind, claim.group) for claim in result.claims if not claim.ok})
    outcome = f"{wrong} of {_number(judged, 'claim')} failed" if wrong else f"{_number(judged, 'claim')} held"
    return f"{outcome} in {result.seconds:.1f} s"


def _number(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"
