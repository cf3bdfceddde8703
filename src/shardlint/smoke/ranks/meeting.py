"""Where ranks find each other: a file on one host, a server on several."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import torch.distributed as dist

from shardlint.smoke.job import Job


def meeting_place(store: str, ranks: tuple[int, ...], timeout_seconds: float) -> dist.Store:
    """The store in which the ranks of one world leave their addresses."""
    where = urlsplit(store)
    if where.scheme == "file":
        return dist.FileStore(f"{where.path}-{ranks[0]}", len(ranks))
    client = dist.TCPStore(
        where.hostname, where.port, is_master=False, timeout=timedelta(seconds=timeout_seconds), wait_for_workers=False
    )
    return dist.PrefixStore(f"{where.path.strip('/')}/{ranks[0]}", client)


def store_of(job: Job) -> dist.TCPStore:
    """The server itself, on the socket that was opened for it. It lives beside the ranks, so none can take it along."""
    where = urlsplit(job.store)
    return dist.TCPStore(
        where.hostname,
        where.port,
        is_master=True,
        timeout=timedelta(seconds=job.deadline_seconds),
        wait_for_workers=False,
        master_listen_fd=job.listening,
        use_libuv=False,  # its other kind takes no open socket in torch 2.6
    )
