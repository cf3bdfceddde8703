"""What a hub means when it refuses: one sentence for each case, with the way out."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shardlint.findings.records import NamedTuple

BAD_CREDENTIALS = "Invalid credentials in Authorization header"
DISABLED = "Access to this resource is disabled."


class Question(NamedTuple):
    """What was asked for."""

    model_id: str
    revision: str | None
    file: str | None
    """None: the list of files."""

    @property
    def what(self) -> str:
        return self.file or "its files"


def refusal(status: int, headers: Mapping[str, str], host: str, question: Question, with_token: bool) -> str:
    """Why a hub answers with that status, by its own codes first: 401, 403 and 404 alone mean many things."""
    code, message = headers.get("x-error-code"), headers.get("x-error-message")
    if code == "GatedRepo":
        return _gated(host, question, with_token)
    if code == "RevisionNotFound":
        return f"{host} knows the model, but no revision {question.revision} of it"
    if code == "EntryNotFound":
        return f"the repository has no {question.what} at {question.revision}"
    if message == DISABLED:
        return f"{host} has disabled the model"
    if message == BAD_CREDENTIALS or (status == 401 and with_token and code is None):
        return f"{host} does not accept the token (HTTP {status}): it may be wrong or expired"
    if code == "RepoNotFound" or status in (401, 404):
        return _missing(host, with_token)
    return _by_status(status, headers, host, with_token)


def _by_status(status: int, headers: Mapping[str, str], host: str, with_token: bool) -> str:
    if status == 403:
        return f"{host} forbids it (HTTP 403)" + (": the token may lack the permission" if with_token else "")
    if status == 429:
        hint = "" if with_token else "; with HF_TOKEN set the limit is higher"
        return f"{host} limits the rate of requests (HTTP 429): try again {_when(headers)}{hint}"
    if status >= 500:
        return f"{host} is in trouble (HTTP {status}): try again later"
    return f"{host} answers with HTTP {status}"


def _gated(host: str, question: Question, with_token: bool) -> str:
    if with_token:
        return f"the model is gated, and the token's account has no access: ask for it at {host}/{question.model_id}"
    return f"the model is gated: ask for access at {host}/{question.model_id}, and set HF_TOKEN"


def _missing(host: str, with_token: bool) -> str:
    hidden = "the token's account may not see it" if with_token else "it is private (no token was sent)"
    return f"{host} has no such model, or {hidden}"


def _when(headers: Mapping[str, str]) -> str:
    wait = re.fullmatch(r"\d{1,6}", headers.get("retry-after", "").strip(), re.ASCII)
    rate = re.search(r"\bt\s*=\s*(\d{1,6})\b", headers.get("ratelimit", ""), re.ASCII)
    if wait:
        return f"in {int(wait[0])} s"
    return f"in {int(rate[1])} s" if rate else "later"
