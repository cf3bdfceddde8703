"""The hub, asked for what one model's repository says: the only place of shardlint that goes over the network.

The library's session is used (its endpoint, token, proxies, certificates and offline mode), not its downloads: those
retry in silence for 23 seconds, read replies of any size and quote the server's words.  Here every question is asked
once, a reply has a limit, and nothing that a server says reaches a message.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from shardlint._version import __version__
from shardlint.findings.records import NamedTuple
from shardlint.front import safetensors
from shardlint.front.in_threads import in_threads
from shardlint.front.models import CONFIG, MOST_BYTES, SIDE_FILES
from shardlint.front.refusals import Question, refusal
from shardlint.report.plain import plain

if TYPE_CHECKING:
    import httpx2

MOST_LISTING_BYTES = 16 * 1024 * 1024  # a repository of 100,000 files
MOST_REDIRECTS = 5
FIRST_READ_BYTES = 100_000  # holds most headers: some 130 bytes a tensor
QUIET = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_VERBOSITY": "error"}

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_PRINTABLE = re.compile(r"[!-~]+")


class HubFailure(Exception):
    """Why the hub did not tell; its text is fit to be shown."""


class Repository(NamedTuple):
    """A model's repository at one commit."""

    model_id: str
    revision: str
    names: frozenset[str]
    """Of the files that it has."""


def slow(host: str, seconds: float) -> HubFailure:
    """What is said of a host that does not answer."""
    return HubFailure(f"{host} does not answer within {seconds:g} s; --timeout SECONDS gives it longer")


class Hub:
    """One hub. Its methods raise HubFailure, and may wait for ever on a resolver or a server that trickles."""

    def __init__(self, patience_seconds: float) -> None:
        endpoint = os.environ.get("HF_ENDPOINT")
        if endpoint is not None and _origin(endpoint) is None:  # some of them the library cannot even be imported with
            raise HubFailure("HF_ENDPOINT is no http or https address")
        os.environ.update(QUIET)  # the library reads them when it is imported
        from huggingface_hub import constants, get_session

        if constants.HF_HUB_OFFLINE:
            raise HubFailure("HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) is set, so no hub is asked")
        self._patience_seconds = patience_seconds
        self._endpoint: str = constants.ENDPOINT
        self.host = _host(self._endpoint)
        self._token = _token()
        self._session: httpx2.Client = get_session()

    def safe(self, text: str) -> str:
        """A text without the token, whatever its case, and without what a terminal would act on."""
        for secret in {self._token, quote(self._token)} - {""}:
            text = re.sub(re.escape(secret), "***", text, flags=re.IGNORECASE)
        return plain(text)

    def repository(self, model_id: str, revision: str | None) -> Repository:
        """The repository at the commit that `revision` (else the default branch) means."""
        at = f"/revision/{quote(revision, safe='')}" if revision else ""
        path = f"/api/models/{model_id}{at}?expand=sha&expand=siblings"
        listing = self._object(path, MOST_LISTING_BYTES, Question(model_id, revision, None))
        commit, siblings = listing.get("sha"), listing.get("siblings")
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit) or not isinstance(siblings, list):
            raise HubFailure(f"{self.host} does not answer as a hub does: no commit, or no list of files")
        return Repository(model_id, commit, frozenset(_names(siblings)))

    def json_files(self, repository: Repository) -> dict[str, dict[str, Any]]:
        """config.json and the side files that the repository has."""
        if CONFIG not in repository.names:
            raise HubFailure(f"the repository has no {CONFIG} at {repository.revision}")
        names = [name for name in (CONFIG, *SIDE_FILES) if name in repository.names]
        return {name: self._object(*_file(repository, name)) for name in names}

    def sizes(self, repository: Repository) -> dict[str, Any] | None:
        """The sizes that the headers of the checkpoint's files state; None where it has no such files."""
        names = safetensors.weight_files(repository.names)
        if not names:
            return None
        try:
            read = in_threads(
                lambda name: self._header_sizes(repository, name), names, patience_seconds=self._patience_seconds
            )
        except TimeoutError:
            raise slow(self.host, self._patience_seconds) from None
        return safetensors.summary(dict(zip(names, read, strict=True)))

    def _header_sizes(self, repository: Repository, name: str) -> dict[str, safetensors.Size]:
        path, _most, question = _file(repository, name)
        try:
            start = self._get(path, FIRST_READ_BYTES, question, only_start=True)
            length = safetensors.header_bytes(start)
            whole = start if length <= len(start) else self._get(path, length, question, only_start=True)
            return safetensors.sizes_in(whole[:length])
        except ValueError:
            raise HubFailure(f"{name} is no safetensors file") from None

    def _object(self, path: str, most_bytes: int, question: Question) -> dict[str, Any]:
        data = self._get(path, most_bytes, question)
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise HubFailure(f"{self.host} answers with no JSON object where it was asked for {question.what}")
        return value

    def _get(self, path: str, most_bytes: int, question: Question, *, only_start: bool = False) -> bytes:
        """What stands at a path of the hub, redirects followed; the token goes to the hub itself and no further."""
        url = self._endpoint + path
        headers = {"User-Agent": f"shardlint/{__version__}", "Accept-Encoding": "identity"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if only_start:
            headers["Range"] = f"bytes=0-{most_bytes - 1}"
        for _ in range(MOST_REDIRECTS):
            answer = self._ask(url, headers, most_bytes, question, only_start)
            if isinstance(answer, bytes):
                return answer
            if _origin(answer) != _origin(self._endpoint):
                headers.pop("Authorization", None)
            url = answer
        raise HubFailure(f"{self.host} points on and on for {question.what}")

    def _ask(self, url: str, headers: Mapping[str, str], most_bytes: int, question: Question, cut: bool) -> bytes | str:
        """The body of a reply, or the address that it points to."""
        host = _host(url)
        try:
            with self._session.stream(
                "GET", url, headers=dict(headers), follow_redirects=False, timeout=self._patience_seconds
            ) as reply:
                if reply.status_code in (301, 302, 303, 307, 308):
                    return _redirect(url, reply.headers.get("location", ""))
                if reply.status_code not in (200, 206):
                    raise HubFailure(refusal(reply.status_code, reply.headers, host, question, bool(self._token)))
                return self._body(reply, most_bytes, host, cut)
        except HubFailure:
            raise
        except Exception as failure:  # of httpx or httpx2, as the library's release has it
            raise self._in_words(failure, host) from None

    def _body(self, reply: httpx2.Response, most_bytes: int, host: str, cut: bool) -> bytes:
        if reply.headers.get("content-encoding", "identity") != "identity":
            raise HubFailure(f"{host} answers in an encoding that was not asked for")
        body = bytearray()
        for piece in reply.iter_raw():
            body += piece
            if len(body) > most_bytes and cut:  # a server that does not know ranges
                break
            if len(body) > most_bytes:
                raise HubFailure(f"{host} answers with more than {most_bytes // 1024 // 1024} MiB")
        if self._token and self._token.encode() in body:
            raise HubFailure(f"{host} answers with the token that it was sent; nothing of the answer is kept")
        return bytes(body[:most_bytes])

    def _in_words(self, failure: Exception, host: str) -> Exception:
        """A failure of the HTTP library; its classes have the same names in httpx and httpx2."""
        kinds = {kind.__name__ for kind in type(failure).__mro__}
        if "TimeoutException" in kinds:
            return slow(host, self._patience_seconds)
        if kinds & {"ConnectError", "ProxyError"}:
            return HubFailure(f"{host} cannot be reached: {failure}")
        if "InvalidURL" in kinds:
            return HubFailure(f"{host} is no address")
        if "TransportError" in kinds:  # its text may quote the server
            return HubFailure(f"the connection to {host} broke off ({type(failure).__name__})")
        return failure


def _token() -> str:
    """The token that the library would send; empty for none."""
    from huggingface_hub import constants, get_token

    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return ""
    try:
        token = get_token() or ""
    except Exception as failure:  # an exchange for a token fails in many ways, and its words may hold secrets
        raise HubFailure(f"there is no token to be had ({type(failure).__name__})") from None
    if token and not _PRINTABLE.fullmatch(token):
        raise HubFailure("the token holds characters that no token has")
    return token


def _names(siblings: Iterable[Any]) -> Iterable[str]:
    for sibling in siblings:
        name = sibling.get("rfilename") if isinstance(sibling, dict) else None
        if isinstance(name, str):
            yield name


def _file(repository: Repository, name: str) -> tuple[str, int, Question]:
    path = f"/{repository.model_id}/resolve/{repository.revision}/{quote(name, safe='')}"
    return path, MOST_BYTES, Question(repository.model_id, repository.revision, name)


def _origin(url: str) -> tuple[str, str, int] | None:
    """What a token is for: scheme, host and port; None for what is no web address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80)


def _host(url: str) -> str:
    """Host and port as written, without a name and password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _redirect(url: str, location: str) -> str:
    try:
        address = urljoin(url, location)
    except ValueError:
        address = ""
    origin = _origin(address)
    if not location or origin is None:
        raise HubFailure(f"{_host(url)} points to no http or https address")
    if url.startswith("https:") and origin[0] == "http":
        raise HubFailure(f"{_host(url)} points from https to http")
    return address
