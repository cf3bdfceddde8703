"""What has changed since an earlier run: of the surroundings, the claims and the links. Both runs as their JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from types import NoneType
from typing import Any, TypeGuard

from shardlint.smoke.claims import CLAIMS

Data = Mapping[str, Any]

FASTER, SLOWER = 0.8, 1.25
"""Between these an exchange takes as long as before."""
OF_A_HOST = {
    "torch": "torch",
    "nccl": "NCCL",
    "driver": "the driver",
    "kernel": "the kernel",
    "gpu_models": "the models of GPUs",
    "gpus": "the GPUs",
    "rdma": "RDMA",
    "open_files": "the limit of open files",
    "locked_memory": "the limit of locked memory",
}
"""What of a host is compared, in words; free memory and names of pods are others each time."""
SETTINGS = {"environment": dict, "nccl_settings": dict}
NO_SETTINGS: Data = {name: {} for name in SETTINGS}
OF_AN_EXCHANGE = ("phase", "kind", "operation", "purpose", "mode", "planned_bytes", "bytes", "tokens", "group")
"""What tells an exchange from others, what is said of it first; its group comes last."""
OF_A_TIMING: Mapping[str, Any] = dict.fromkeys(OF_AN_EXCHANGE, object) | {"median_us": (int, float)}
MOST_US = 1e15
"""30 years: what no exchange takes."""
DEEPEST = 30
"""Levels of JSON within each other; a report has a few."""

SAID = 5
"""How much of what tells an exchange from others is said of it."""
NOT_PLANNED = ("worlds", "groups", "twins", "allocation", "graphs", "untried")
"""What of a plan follows from the rest of it, or from the devices that there are."""

Change = tuple[str, str, str]
"""What has changed, how it was, how it is."""


def is_report(data: object) -> bool:
    """Whether all that is compared can be read in it: known before the ranks run, and not when they have run."""
    return (
        _is_shallow(data, DEEPEST)
        and _has(data, plan=dict, environment=dict, hosts=list, timings=list, proven=list, failed=list)
        and _has(data, not_reached=list, deployment=(str, NoneType), shardlint=str)
        and _has(data["plan"], sizes=dict)
        and _has(data["environment"], backend=(str, NoneType))
        and all(_has(host, node=int) and _has({**NO_SETTINGS, **host}, **SETTINGS) for host in data["hosts"])
        and all(_has(timing, **OF_A_TIMING) and 0 < timing["median_us"] < MOST_US for timing in data["timings"])
    )


def _has(data: Any, **fields: type | tuple[type, ...]) -> TypeGuard[dict[str, Any]]:
    return isinstance(data, dict) and all(name in data and isinstance(data[name], of) for name, of in fields.items())


def _is_shallow(data: object, levels: int) -> bool:
    within = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in within)


def other_plan(before: Data, now: Data) -> Iterator[Change]:
    """In what the plans differ: degrees, stages, and the sizes of the model."""
    old, new = before["plan"], now["plan"]
    for name in sorted(old["sizes"].keys() & new["sizes"].keys()):
        if old["sizes"][name] != new["sizes"][name]:
            yield name, str(old["sizes"][name]), str(new["sizes"][name])
    for name in sorted((old.keys() & new.keys()) - {"sizes", *NOT_PLANNED}):
        was, is_now = _planned(old[name]), _planned(new[name])
        if was != is_now:
            yield name, _in_words(was), _in_words(is_now)


def changes(before: Data, now: Data) -> Iterator[Change]:
    """Each thing that is not as it was: what the run stood on, then what it came to.

    Of another plan neither claims nor steps can be compared, only an exchange of the same size in the same group.
    """
    yield from _of_the_run(before, now)
    yield from _of_the_hosts(before, now)
    if not any(other_plan(before, now)):
        yield from _of_the_claims(before, now)
    if before["environment"]["backend"] == now["environment"]["backend"]:
        for key, (was, is_now) in sorted(_speeds(before["timings"], now["timings"]).items()):
            ratio = is_now / was
            if not FASTER < ratio < SLOWER:
                yield " ".join(key[:SAID]), f"{was:.0f} us", f"{is_now:.0f} us ({ratio:.2g} times)"


def _planned(value: Any) -> Any:
    """As JSON has it, and of a size that is tried by a smaller one the model's own: (name, planned, tried)."""
    if not isinstance(value, (list, tuple)):
        return value
    is_size = len(value) == 3 and isinstance(value[0], str)
    return f"{value[0]} {value[1]}" if is_size else [*map(_planned, value)]


def _of_the_run(before: Data, now: Data) -> Iterator[Change]:
    backends = [data["environment"]["backend"] for data in (before, now)]
    for what, old, new in (
        ("the deployment", before["deployment"], now["deployment"]),
        ("shardlint", before["shardlint"], now["shardlint"]),
        ("the backend", *backends),
        ("nodes", len(before["hosts"]), len(now["hosts"])),
    ):
        if old != new and None not in (old, new):
            yield what, str(old), str(new)


def _of_the_hosts(before: Data, now: Data) -> Iterator[Change]:
    """Nodes with the same number are compared; what has changed alike on all of them is said once."""
    earlier = {host["node"]: host for host in before["hosts"]}
    pairs = [(host["name"], earlier[host["node"]], host) for host in now["hosts"] if host["node"] in earlier]
    where: dict[Change, list[str]] = {}
    for name, old, new in pairs:
        for change in _of_one_host(old, new):
            where.setdefault(change, []).append(name)
    for (what, was, is_now), names in where.items():
        of = "" if len(names) == len(pairs) else f" of {', '.join(names)}"
        yield what + of, was, is_now


def _of_one_host(before: Data, now: Data) -> Iterator[Change]:
    for name, words in OF_A_HOST.items():
        if name in before and before[name] != now[name]:
            yield words, _in_words(before[name]), _in_words(now[name])
    for settings in SETTINGS:
        old, new = before.get(settings, now[settings]), now[settings]
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                yield name, str(old.get(name, "unset")), str(new.get(name, "unset"))


def _in_words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_in_words, value)) or "none"
    if isinstance(value, Mapping):
        return " ".join(map(str, value.values()))
    return "unknown" if value in (None, "") else str(value)


def _of_the_claims(before: Data, now: Data) -> Iterator[Change]:
    for name in CLAIMS:
        old, new = _state(name, before), _state(name, now)
        if old != new:
            yield name, old, new


def _state(name: str, data: Data) -> str:
    for state in ("proven", "failed", "not_reached"):
        if name in data[state]:
            return state.replace("_", " ")
    return "not in the plan"


def _speeds(before: list[Data], now: list[Data]) -> dict[tuple[str, ...], tuple[float, float]]:
    """The median over the groups of a class, of those that both runs have timed."""
    earlier = {_key(timing): timing["median_us"] for timing in before}
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for timing in now:
        if (key := _key(timing)) in earlier:
            found.setdefault(key[:-1], []).append((earlier[key], timing["median_us"]))
    return {key: (median(was for was, _ in pairs), median(now for _, now in pairs)) for key, pairs in found.items()}


def _key(timing: Data) -> tuple[str, ...]:
    return tuple(str(timing[name]) for name in OF_AN_EXCHANGE)
