"""Pods in the network of their hosts that are not told, or not all of them, by which interface they meet."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Deployment, Launch
from shardlint.findings import Located, Maybe, Problem, Rule

GLOO, NCCL = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"
ONE = Located(1, origin="default")


def applies(deployment: Deployment, nodes: Located[int] = ONE, nnodes: Located[int] = ONE) -> bool:
    several = nodes.value > 1 or nnodes.value > 1
    return several and any(_host_network(launch) for launch in _processes(deployment))


def judge(deployment: Deployment, nodes: Located[int] = ONE, nnodes: Located[int] = ONE) -> Iterator[Problem]:
    processes = _processes(deployment)
    told = {name: [launch for launch in processes if launch.env.get(name) is not None] for name in (GLOO, NCCL)}
    hosts = max(nodes.value, nnodes.value)
    if not told[GLOO]:
        missing = [name for name in (GLOO, NCCL) if not told[name]]
        yield _problem(processes, missing, hosts, "no process of it is told by")
        return
    partly = [name for name in (GLOO, NCCL) if 0 < len(told[name]) < len(processes)]
    lacking = [launch for launch in processes if any(launch not in told[name] for name in partly)]
    if lacking:
        yield _problem(lacking, partly, hosts, f"{_which(lacking)} not told, as others are, by", told[partly[0]])


def _problem(
    lacking: list[Launch], names: list[str], nodes: int, who: str, told: list[Launch] | None = None
) -> Problem:
    place = next((found for launch in lacking if (found := _host_network(launch))), None)
    written = next((value for launch in told or () for name in names if (value := launch.env.get(name))), None)
    return Problem(
        at=place or lacking[0].at,
        message=f"the {nodes} nodes of the server use their hosts' network, and {who} {' and '.join(names)} which "
        "interface to use: where a host has several, the ranks wait for each other on different ones",
        sum=f"{nodes} nodes",
        help=tuple(f"{name}={_value(written) or 'eth0'} in every one" for name in names),
        related=((written, "the interface that the others use"),) if isinstance(written, Located) else (),
    )


def _which(lacking: list[Launch]) -> str:
    roles = {launch.role for launch in lacking} - {""}
    return f"the {'s and '.join(sorted(roles))}s are" if roles else "some of its pods are"


def _value(word: Maybe[str] | None) -> str:
    return word.value if isinstance(word, Located) else ""


def _processes(deployment: Deployment) -> list[Launch]:
    """One launch for each container of the server; the commands of one container share its variables."""
    units = {launch.unit: launch for launch in reversed(deployment.server.others) if launch.container is not None}
    primary = deployment.server.primary
    return [primary, *(launch for unit, launch in units.items() if unit != primary.unit)]


def _host_network(launch: Launch) -> Located[bool] | None:
    return launch.container.host_network if launch.container is not None else None


RULE = Rule("SL810", "unnamed-interface", "nccl-net", "warning", "hangs", judge, applies, engines=("vllm", "sglang"))
