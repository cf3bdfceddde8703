"""The process that imports torch and forks the ranks of this node, as its parent sees it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shardlint.smoke.job import Job
from shardlint.smoke.own_process import OUTPUT, OwnProcess
from shardlint.smoke.records import Record, parse


class RanksProcess(OwnProcess):
    """Neither it nor a rank of it is left when the context is."""

    def __init__(self, folder: Path, listening: int = -1) -> None:
        super().__init__("shardlint.smoke.child", folder, (listening,) if listening >= 0 else ())

    def start(self, job: Job) -> None:
        """Have the ranks started."""
        self.say(job.to_json())

    def listen(self) -> Iterator[Record]:
        """What the process and its ranks have reported."""
        yield from map(parse, self.lines())

    def last_words(self, rank: int | None = None) -> str:
        """The last line that a rank, or the process itself, wrote to its standard error; empty where it wrote none."""
        return self.last_line(OUTPUT if rank is None else f"rank-{rank}")
