"""Data from another process is taken only where it is of the types that its NamedTuple says."""

from __future__ import annotations

from typing import Any

import pytest

from shardlint.smoke.observations import Observation
from shardlint.smoke.records import Ended
from shardlint.smoke.shapes import checked
from shardlint.smoke.surroundings import Port, read

FULL = read({"NCCL_DEBUG": "INFO"})._replace(ports=(Port("mlx5_0", "4: ACTIVE", "400 Gb/sec"),))


@pytest.mark.parametrize("row", [FULL, Observation("a", "note", "", ""), Ended(1, -9)])
def test_what_is_of_its_types_is_taken(row: Any) -> None:
    assert checked(row) is row


@pytest.mark.parametrize(
    "row",
    [
        FULL._replace(environment=[1]),  # type: ignore[arg-type]
        FULL._replace(environment={"A": 1}),  # type: ignore[dict-item]
        FULL._replace(gpus=("0",)),  # type: ignore[arg-type]
        FULL._replace(open_files="many"),  # type: ignore[arg-type]
        FULL._replace(ports=(("mlx5_0", "4: ACTIVE", "400 Gb/sec"),)),  # type: ignore[arg-type]
        FULL._replace(ports=(Port("mlx5_0", "4: ACTIVE", 400),)),  # type: ignore[arg-type]
        Observation("a", "fatal", "", ""),  # type: ignore[arg-type]
        Observation("a", [], "", ""),  # type: ignore[arg-type]
        Ended("1", 0),  # type: ignore[arg-type]
        Ended(1, True),
    ],
)
def test_what_is_of_another_is_not(row: Any) -> None:
    with pytest.raises(TypeError):
        checked(row)
