"""Who reaches whom at the addresses that the ranks will use: asked between all hosts before torch is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address

from shardlint.smoke.doors import Called
from shardlint.smoke.job import Seat
from shardlint.smoke.observations import Observation
from shardlint.smoke.precheck import chosen
from shardlint.smoke.surroundings import Surroundings

MOST_NAMES = 4
"""In one line; more are counted."""

ADVICE = (
    "let the nodes reach each other at every port, for gloo and NCCL use those that the kernel gives them (firewall, "
    "NetworkPolicy, service mesh, routes); where the address is the wrong one, set GLOO_SOCKET_IFNAME"
)


def addresses(seat: Seat, around: Surroundings, of_line: str) -> tuple[str, ...]:
    """Where the ranks of a host will listen, as far as that can be told; `of_line` is its address towards node 0.

    gloo listens on the interfaces that it is told, else where the host's name leads; NCCL meets on the first interface
    that it is told.
    """
    if seat.hosts == 1:
        return (of_line,)
    names = around.environment.get("GLOO_SOCKET_IFNAME", "")
    if names:
        found = [around.interfaces.get(name, "") for name in names.split(",")]
    else:
        found = [address for address in around.own_addresses[:1] if not ip_address(address).is_loopback]
    pattern = around.variable("NCCL_SOCKET_IFNAME")
    if around.gpus and pattern:
        found += [around.interfaces[name] for name in chosen(pattern, around.interfaces)[:1]]
    return tuple(dict.fromkeys(filter(None, found))) or (of_line,)


def unreached(names: Mapping[int, str], called: Mapping[int, Sequence[Called]]) -> Iterator[Observation]:
    """What failed, with the way back: `names` are those of all nodes that were asked, `called` what each has told.

    Callers to which the same happens at one place share a line.
    """
    for node in names.keys() - called.keys():
        message = f"{names[node]} was asked whom it reaches, and does not say"
        yield Observation("reach", "error", "", message, "look at what it prints itself")
    failed = [(caller, call) for caller, calls in sorted(called.items()) for call in calls if call.fault]
    back = {(caller, call.place.node): call for caller, call in reversed(failed)}
    trouble = Counter(node for pair in back for node in pair)
    callers: dict[tuple[Called, str], list[int]] = {}
    for caller, call in failed:
        callee = call.place.node
        answer = back.get((callee, caller))
        if answer and (trouble[caller], caller) > (trouble[callee], callee):
            continue  # it is the way back of another call
        how = answer.fault if answer else "" if callee in called else "not known"
        callers.setdefault((call, how), []).append(caller)
    for (call, how), those in callers.items():
        host = names[call.place.node]
        to = f"{host} -> {names[those[0]] if len(those) == 1 else 'each of them'}"
        answer = back.get((call.place.node, those[0]))
        if answer and len(those) == 1:
            to += f" {answer.place.endpoint}"
        way_back = f"{to}: {how}" if how else f"{to} answers"
        message = f"{_some([names[node] for node in those])} -> {host} {call.place.endpoint}: {call.fault}; {way_back}"
        yield Observation("reach", "error", "", message, ADVICE)


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
