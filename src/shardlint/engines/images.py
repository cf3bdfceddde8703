"""Container image references: their parts, and the engine's release in a tag."""

from __future__ import annotations

import re

from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple

_RELEASE_TAG = Pattern(
    r"v?(?P<release>\d{1,4}\.\d{1,4}(?:\.\d{1,4}){0,2}(?:\.?post\d{1,3})?(?:\.?rc\d{1,3})?)(?=$|[-_])", re.IGNORECASE
)


class Image(NamedTuple):
    """`registry/path/name:tag@digest`, taken apart. `repository` is all before the tag."""

    repository: str
    tag: str | None
    digest: str | None

    @property
    def name(self) -> str:
        """The last part of the path: `vllm-openai`."""
        return self.repository.rpartition("/")[2]


def split(reference: str) -> Image:
    """Take a reference apart. The colon of a registry's port (`host:5000/name`) begins no tag."""
    named, _, digest = reference.strip().partition("@")
    path, slash, last = named.rpartition("/")
    name, _, tag = last.partition(":")
    return Image(path + slash + name, tag or None, digest or None)


def release_in_tag(tag: str) -> str | None:
    """The release that begins a tag, without its v: `v0.10.0-cu128` -> `0.10.0`; None for `latest`, dates, builds.

    What follows the number must be set off by a hyphen or underscore, or the number is somebody's own
    (`v0.7.3.self.post1`); a second number right after it (`2025-05-27-v1`, `0.14.0-b8.3.1`) is one too.
    """
    match = _RELEASE_TAG.match(tag)
    return match["release"] if match else None
