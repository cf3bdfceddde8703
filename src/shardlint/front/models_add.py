"""`shardlint models add`: get what a hub says of a model, and keep it in the project."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, TypeVar

from shardlint.front.failures import CannotRun
from shardlint.front.hub import Hub, HubFailure, Repository, slow
from shardlint.front.in_threads import in_threads
from shardlint.front.main import complain, flush, put
from shardlint.front.model_store import ModelStore, id_and_revision
from shardlint.front.models import SIZES_FILE
from shardlint.report.plain import plain

T = TypeVar("T")

FAILED = 2
PATIENCE_SECONDS = 3.5  # so that whoever waits knows after 5 s what is wrong, start and imports included
LEAST_SECONDS = 0.5


def add(words: Sequence[str], patience_seconds: float | None) -> int:
    """Get and keep what a hub says of each model, one after another; 2 where one of them failed."""
    adding = _Adding(ModelStore(), patience_seconds or PATIENCE_SECONDS)
    failures = [word for word in words if not adding.add(word)]
    return FAILED if failures else 0


class _Adding:
    def __init__(self, store: ModelStore, patience_seconds: float) -> None:
        self._store = store
        self._patience_seconds = patience_seconds
        self._hub: Hub | None = None

    def add(self, word: str) -> bool:
        """One model: its files at once, then the sizes of its weights, which may be many requests."""
        try:
            model_id, revision = id_and_revision(word)
            self._store.folder_of(model_id)
            for line in self._steps(model_id, revision):
                put(self._safe(line) + "\n")
                flush()
        except (CannotRun, HubFailure) as failure:
            complain(self._safe(f"{word}: {failure}"))
            return False
        return True

    def _steps(self, model_id: str, revision: str | None) -> Iterator[str]:
        hub, repository, files = self._known_in_time(model_id, revision)
        names = self._store.keep(model_id, repository.revision, files)
        yield f"{model_id} at {repository.revision}: {self._store.folder_of(model_id)} ({', '.join(names)})"
        sizes = hub.sizes(repository)
        if sizes is None:
            yield "  weights: no safetensors files, so their size is not known"
            return
        self._store.keep(model_id, repository.revision, {**files, SIZES_FILE: sizes})
        yield f"  weights: {_in_words(sizes)} ({SIZES_FILE})"

    def _known_in_time(self, model_id: str, revision: str | None) -> tuple[Hub, Repository, dict[str, Any]]:
        """The hub, what it has, and the small files. Raises HubFailure, soon."""
        begun = monotonic()
        if self._hub is None:
            self._hub = self._in_time(lambda _: Hub(self._patience_seconds), begun, "the token's issuer")
        hub = self._hub

        def ask(_: None) -> tuple[Hub, Repository, dict[str, Any]]:
            repository = hub.repository(model_id, revision)
            return hub, repository, hub.json_files(repository)

        return self._in_time(ask, begun, hub.host)

    def _in_time(self, work: Callable[[None], T], begun: float, host: str) -> T:
        left = max(self._patience_seconds - (monotonic() - begun), LEAST_SECONDS)
        try:
            (answer,) = in_threads(work, [None], patience_seconds=left)
            return answer
        except TimeoutError:
            raise slow(host, self._patience_seconds) from None

    def _safe(self, text: str) -> str:
        return self._hub.safe(text) if self._hub else plain(text)


def _in_words(sizes: Mapping[str, Any]) -> str:
    dtypes = ", ".join(f"{dtype} {size['bytes']:,}" for dtype, size in sizes["dtypes"].items())
    files = len(sizes["files"])
    return f"{sizes['total_bytes']:,} bytes in {files} file{'' if files == 1 else 's'}: {dtypes}"
