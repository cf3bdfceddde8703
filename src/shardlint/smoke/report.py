"""A result as text for people and as JSON for programs: two readers of the same claims, observations and timings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from shardlint._version import __version__
from shardlint.findings.words import counted
from shardlint.smoke.claims import JUDGED_FROM_OUTSIDE, expected, in_words
from shardlint.smoke.comparison import changes, other_plan
from shardlint.smoke.exchanges import Exchange, Timing, best_known, by_exchange, whole_classes
from shardlint.smoke.job import ON_ONE_GPU
from shardlint.smoke.observations import Observation
from shardlint.smoke.result import COULD_NOT_RUN, Claim, SmokeResult
from shardlint.smoke.trial import Host, places

SCHEMA = 1

OF_A_HOST = ("devices", "interfaces", "shared memory", "open files", "leftover settings")
BETWEEN_HOSTS = ("hostnames", "who reaches whom", "RDMA", "what differs")
"""What `precheck` and `reach` look at."""


def text(result: SmokeResult, name: str = "", before: dict[str, Any] | None = None) -> str:
    """The first line says what was proven and what was not; then one line for each claim, a fault on its own line.

    `before` is the JSON of an earlier run, to say what has changed.
    """
    lines = [headline(result, name)]
    if not result.could_not_run:
        lines += _observation_lines(result)
        if result.backend:
            lines += [f"scale: {result.plan.scale}", *_claim_lines(result), *_timing_lines(result)]
        if before is not None:
            lines += _comparison_lines(before, json_data(result, name))
        lines += _masks(result)
        lines.append(_verdict(result))
    return "".join(line + "\n" for line in lines)


def json_data(result: SmokeResult, name: str = "", before: dict[str, Any] | None = None) -> dict[str, Any]:
    """Plain data with every claim of every rank; `before` as in `text`."""
    plan = result.plan
    data = {
        "schema": SCHEMA,
        "shardlint": __version__,
        "deployment": name or None,
        "headline": headline(result, name),
        "exit_code": result.exit_code,
        "kind": result.kind,
        "could_not_run": result.could_not_run or None,
        "first_cause": first_cause(result),
        "proven": list(result.proven),
        "failed": list(result.failed),
        "not_reached": list(result.not_reached),
        "not_proven": list(not_proven(result)),
        "level": result.level,
        "environment": {
            "backend": result.backend or None,
            "torch": result.torch or None,
            "seconds": round(result.seconds, 3),
        },
        "hosts": [_host_data(host) for host in result.hosts],
        "observations": [seen._asdict() for seen in result.observations],
        "plan": {key: value for key, value in plan.to_json().items() if key != "deviations"},
        "claims": [claim._asdict() for claim in result.claims],
        "timings": [_timing_data(timing) for timing in result.timings],
        "not_timed": [_exchange_data(exchange) for exchange in result.not_timed],
    }
    return data | {"comparison": None if before is None else _comparison_data(before, data)}


def not_planned(why: str, name: str, level: str) -> dict[str, Any]:
    """The same data of a deployment that there is no plan for, so nothing to judge."""
    nothing: list[str] = []
    told = ("proven", "failed", "not_reached", "hosts", "observations", "claims", "timings", "not_timed")
    return dict.fromkeys(told, nothing) | {
        "schema": SCHEMA,
        "shardlint": __version__,
        "deployment": name,
        "headline": f"{name} was not tried: {why.removeprefix(f'{name} cannot be tried: ')}",
        "exit_code": COULD_NOT_RUN,
        "kind": "could-not-run",
        "could_not_run": why,
        "first_cause": why,
        "not_proven": ["NCCL", "bandwidth", "memory", "several nodes"],
        "level": level,
        "environment": {"backend": None, "torch": None, "seconds": 0.0},
        "plan": None,
        "comparison": None,
    }


def _comparison_data(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    names = ("what", "before", "now")
    return {
        "other_plan": [dict(zip(names, change, strict=True)) for change in other_plan(before, now)],
        "changes": [dict(zip(names, change, strict=True)) for change in changes(before, now)],
    }


def _comparison_lines(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    if other := [f"{what}: {was}, now {is_now}" for what, was, is_now in other_plan(before, now)]:
        yield f"the earlier run was of another plan ({'; '.join(other)}): only what both have is compared"
    changed = [f"{what}: {was}, now {is_now}" for what, was, is_now in changes(before, now)]
    for change in changed or ["nothing has changed"]:
        yield f"since the earlier run, {change}"


def headline(result: SmokeResult, name: str = "") -> str:
    """What ran where, what it proved, what it did not."""
    what = f"{name or 'layout'} ({result.plan.degrees})"
    if result.could_not_run:
        return f"{what} was not tried: {result.could_not_run}"
    if not result.backend:
        count = len(result.errors)
        found = f"{counted(count, 'error')} in the surroundings" if count else "nothing speaks against it"
        return f"{what}: {found}{_looked_at(result)}; no rank was started, and nothing else is proven"
    parts = [f"{what} on {_where(result)}", f"proven: {', '.join(result.proven) or 'nothing'}"]
    if failed := dict.fromkeys((*result.failed, *(seen.name for seen in result.errors))):
        parts.append(f"FAILED: {', '.join(failed)}")
    if result.not_reached:
        parts.append(f"not reached: {', '.join(result.not_reached)}")
    return "; ".join([*parts, f"not proven: {', '.join(not_proven(result))}"])


def _looked_at(result: SmokeResult) -> str:
    """Where was looked, and whether there are the devices that the layout is for."""
    first = [host for host in result.hosts if places(result.hosts)[host.node] == host.node]
    if not first:
        return ""
    where = f"on {len(first)} hosts" if len(first) > 1 else f"on one host ({first[0].name})"
    without = [host.name for host in first if not host.around.gpus]
    if not without:
        return f" {where}"
    ranks = counted(len(result.plan.ranks), "rank")
    which = f", {', '.join(without)} of them without a GPU" if len(first) > 1 else ", which has no GPU"
    return f" {where}{which}: {ranks} would be tried on CPUs, and nothing of GPUs and NCCL was looked at"


def not_proven(result: SmokeResult) -> tuple[str, ...]:
    """What this run cannot show however it ends."""
    on_gpus = result.backend == "nccl"
    missing = {
        "NCCL": not on_gpus,
        "bandwidth": not (on_gpus and result.timings),
        "memory": not (on_gpus and "memory" in result.proven),
        "several nodes": len(set(places(result.hosts).values())) < 2,
    }
    return (*(what for what, is_missing in missing.items() if is_missing), *result.plan.untried)


def first_cause(result: SmokeResult) -> str | None:
    """The one sentence that every node says of a run that failed."""
    if result.could_not_run:
        return result.could_not_run
    wrong = [claim for claim in result.claims if not claim.ok]
    ends = [claim for claim in wrong if claim.name == "ranks"]
    messages = [seen.message for seen in result.errors] + [claim.message for claim in (*ends, *wrong)]
    return messages[0] if messages else None


def _where(result: SmokeResult) -> str:
    ranks = len(result.plan.ranks)
    names = {places(result.hosts)[host.node]: host.name for host in result.hosts}
    where = f"{len(names)} hosts: {', '.join(names.values())}" if len(names) > 1 else "one host"
    if result.backend == "nccl":
        return f"{counted(ranks, 'GPU')} of {where} (NCCL, torch {result.torch})"
    if result.backend == ON_ONE_GPU:
        each = "each of " if len(names) > 1 else ""
        return f"one GPU of {each}{where}, which {counted(ranks, 'rank')} share (gloo, torch {result.torch})"
    return f"CPU ({counted(ranks, 'process', 'processes')} of {where}, gloo, torch {result.torch})"


def _observation_lines(result: SmokeResult) -> Iterator[str]:
    """What is seen alike of several hosts is said once."""
    hosts: dict[Observation, list[str]] = {}
    for seen in result.observations:
        hosts.setdefault(seen._replace(host=""), []).append(seen.host)
    for seen, where in hosts.items():
        label = {"error": "FAIL ", "warning": "warn ", "note": "note "}[seen.severity]
        of = "".join(f", {host}" for host in where if host)
        yield f"{label} {seen.name}{of}: {seen.message}" + (f" - {seen.advice}" if seen.advice else "")


def _claim_lines(result: SmokeResult) -> Iterator[str]:
    """A claim over one kind of group is one line where it holds; else each thing that was seen against it is."""
    for name, kind, judges in _by_kind(result):
        claims = sorted(claim for claim in result.claims if (claim.name, claim.kind) == (name, kind))
        wrong = [claim for claim in claims if not claim.ok]
        missing = sorted(judges - {claim.rank for claim in claims})
        if wrong:
            yield from _wrong_lines(wrong)
        elif not missing:
            yield _held_line(in_words(name, result.plan), claims)
        else:
            by = f" by {'rank' if len(missing) == 1 else 'ranks'} {', '.join(map(str, missing))}" if claims else ""
            yield f"----  {name}, {kind}: not reached{by}"


def _by_kind(result: SmokeResult) -> Iterator[tuple[str, str, set[int]]]:
    """Each claim over each kind of group, and the ranks that judge it."""
    for name, judges in expected(result.plan).items():
        kinds = sorted({kind for kind, _rank in judges})
        yield from ((name, kind, {rank for of, rank in judges if of == kind}) for kind in kinds)


def _held_line(words: str, claims: list[Claim]) -> str:
    groups = sorted({claim.group for claim in claims})
    return f"ok    {claims[0].name}, {claims[0].kind} {' '.join(_members(group) for group in groups)}: {words}"


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


def _timing_lines(result: SmokeResult) -> Iterator[str]:
    """A line for each exchange: its slowest group, alone and with all of its class; then what a step takes, where all
    of its exchanges are known."""
    whole = whole_classes(result.timings, result.plan.groups)
    grouped, known = by_exchange(whole), best_known(whole)
    if not known:
        return
    judged = "" if result.backend == "nccl" else " (by gloo, whose speed says nothing of links between GPUs)"
    if result.backend != "nccl" and result.level != "full":
        count = f"{counted(len(known), 'exchange')} of a step timed"
        yield f"links: {count} by gloo, which says nothing of links between GPUs (times: --level full, --format json)"
        return
    judged = "" if result.backend == "nccl" else " (by gloo, whose speed says nothing of links between GPUs)"
    yield f"links: the slowest group of each class{judged}"
    for exchange, timings in known.items():
        slowest = max(timings, key=lambda timing: timing.median_us)
        together = grouped.get((exchange, "together"), [])
        beside = f", {max(each.median_us for each in together):.0f} us with all groups at once" if together else ""
        beside = ", all groups at once" if timings is together else beside
        cut = f" cut to {_bytes(slowest.bytes)}" if _is_cut(slowest) else ""
        in_a_step = f"; {counted(exchange.times, 'time')} in a step: {_figure(slowest.step_ms)} ms"
        yield (
            f"      {exchange.phase} of {counted(exchange.tokens, 'token')}: {exchange.kind} {_members(slowest.group)} "
            f"{exchange.operation} ({exchange.purpose}) of {_bytes(exchange.bytes)}{cut}: "
            f"median {slowest.median_us:.0f} us, p99 {slowest.p99_us:.0f} us, "
            f"{_figure(slowest.algorithm_bandwidth)} GB/s of algorithm, {_figure(slowest.bus_bandwidth)} GB/s of bus"
            f"{beside}{'' if cut else in_a_step}"
        )
    for phase in dict.fromkeys(exchange.phase for exchange in (*known, *result.not_timed)):
        of_phase = [timings for exchange, timings in known.items() if exchange.phase == phase]
        missing = sum(exchange.phase == phase for exchange in result.not_timed)
        if missing:
            count = counted(len(of_phase) + missing, "exchange")
            yield f"      {phase}: {missing} of {count} not timed in all groups: no sum of a step"
            continue
        if any(_is_cut(timing) for timings in of_phase for timing in timings):
            yield f"      {phase}: no sum of a step, whose messages are larger than what was sent here"
            continue
        milliseconds = sum(max(timing.step_ms for timing in timings) for timings in of_phase)
        what = "per token" if phase == "decode" else f"per prefill step of {of_phase[0][0].exchange.tokens} tokens"
        yield f"      {phase}: {_figure(milliseconds)} ms {what} are spent in these exchanges"


def _is_cut(timing: Timing) -> bool:
    """Whether less was sent than a step sends, by more than what makes shares even."""
    return timing.bytes < 0.9 * timing.exchange.bytes


def _timing_data(timing: Timing) -> dict[str, Any]:
    return _exchange_data(timing.exchange) | {
        "group": list(timing.group),
        "mode": timing.mode,
        "bytes": timing.bytes,
        "median_us": timing.median_us,
        "p99_us": timing.p99_us,
        "algorithm_gb_per_s": round(timing.algorithm_bandwidth, 4),
        "bus_gb_per_s": round(timing.bus_bandwidth, 4),
        "step_ms": round(timing.step_ms, 4),
    }


def _exchange_data(exchange: Exchange) -> dict[str, Any]:
    return {
        "operation": exchange.operation,
        "kind": exchange.kind,
        "purpose": exchange.purpose,
        "phase": exchange.phase,
        "tokens": exchange.tokens,
        "times": exchange.times,
        "planned_bytes": exchange.bytes,
    }


def _host_data(host: Host) -> dict[str, Any]:
    """What is needed to repeat a run, and to compare it."""
    around = host.around
    return {
        "node": host.node,
        "name": host.name,
        "machine": around.machine,
        "memory_domain": around.memory_domain,
        "network": around.network,
        "torch": host.torch or None,
        "nccl": host.nccl or None,
        "driver": around.driver or None,
        "kernel": around.kernel,
        "interfaces": {name: address or None for name, address in around.interfaces.items()},
        "addresses": list(around.addresses),
        "gpus": list(around.gpus),
        "gpu_models": list(around.gpu_models),
        "rdma": [port._asdict() for port in around.ports],
        "rdma_usable": around.rdma_usable,
        "shared_memory_free": around.shared_memory_free,
        "locked_memory": around.locked_memory,
        "open_files": around.open_files,
        "environment": dict(around.environment),
        "nccl_settings": dict(around.nccl_settings),
    }


def _figure(value: float) -> str:
    """Three digits of a figure, and never a power of ten."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 0.001 else "below 0.001"


def _bytes(size: int) -> str:
    for unit, name in ((2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} B"


def _masks(result: SmokeResult) -> Iterator[str]:
    """How nccl-tests makes the same groups, where a bit mask or a division of the rank does."""
    if result.backend != "nccl":
        return
    for kind, table in result.plan.groups.items():
        split = nccl_tests_split(table)
        if split:
            yield f"nccl-tests for {kind}: NCCL_TESTS_SPLIT={split} mpirun -n {len(result.plan.ranks)} all_reduce_perf"


def nccl_tests_split(table: tuple[tuple[int, ...], ...]) -> str:
    """The NCCL_TESTS_SPLIT that makes the groups of a table: `DIV n`, `MOD n`, `MASK 0x..`; empty where none does."""
    world = sum(map(len, table))
    wanted = {frozenset(group) for group in table}
    size = len(table[0])
    words: list[tuple[str, Callable[[int], int]]] = [
        (f"DIV {size}", lambda rank: rank // size),
        (f"MOD {len(table)}", lambda rank: rank % len(table)),
        *((f"MASK {mask:#x}", mask.__and__) for mask in range(1, world)),
    ]
    for word, colour in words:
        made: dict[int, set[int]] = {}
        for rank in range(world):
            made.setdefault(colour(rank), set()).add(rank)
        if {frozenset(group) for group in made.values()} == wanted:
            return f'"{word}"'
    return ""


def _verdict(result: SmokeResult) -> str:
    seconds = f"in {result.seconds:.1f} s"
    if not result.backend:
        return f"looked at {', '.join((*OF_A_HOST, *(BETWEEN_HOSTS if len(result.hosts) > 1 else ())))} {seconds}"
    wrong = {(claim.name, claim.kind) for claim in result.claims if not claim.ok}
    judged = {(claim.name, claim.kind, claim.rank) for claim in result.claims}
    claims = [
        (name, kind, all((name, kind, rank) in judged for rank in ranks)) for name, kind, ranks in _by_kind(result)
    ]
    open_still = sum(not is_judged and (name, kind) not in wrong for name, kind, is_judged in claims)
    count = counted(len(claims), "claim")
    if not wrong and not open_still:
        return f"{count} held {seconds}"
    parts = [f"{len(wrong)} failed"] * bool(wrong) + [f"{open_still} not reached"] * bool(open_still)
    return f"of {count} {' and '.join(parts)} {seconds}"
