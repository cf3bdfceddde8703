"""Which groups cross nodes by the plan, and which do where the ranks run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardlint.layout import Group
from shardlint.smoke.job import Seat
from shardlint.smoke.observations import Observation, Weight
from shardlint.smoke.plan import Plan
from shardlint.smoke.trial import Host, hosts_of_ranks

BESIDE_EACH_OTHER = ("tp", "pcp", "dcp")
"""Groups that meet several times in each layer, and are slow over anything but the links inside of a node."""


def crossings(plan: Plan, seat: Seat, hosts: Sequence[Host], planned: Sequence[int | None]) -> Iterator[Observation]:
    """What differs between the nodes that the manifest gives the ranks and those that they run on."""
    names = {host.node: host.name for host in hosts}
    observed = hosts_of_ranks(seat, len(plan.ranks), hosts)
    expected = dict(zip(plan.ranks, planned, strict=False))
    for kind, table in plan.groups.items():
        over = [group for group in table if len({observed[rank] for rank in group}) > 1]
        known = [group for group in table if all(expected.get(rank) is not None for rank in group)]
        inside = [group for group in known if len({expected[rank] for rank in group}) == 1]
        surprising = [group for group in over if group in inside]
        if surprising:
            severity: Weight = "error" if kind in BESIDE_EACH_OTHER else "warning"
            where = _where(surprising[0], observed, names)
            message = f"{kind} {_groups(surprising)}: planned inside of a node, observed over {where}"
            advice = "give each node the ranks that the manifest plans for it"
            yield Observation("crosses-nodes", severity, "", message, advice)
        elif over:
            message = f"{kind} {_groups(over)}: over {_where(over[0], observed, names)}"
            yield Observation("crosses-nodes", "note", "", message + (", as planned" if known else ""))
        elif len(known) > len(inside):
            split = [group for group in known if group not in inside]
            message = f"{kind} {_groups(split)}: planned over several nodes, observed inside of one"
            yield Observation("crosses-nodes", "note", "", message, "the link between nodes is not tried by this run")
    yield from _shared_machines(hosts)


def _shared_machines(hosts: Sequence[Host]) -> Iterator[Observation]:
    """Two containers of one machine have its GPUs beside each other, and no memory in common."""
    of_machine: dict[str, list[Host]] = {}
    for host in hosts:
        if host.around.machine:
            of_machine.setdefault(host.around.machine, []).append(host)
    for beside in of_machine.values():
        domains = {host.around.memory_domain for host in beside}
        if len(domains) > 1:
            message = (
                f"nodes {', '.join(str(host.node) for host in beside)} are {len(domains)} containers of one machine: "
                "NCCL cannot use shared memory or CUDA IPC between them"
            )
            yield Observation("one-machine", "warning", "", message, "hostIPC: true, or one pod for each machine")


def _where(group: Group, observed: dict[int, int], names: dict[int, str]) -> str:
    nodes = sorted({observed[rank] for rank in group})
    return "nodes " + " and ".join(f"{node} ({names[node]})" if names.get(node) else str(node) for node in nodes)


def _groups(groups: Sequence[Group]) -> str:
    shown = " ".join("[" + ",".join(map(str, group)) + "]" for group in groups[:4])
    return shown + (f" and {len(groups) - 4} more" if len(groups) > 4 else "")
