"""Files of the host that a container finds elsewhere: bind mounts of Compose and `docker run`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardlint.findings import Located, Maybe
from shardlint.manifests._objects import text
from shardlint.text.nodes import Mapping, Sequence

if TYPE_CHECKING:
    from shardlint.manifests._compose_service import Service
    from shardlint.manifests._docker_run import DockerRun


def of_service(service: Service) -> dict[str, str]:
    """The bind mounts of a Compose service: paths of the host by paths of the container."""
    entries = service.get("volumes")
    found = [_of_text(word) for word in service.words("volumes")]
    for entry in entries if isinstance(entries, Sequence) else ():
        if isinstance(entry, Mapping):
            found.append(_pair(text(entry.get("source")), text(entry.get("target"))))
    return dict(pair for pair in found if pair is not None)


def of_docker_run(run: DockerRun) -> dict[str, str]:
    """The same of `-v` and `--mount`."""
    found = [_of_text(word) for name in ("volume", "v") for word in run.options.get(name, [])]
    found += [_of_options(word.value) for word in run.options.get("mount", []) if isinstance(word, Located)]
    return dict(pair for pair in found if pair is not None)


def _of_text(word: Maybe[str]) -> tuple[str, str] | None:
    """`./serve.yaml:/config/serve.yaml:ro`."""
    source, _, rest = word.value.partition(":") if isinstance(word, Located) else ("", "", "")
    return _pair(source, rest.partition(":")[0])


def _of_options(text: str) -> tuple[str, str] | None:
    """`type=bind,source=./serve.yaml,target=/config/serve.yaml`."""
    options = dict(_options(text))
    source = options.get("source") or options.get("src", "")
    return _pair(source, options.get("target") or options.get("dst") or options.get("destination", ""))


def _options(text: str) -> Iterator[tuple[str, str]]:
    for option in text.split(","):
        name, _, value = option.partition("=")
        yield name, value


def _pair(source: str, target: str) -> tuple[str, str] | None:
    """A path of the container and that of the host; named volumes hold nothing that is known."""
    return (target.rstrip("/"), source) if source.startswith((".", "/")) and target.startswith("/") else None
