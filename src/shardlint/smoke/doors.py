"""How nodes call each other to see who reaches whom.

A node opens doors: ports of the kernel's choice, as gloo and NCCL do, so that one open port says little. Whoever takes
a call at a door has to say the word that only its node knows, for a proxy in between (a service mesh) takes calls to
anybody.
"""

from __future__ import annotations

import errno
import os
import secrets
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, NamedTuple, Self

from shardlint.smoke.conversation import endpoint, listen_on
from shardlint.smoke.shapes import checked

CALL_SECONDS = 2.0
"""Within a network a connection takes milliseconds; the kernel asks again after one second."""
WORD_SECONDS = 5.0
"""The word is said by a process, which may have to wait for a processor where many ranks start."""
MOST_CALLS = 64
"""At once; the next begins when one has ended."""
WORD_BYTES = 8
PENDING = (errno.EINPROGRESS, errno.EAGAIN)

NOBODY = f"no answer in {CALL_SECONDS:g} s (dropped: a firewall or a missing route)"
REFUSED = "refused (a firewall rejects it, or another host has the same address)"
ANOTHER = "taken by another (a proxy such as that of a service mesh, or a host with the same address)"


class Place(NamedTuple):
    """Where a node listens, and the word by which it is known there."""

    node: int
    address: str
    port: int
    word: str

    @classmethod
    def from_json(cls, data: list[Any]) -> Self:
        """From a list of the fields. Raises ValueError or TypeError for what is none."""
        place = checked(cls(*data))
        ip_address(place.address)
        if not 0 < place.port < 2**16:
            raise ValueError(f"{place.port} is no port")
        return place

    @property
    def endpoint(self) -> str:
        return endpoint(self.address, self.port)


class Called(NamedTuple):
    """What a call to a place came to: how it failed, empty where it was answered."""

    place: Place
    fault: str

    @classmethod
    def from_json(cls, data: list[Any]) -> Self:
        """From a list of the fields. Raises ValueError or TypeError for what is none."""
        place, fault = data
        return cls(Place.from_json(place), str(fault))


class Door:
    """A port on one address of this host, of the kernel's choice. Raises OSError where the address is of no use."""

    def __init__(self, node: int, address: str) -> None:
        self._listening = listen_on(address, 0)
        self._listening.setblocking(False)
        self.place = Place(node, address, self._listening.getsockname()[1], secrets.token_hex(WORD_BYTES))

    def fileno(self) -> int:
        return self._listening.fileno()

    def hear(self) -> None:
        """Tell a caller the word."""
        with suppress(OSError):  # it has gone already
            caller, _address = self._listening.accept()
            with caller:
                caller.sendall(self.place.word.encode())

    def close(self) -> None:
        self._listening.close()


class Call:
    """A call to a place of another node, which never waits: there is something to hear once it is answered or fails."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.fault: str | None = None
        """None while it is not known."""
        self._begun = time.monotonic()
        self._heard = b""
        family = socket.AF_INET6 if ip_address(place.address).version == 6 else socket.AF_INET
        self._connection = socket.socket(family, socket.SOCK_STREAM)
        self._connection.setblocking(False)
        failure = self._connection.connect_ex((place.address, place.port))
        if failure and failure not in PENDING:
            self._end(_fault(failure))

    def fileno(self) -> int:
        return self._connection.fileno()

    def hear(self) -> None:
        """Take the word, or how it failed."""
        try:
            data = self._connection.recv(len(self.place.word))
        except BlockingIOError:
            return
        except OSError as failure:
            self._end(_fault(failure.errno or 0))
            return
        self._heard += data
        if not data or len(self._heard) >= len(self.place.word):
            self._end("" if self._heard == self.place.word.encode() else ANOTHER)

    def is_late(self, now: float) -> bool:
        """Whether nothing is to be expected any more; the connection may be there, and nobody speak."""
        return now >= self._begun + (WORD_SECONDS if self._is_taken() else CALL_SECONDS)

    def give_up(self) -> None:
        """Hear what has come after all, and take no more."""
        self.hear()
        if self.fault is None:
            self._end(ANOTHER if self._is_taken() else NOBODY)

    def _is_taken(self) -> bool:
        try:
            self._connection.getpeername()
        except OSError:
            return False
        return True

    def _end(self, fault: str) -> None:
        self.fault = fault
        self.close()

    def close(self) -> None:
        self._connection.close()


def _fault(number: int) -> str:
    if number == errno.ECONNREFUSED:
        return REFUSED
    if number == errno.ETIMEDOUT:
        return NOBODY
    return f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"


class Calls:
    """One node's part: its own doors, and its calls to those of others."""

    def __init__(self) -> None:
        self.doors: list[Door] = []
        self.called: list[Called] = []
        """The calls that have ended."""
        self._waiting: list[Place] = []
        self._calls: list[Call] = []

    def open(self, node: int, addresses: Sequence[str]) -> None:
        """Open a door at each address. Raises OSError where one is of no use."""
        for address in addresses:
            self.doors.append(Door(node, address))

    @property
    def places(self) -> list[Place]:
        return [door.place for door in self.doors]

    @property
    def speakers(self) -> list[Door | Call]:
        """What is to be listened to."""
        return [*self.doors, *self._calls]

    @property
    def is_done(self) -> bool:
        """All calls have ended."""
        return not self._waiting and not self._calls

    def call(self, places: Sequence[Place]) -> None:
        """Begin to call."""
        self._waiting += places
        self.go_on()

    def go_on(self) -> None:
        """Note the calls that have ended, and begin the next."""
        now = time.monotonic()
        for call in self._calls:
            if call.fault is None and call.is_late(now):
                call.give_up()
        self._note()
        while self._waiting and len(self._calls) < MOST_CALLS:
            self._calls.append(Call(self._waiting.pop(0)))
            self._note()

    def _note(self) -> None:
        self.called += [Called(call.place, call.fault) for call in self._calls if call.fault is not None]
        self._calls = [call for call in self._calls if call.fault is None]

    def close(self) -> None:
        for speaker in self.speakers:
            speaker.close()


def seconds_for(calls: int) -> float:
    """How long so many calls may take: all but the last of them find no connection, the last no word."""
    return CALL_SECONDS * (-(-calls // MOST_CALLS) - 1) + WORD_SECONDS
