"""How the supervisors of several nodes talk to each other: node 0 listens, the others call, JSON lines both ways.

It is a connection of its own, beside those of torch, so it works while every rank waits in a collective. Each side says
at least every `BEAT_SECONDS` that it is there; a cable that is cut closes no connection, only the silence tells.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

from shardlint.smoke.job import Seat

BEAT_SECONDS = 0.5
SEND_SECONDS = 2.0
CALL_SECONDS = 2.0
RETRY_SECONDS = 0.25
MOST_LINE = 2**24
"""Bytes: the report of a large run is the longest that is ever said."""
MOST_HELLO = 2**20
"""Bytes that somebody may say before it is known who it is."""
CHUNK_BYTES = 65536

Message = dict[str, Any]
BEAT: Message = {"say": "beat"}


class Line:
    """One connection to another supervisor."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.own_address = str(connection.getsockname()[0])
        self.begun = self.heard = time.monotonic()
        self.open = True
        self.introduced = False
        """It is known who is at the other end."""
        self._rest = b""
        self._said = 0.0
        connection.settimeout(SEND_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        return self.connection.fileno()

    def say(self, message: Message) -> None:
        """Send one message; a connection that does not take it is closed."""
        self._said = time.monotonic()
        try:
            self.connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self.close()

    def beat(self, now: float) -> None:
        """Say that this side is there, where nothing else was said for a while."""
        if self.open and now - self._said >= BEAT_SECONDS:
            self.say(BEAT)

    def listen(self) -> Iterator[Message]:
        """What has come, without the beats; the connection is closed when the other side has closed it."""
        try:
            data = self.connection.recv(CHUNK_BYTES)
        except OSError:
            data = b""
        if not data or len(self._rest) > (MOST_LINE if self.introduced else MOST_HELLO):
            self.close()
            return
        self.heard = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if not isinstance(message, dict):  # a stranger: a port scan, a browser
                self.close()
                return
            if message != BEAT:
                yield message

    def close(self) -> None:
        if self.open:
            self.open = False
            self.connection.close()


def endpoint(host: str, port: int) -> str:
    """HOST:PORT, as URLs have it: an address of IPv6 is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen_on(host: str, port: int) -> socket.socket:
    """A socket on an address of this host. Raises OSError."""
    try:
        family, _kind, _protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except UnicodeError as failure:  # an empty or too long label
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from failure
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(socket.SOMAXCONN)
    except OSError:
        listening.close()
        raise
    return listening


def call(seat: Seat, until: float) -> Line | str:
    """The connection to node 0, tried until it answers; else what the last try came to."""
    where = endpoint(seat.host, seat.port)
    while True:
        try:
            return Line(socket.create_connection((seat.host, seat.port), timeout=CALL_SECONDS))
        except (socket.gaierror, UnicodeError):  # the latter for what can be no name: an empty or too long label
            why = f"the name {seat.host} does not resolve (a pod's name appears some time after the pod)"
        except TimeoutError:
            why = f"no answer from {where} (dropped: a firewall or a missing route)"
        except ConnectionRefusedError:
            why = f"{where} refuses connections (nothing listens there: node 0 is not up, or the port is another)"
        except OSError as failure:
            why = f"{where} cannot be reached: {failure.strerror or failure}"
        if time.monotonic() + RETRY_SECONDS > until:
            return why
        time.sleep(RETRY_SECONDS)
