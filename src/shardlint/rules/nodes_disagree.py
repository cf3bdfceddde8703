"""Commands of one server on several nodes that do not fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardlint.deployment import Deployment, Launch, NotTold, Told
from shardlint.findings import Located, Problem, Rule, Span
from shardlint.rules._launching import external, hybrid_wanted
from shardlint.rules._words import counted

HERE = ("127.0.0.1", "localhost", "0.0.0.0", "::1")
"""Addresses by which a node means itself."""
SHARED = {
    "tensor_parallel_size": "--tensor-parallel-size",
    "pipeline_parallel_size": "--pipeline-parallel-size",
    "prefill_context_parallel_size": "--prefill-context-parallel-size",
    "decode_context_parallel_size": "--decode-context-parallel-size",
    "data_parallel_size": "--data-parallel-size",
    "nnodes": "--nnodes",
    "enable_expert_parallel": "--enable-expert-parallel",
    "enable_eplb": "--enable-eplb",
    "dtype": "--dtype",
    "quantization": "--quantization",
    "kv_cache_dtype": "--kv-cache-dtype",
    "max_model_len": "--max-model-len",
    "master_port": "--master-port",
    "data_parallel_rpc_port": "--data-parallel-rpc-port",
}
"""What every process of one server has to be told alike."""
Node = tuple[Launch, Told]


def judge(
    deployment: Deployment, told: Told, followers: tuple[Node, ...] = (), nodes: Located[int] | None = None
) -> Iterator[Problem]:
    own = (deployment.server.primary, told)
    for node in (own, *followers):
        yield from _of_one(node)
    for node in followers:
        yield from _unlike(own, node)
    yield from _same_rank((own, *followers))
    yield from _copies_of_a_rank(deployment, told)
    yield from _uncovered(own, followers, nodes)


def _get(told: Told, name: str) -> Located[Any] | None:
    """A value where the file tells it."""
    try:
        return told.located(name)
    except NotTold:
        return None


def _value(told: Told, name: str, otherwise: Any = None) -> Any:
    found = _get(told, name)
    return otherwise if found is None else found.value


def _is_open(told: Told, *names: str) -> bool:
    """Whether the file does not tell one of them."""
    try:
        for name in names:
            told.located(name)
    except NotTold:
        return True
    return False


def _of_one(node: Node) -> Iterator[Problem]:
    """What one command says of its own place that keeps it from the others."""
    launch, told = node
    rank = _get(told, "node_rank")
    if rank is None or _is_open(told, "nnodes", "headless", "master_addr") or _value(told, "nnodes", 1) <= 1:
        return
    nnodes, headless = _value(told, "nnodes"), bool(_value(told, "headless"))
    address = _get(told, "master_addr")
    where = address.value if address is not None else HERE[0]
    if rank.value > 0 and where in HERE:
        yield Problem(
            at=_place(address, rank, launch),
            message=f"node {rank.value} of {nnodes} looks for the first node at {where}, which is itself: all of them "
            "wait for each other",
            sum=f"--node-rank {rank.value}, --master-addr {where}",
            help=("--master-addr with the address of node 0, on every node",),
        )
    try:
        balanced_inside = not external(told) and not hybrid_wanted(told)
    except NotTold:
        return
    if rank.value > 0 and not headless and balanced_inside:
        yield Problem(
            at=_place(rank, None, launch),
            message=f"node {rank.value} of {nnodes} starts an API server of its own, which only node 0 can serve: "
            "without --headless it stops",
            sum=f"--node-rank {rank.value}, no --headless",
            help=("--headless on every node but the first",),
            effect="fails-while-loading",
        )
    if rank.value == 0 and rank.origin == "written" and headless and _value(told, "data_parallel_size", 1) == 1:
        yield Problem(
            at=_get(told, "headless"),
            message=f"node 0 of {nnodes} is headless, and no other node has an API server: nobody answers",
            help=("--headless only on the nodes behind the first",),
        )


def _place(*places: Located[Any] | Launch | None) -> Located[Any] | Span | None:
    """The first that is written somewhere, else the command."""
    for place in places:
        if isinstance(place, Located) and place.span is not None:
            return place
        if isinstance(place, Launch):
            return place.at
    return None


def _unlike(first: Node, other: Node) -> Iterator[Problem]:
    """Settings in which another node differs from the first."""
    for name, flag in SHARED.items():
        if _is_open(first[1], name) or _is_open(other[1], name):
            continue
        mine, theirs = _get(first[1], name), _get(other[1], name)
        one, two = _plain(mine), _plain(theirs)
        if one == two:
            continue
        yield Problem(
            at=_place(theirs, other[0]),
            message=f"two commands of one server are told different things: {flag} is {_said(mine)} on its first "
            f"node and {_said(theirs)} on another, and the ranks do not meet or do not fit each other",
            sum=f"{flag}: {_said(mine)} and {_said(theirs)}",
            help=(f"the same {flag} on every node",),
            related=((mine, "the first node"),),
        )
    mine, theirs = _get(first[1], "master_addr"), _get(other[1], "master_addr")
    known = [place for place in (mine, theirs) if place is not None and place.value not in HERE]
    if len(known) == 2 and known[0].value != known[1].value and _looks_alike(known[0].value, known[1].value):
        yield Problem(
            at=known[1],
            message=f"two nodes of one server look for the first node at different addresses, {known[0].value} and "
            f"{known[1].value}: they never meet",
            sum=f"{known[0].value} is not {known[1].value}",
            help=("the same --master-addr on every node",),
            related=((known[0], "the first node"),),
        )


def _plain(value: Located[Any] | None) -> Any:
    """What counts for the comparison: nothing written and a switch that is off are the same."""
    return None if value is None or value.value in (False, None) else value.value


def _said(value: Located[Any] | None) -> str:
    if value is None:
        return "not written"
    return f"{value.value} (the default)" if value.origin == "default" else str(value.value)


def _looks_alike(one: str, two: str) -> bool:
    """Both are numbers, or both names: a number and a name may mean the same host."""
    return one.replace(".", "").isdigit() == two.replace(".", "").isdigit()


def _same_rank(nodes: tuple[Node, ...]) -> Iterator[Problem]:
    """Two commands with one node rank, or with data parallel ranks in common."""
    seen: dict[int, Located[Any]] = {}
    for launch, told in nodes:
        rank = _get(told, "node_rank")
        if rank is None or rank.origin != "written" or _value(told, "nnodes", 1) <= 1 or launch.conditional:
            continue
        if rank.value in seen and seen[rank.value].span != rank.span:
            yield Problem(
                at=rank,
                message=f"two nodes of one server have the node rank {rank.value}, and another rank is nobody's: "
                "they wait for each other",
                sum=f"--node-rank {rank.value} twice",
                help=("each of the ranks from 0 once",),
                related=((seen[rank.value], "the same rank"),),
            )
        seen.setdefault(rank.value, rank)


def _copies_of_a_rank(deployment: Deployment, told: Told) -> Iterator[Problem]:
    """Copies of one pod whose command has a rank in it: all of them have the same."""
    copies, rank = deployment.replicas, _get(told, "node_rank")
    if not isinstance(copies, Located) or rank is None or rank.origin != "written" or rank.span is None:
        return
    nnodes = _value(told, "nnodes", 1)
    if nnodes > 1 and copies.value == nnodes and deployment.kind in ("Deployment", "ReplicaSet", "StatefulSet", "Job"):
        yield Problem(
            at=rank,
            message=f"{copies.value} copies of one pod all have the node rank {rank.value}, and the server wants the "
            f"ranks 0 to {nnodes - 1} once each: they wait for each other",
            sum=f"{copies.value} x --node-rank {rank.value}",
            help=("a rank from the pod's own index: a StatefulSet's ordinal, or LWS_WORKER_INDEX",),
            related=((copies, f"{copies.value} copies"),),
        )


def _uncovered(first: Node, followers: tuple[Node, ...], nodes: Located[int] | None) -> Iterator[Problem]:
    """Data parallel ranks that nobody starts, or that are started twice, over the pods of one group."""
    names = ("data_parallel_size", "data_parallel_size_local", "nnodes", "data_parallel_rank")
    everyone = (first, *followers)
    if any(_is_open(told, *names) for _, told in everyone) or _value(first[1], "data_parallel_backend") == "ray":
        return
    size = _get(first[1], "data_parallel_size")
    locals_ = [_get(told, "data_parallel_size_local") for _, told in everyone]
    is_cut = size is not None and size.value > 1 and all(one is not None for one in locals_)
    if not is_cut or _value(first[1], "nnodes", 1) > 1 or nodes is None or nodes.origin == "default":
        return
    assert size is not None
    counts = [one.value for one in locals_ if one is not None]
    pods = nodes.value
    if len(counts) > 2 or pods < 2 or (len(counts) == 2 and not first[0].group):
        return
    started = counts[0] + (pods - 1) * counts[-1]
    if started == size.value:
        return
    outcome = "the first waits for the others" if started < size.value else "the first refuses those that are too many"
    yield Problem(
        at=size,
        message=f"{counted(pods, 'pod')} start {counted(started, 'data parallel rank')}, and the server wants "
        f"{size.value}: {outcome}",
        sum=f"{counts[0]} + {pods - 1} x {counts[-1]} = {started}, not {size.value}",
        help=(f"--data-parallel-size {started}",),
        related=((nodes, f"{pods} pods"), (locals_[-1], f"{counts[-1]} on each")),
    )


RULE = Rule("SL816", "nodes-disagree", "multinode-args", "warning", "hangs", judge)
