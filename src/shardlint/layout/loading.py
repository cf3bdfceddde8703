"""How long a server takes until it answers: an estimate, for nobody knows the disk and the line before."""

from __future__ import annotations

from shardlint.layout.overheads import Estimate

START_SECONDS = Estimate(15, 45, 150)
"""Imports, workers, compilation, graphs: from a small model without graphs to a large one with an empty cache."""
READ_BYTES_PER_SECOND = Estimate(5e9, 1e9, 0.2e9)
"""The page cache or several local disks; one disk or a fast share; a slow share."""
DOWNLOAD_BYTES_PER_SECOND = Estimate(1.2e9, 0.3e9, 0.05e9)
"""Lines of 10, of some 2.5 and of 0.5 Gbit/s."""


def loading_seconds(checkpoint_bytes: float, *, downloads: bool) -> Estimate:
    """Seconds from the start of the process until the first request is answered."""
    read = Estimate(*(checkpoint_bytes / speed for speed in READ_BYTES_PER_SECOND))
    fetched = Estimate(*(checkpoint_bytes / speed for speed in DOWNLOAD_BYTES_PER_SECOND))
    whole = START_SECONDS.plus(read)
    return whole.plus(fetched) if downloads else whole
