"""What `ray start` says of the cards of its node."""

from __future__ import annotations

import pytest

from shardlint.deployment import Launch
from shardlint.findings import Located, Span, Unknown
from shardlint.servers import ray

AT = Span("serve.sh", 1, 1, 1, 4)


def start(*words: str) -> Launch:
    return Launch("serve.sh", "script", "shell-script", AT, argv=tuple(Located(word, AT, word) for word in words))


@pytest.mark.parametrize(
    ("words", "cards"),
    [
        (("ray", "start", "--head", "--num-gpus=4"), 4),
        (("ray", "start", "--num-gpus", "8", "--head"), 8),
        (("ray", "start", "--head"), None),
        (("ray", "start", "--num-gpus"), None),
        (("ray", "start", "--num-gpus=$GPUS"), None),
    ],
)
def test_the_cards_are_those_of_num_gpus(words: tuple[str, ...], cards: int | None) -> None:
    told = ray.told_cards([start(*words)])
    assert (told and told.value) == cards


def test_a_number_that_is_not_told_is_none() -> None:
    launch = start("ray", "start", "--num-gpus")
    assert ray.told_cards([launch._replace(argv=(*launch.argv, Unknown("set elsewhere", AT)))]) is None
