"""A hub on the loopback interface, in whatever mood a test wants."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class Asked:
    """A request; header names in lower case."""

    path: str
    headers: Mapping[str, str]

    @property
    def token(self) -> str | None:
        return self.headers.get("authorization")


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    silent_seconds: float = 0
    """How long nothing is said."""
    byte_seconds: float = 0
    """How long each byte of the body takes."""


Answer = Callable[[Asked], Reply]


@dataclass(frozen=True)
class Loopback:
    endpoint: str
    asked: list[Asked]

    @property
    def host(self) -> str:
        return self.endpoint.removeprefix("http://")

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]


@contextmanager
def listening(answer: Answer) -> Iterator[Loopback]:
    """A server that answers so until the end of the block."""
    asked: list[Asked] = []
    ended = Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            request = Asked(self.path, {name.lower(): value for name, value in self.headers.items()})
            asked.append(request)
            reply = answer(request)
            ended.wait(reply.silent_seconds)
            try:
                self._send(reply)
            except OSError:  # whoever asked has gone
                self.close_connection = True

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if not reply.byte_seconds:
                self.wfile.write(reply.body)
                return
            for byte in reply.body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if ended.wait(reply.byte_seconds):
                    return

        def log_message(self, *_: object) -> None:
            """Nothing: what is asked is in the list."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Loopback(f"http://127.0.0.1:{server.server_address[1]}", asked)
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def repository(files: Mapping[str, bytes], model_id: str = "org/name", commit: str = COMMIT) -> Answer:
    """A hub that has one model."""

    def answer(asked: Asked) -> Reply:
        path = asked.path.partition("?")[0]
        if path in (f"/api/models/{model_id}", f"/api/models/{model_id}/revision/v1"):
            return as_json({"id": model_id, "sha": commit, "siblings": [{"rfilename": name} for name in files]})
        if path.startswith(f"/api/models/{model_id}/revision/"):
            return refused(404, "RevisionNotFound")
        name = path.removeprefix(f"/{model_id}/resolve/{commit}/")
        if name not in files:
            return refused(404, "EntryNotFound" if name != path else "RepoNotFound")
        return _ranged(files[name], asked.headers.get("range"))

    return answer


def _ranged(body: bytes, wanted: str | None) -> Reply:
    if wanted is None:
        return Reply(200, body)
    start, end = wanted.removeprefix("bytes=").split("-")
    return Reply(206, body[int(start) : int(end) + 1])


def refused(status: int, code: str | None = None, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, b'{"error": "words of the hub"}', named | ({"X-Error-Code": code} if code else {}))


def as_json(value: Any) -> Reply:
    return Reply(200, json.dumps(value).encode())


def safetensors(tensors: Mapping[str, tuple[str, list[int], int]], padding: int = 0) -> bytes:
    """A file's header (and no data): tensors by name, each with dtype, shape and bytes."""
    header, at = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode() + b" " * padding
    return len(text).to_bytes(8, "little") + text
