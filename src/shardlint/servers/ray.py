"""`ray start` before an engine: the nodes of the cluster that it will run on."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Unknown

FROM_ELSEWHERE = "other nodes join the Ray cluster from elsewhere"


def starts_ray(launch: Launch) -> bool:
    """Whether the command starts a node of a Ray cluster."""
    words = _words(launch)
    return words[:2] == ["ray", "start"] or "multi-node-serving.sh" in " ".join(words[:2])


def is_head(launch: Launch) -> bool:
    return any(word in ("--head", "leader") for word in _words(launch)[1:])


def has_workers(starts: Sequence[Launch]) -> bool:
    """Whether a script starts nodes that are not the head."""
    return any(not is_head(start) for start in starts)


def nodes(starts: Sequence[Launch]) -> Maybe[int] | None:
    """How many nodes the commands of one script make: a head and those that name its address; None without Ray.

    Commands in branches are one script for every node: how many run it is not told.
    """
    heads = [start for start in starts if is_head(start)]
    if not starts:
        return None
    if not heads or not has_workers(starts) or any(start.conditional for start in starts):
        return Unknown(FROM_ELSEWHERE, starts[0].at, settle_by="--hardware")
    return Located(1 + len(starts) - len(heads), heads[0].at, "", "derived", "the ray start commands of the script")


def cards_per_node(starts: Sequence[Launch]) -> Maybe[int] | None:
    """The cards of each node; Unknown where the nodes differ, None where they say nothing."""
    counts = [start.gpus_per_pod for start in starts if start.gpus_per_pod is not None]
    numbers = {count.value for count in counts if isinstance(count, Located)}
    if len(numbers) > 1:
        listed = ", ".join(str(number) for number in sorted(numbers, reverse=True))
        return Unknown(f"the nodes have different numbers of cards: {listed}", starts[0].at)
    return counts[0] if counts else None


def told_cards(starts: Sequence[Launch]) -> Located[int] | None:
    """What the first command that says so has for the cards of its node (`--num-gpus=4`)."""
    for start in starts:
        for place, word in enumerate(start.argv):
            flag, equals, value = (word.value if isinstance(word, Located) else "").partition("=")
            if flag != "--num-gpus":
                continue
            following = word if equals else next(iter(start.argv[place + 1 : place + 2]), None)
            number = value if equals else following.value if isinstance(following, Located) else ""
            if number.isdecimal() and isinstance(following, Located):
                return following.with_value(int(number))
    return None


def _words(launch: Launch) -> list[str]:
    words = [word.value if isinstance(word, Located) else word.spelled for word in launch.argv]
    return [words[0].rpartition("/")[2], *words[1:]] if words else []
