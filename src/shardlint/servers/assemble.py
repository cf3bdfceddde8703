"""Launches -> servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from shardlint.deployment import Launch, Server
from shardlint.findings import Located, Maybe, Unknown
from shardlint.servers import ray
from shardlint.servers.ranks import Rank, rank_of

Recognise = Callable[[Launch], str | None]


class _Instance:
    """A server in the making."""

    def __init__(self, engine: str, primary: Launch, rank: Rank) -> None:
        self.engine = engine
        self.primary = primary
        self.rank = rank
        self.others: list[Launch] = []

    def add(self, launch: Launch, rank: Rank) -> None:
        """Takes in another process of the instance; the first rank leads."""
        if self.rank.follows and not rank.follows:
            self.others.append(self.primary)
            self.primary, self.rank = launch, rank
        else:
            self.others.append(launch)


def assemble(launches: Sequence[Launch], recognise: Recognise) -> tuple[Server, ...]:
    """The engine instances that the launches of one file make, in the order of the file."""
    servers: list[Server] = []
    for grouped, members in groupby(launches, key=lambda launch: launch.group):
        part = list(members)
        servers.extend(_of_group(part, recognise) if grouped else _of_file(part, recognise))
    return tuple(servers)


def _of_group(members: Sequence[Launch], recognise: Recognise) -> Iterable[Server]:
    """A controller's group is one instance, whatever its pods run: the leader's engine command makes it."""
    engines = [(launch, engine) for launch in members if (engine := recognise(launch)) is not None]
    if not engines:
        return
    leads = [pair for pair in engines if pair[0].role != "worker"] or engines
    primary, engine = next((pair for pair in leads if not rank_of(pair[0]).follows), leads[0])
    pods = (list(launches) for _role, launches in groupby(members, key=lambda launch: launch.role))
    others = tuple(other for pod in pods for other in _at_work(pod, recognise) if other is not primary)
    yield Server(engine, _with_cards(primary, others), others, primary.pods, primary.replicas)


def _at_work(pod: Sequence[Launch], recognise: Recognise) -> Sequence[Launch]:
    """The commands of a pod without those of sidecars: of its containers, those that have cards, an engine or Ray.

    Where no container has any, nothing tells them apart (a worker's own script, on cards that are not written).
    """
    units = {launch.unit for launch in pod if _has_cards(launch) or recognise(launch) or ray.starts_ray(launch)}
    return [launch for launch in pod if launch.unit in units or not units]


def _has_cards(launch: Launch) -> bool:
    cards = launch.gpus_per_pod
    return cards is not None and (isinstance(cards, Unknown) or cards.value > 0)


def _with_cards(primary: Launch, others: Sequence[Launch]) -> Launch:
    """What the leader does not say of its cards, its workers do; numbers that differ are no number."""
    gpu = primary.gpu or next((other.gpu for other in others if other.gpu is not None), None)
    counts = {other.gpus_per_pod.value for other in others if isinstance(other.gpus_per_pod, Located)}
    own = primary.gpus_per_pod
    if not counts or isinstance(own, Unknown) or counts == {own.value if own is not None else None}:
        return primary._replace(gpu=gpu)
    leads = f"the leader has {own.value if own is not None else 'no'} cards"
    workers = " or ".join(str(count) for count in sorted(counts))
    reason = f"{leads} and other pods of its group have {workers}"
    return primary._replace(gpu=gpu, gpus_per_pod=Unknown(reason, own.span if own is not None else primary.at))


def _of_file(launches: Sequence[Launch], recognise: Recognise) -> Iterable[Server]:
    """Commands without a group: each engine is an instance, unless it is a rank of one that stands before it."""
    instances: list[_Instance] = []
    beside: dict[str, list[Launch]] = {}
    for launch in launches:
        engine = recognise(launch)
        if engine is not None:
            _place(instances, engine, launch)
        else:
            beside.setdefault(launch.unit, []).append(launch)
    return [_finished(instance, beside.get(instance.primary.unit, [])) for instance in instances]


def _place(instances: list[_Instance], engine: str, launch: Launch) -> None:
    """Adds a command to the nearest instance before it that it belongs to, else makes one of it."""
    rank = rank_of(launch)
    nearest = [instance for instance in reversed(instances) if instance.engine == engine]
    for belongs in (_is_process_of, _is_follower_of):
        for instance in nearest:
            if belongs(instance, launch, rank):
                instance.add(launch, rank)
                return
    instances.append(_Instance(engine, launch, rank))


def _is_process_of(instance: _Instance, launch: Launch, rank: Rank) -> bool:
    """Ranks of the same model and sizes, or the same command written twice (branches of a script)."""
    if (instance.rank.model, instance.rank.sizes) != (rank.model, rank.sizes):
        return False
    twice = instance.primary.unit == launch.unit and _spelled(instance.primary) == _spelled(launch)
    return twice or instance.rank.follows or rank.follows


def _is_follower_of(instance: _Instance, launch: Launch, rank: Rank) -> bool:
    """A later rank that was given other sizes than its leader, which is a mistake and still its rank."""
    return rank.follows and not instance.rank.follows and instance.rank.model == rank.model


def _spelled(launch: Launch) -> tuple[object, ...]:
    words = tuple(word.value if isinstance(word, Located) else word.spelled for word in launch.argv)
    cards = launch.gpus_per_pod
    return (*words, cards.spelled if cards is not None else "")


def _finished(instance: _Instance, beside: Sequence[Launch]) -> Server:
    """`beside`: the other commands of the unit, such as `ray start` and `pip install`."""
    primary = instance.primary
    starts = [launch for launch in beside if ray.starts_ray(launch)]
    others = (*beside, *instance.others)
    if (
        primary.kind == "StatefulSet"
        and primary.replicas is not None
        and (instance.rank.is_rank or ray.has_workers(starts))
    ):
        one = Located(1, primary.at, "", "derived", "its pods are the ranks of one engine")
        return Server(instance.engine, primary, others, primary.replicas, one)
    pods: Maybe[int] | None = primary.pods or ray.nodes(starts)
    if isinstance(pods, Located) and starts:
        primary = primary._replace(gpus_per_pod=ray.cards_per_node(starts))
    return Server(instance.engine, primary, others, pods, primary.replicas)
