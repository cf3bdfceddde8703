"""What an engine is to shardlint: how it is recognised, its flags, and what is true of its releases."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from shardlint.engines.cutting import Cutting
from shardlint.engines.tables import Table, read_table
from shardlint.engines.versions import Version
from shardlint.findings import Unknown
from shardlint.findings.records import NamedTuple

NEVER = r"(?!)"
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Command(NamedTuple):
    """A way to start the engine: a program (`vllm`) or a Python module, with the subcommand where it needs one."""

    name: str
    subcommand: str | None = None
    is_module: bool = False
    takes_model: bool = False
    """The model may stand alone, without a flag."""
    optional_subcommand: bool = False
    takes_more: bool = False
    """It takes flags of its own, or any, beside those of the engine."""
    renamed: Mapping[str, str] = NOTHING
    """Flags of the engine by the names that this program has for them."""


class Engine(NamedTuple):
    """One engine. All but the last four fields say how to recognise and read it."""

    name: str
    label: str
    newest: str
    judged: bool = False
    unjudged: str = ""
    """What of a judged engine is not judged, in words; its ranks are laid out for the rules alone, without bytes."""
    folder: str = ""
    flags_file: str = "flags.json"
    commands: tuple[Command, ...] = ()
    entry: Command | None = None
    """What the entrypoint of its own images is."""
    images: str = NEVER
    """Repositories whose entrypoint is the engine."""
    kin: str = NEVER
    """Repositories that have the engine in them; the flags decide whether they start it."""
    release_images: str = NEVER
    """Repositories whose tags are releases of the engine."""
    marks: frozenset[str] = frozenset()
    """Flags that no other engine has: they tell where the image does not."""
    packages: tuple[str, ...] = ()
    """Python packages that bring it (`pip install vllm==0.8.5` pins the release)."""
    model_flags: tuple[str, ...] = ("--model",)
    environment: Mapping[str, str] = NOTHING
    """Variables that stand for a knob, or for `model`, that no flag sets."""
    profiles: Mapping[str, Mapping[str, str]] = NOTHING
    """Variables that name a profile, and knobs by the pattern of the part of its name that says them."""
    image_models: str = NEVER
    """Repositories that are named after the model in them, which is the group `model`."""
    object_knobs: Mapping[str, Mapping[str, str]] = NOTHING
    """Flags whose value is a JSON object, and which of its keys are knobs."""
    file_flags: tuple[str, ...] = ()
    """Flags that name a file with further flags."""
    handed_over_by: frozenset[str] = frozenset()
    """Flags with which another package takes over the command line, and has flags of its own beside the engine's."""
    parses_file_flags: bool = False
    """Whether its own parser takes them, so that they may be spelled and joined to their value as any other."""
    cut: Callable[[Version], Cutting] | None = None
    pp_support: Callable[[str, Version], bool | Unknown] | None = None
    known_class: Callable[[str, Version], bool | Unknown] | None = None

    @property
    def laid_out(self) -> bool:
        """Whether its ranks, and what they hold, are known."""
        return self.judged and not self.unjudged

    @property
    def table(self) -> Table:
        """Its flags, read on first use."""
        return _table(self.folder, self.flags_file)

    def version(self, release: Version | str | None) -> Version:
        """A release as a Version; the newest where there is none or the text is no number."""
        version = Version.parse(release) if isinstance(release, str) else release
        return version or _parsed(self.newest)

    def default(self, knob: str, version: Version | str | None = None) -> Any:
        """What a knob is when nobody writes it, None where the engine works it out or does not know the knob."""
        return self.defaults(version).get(knob)

    def defaults(self, version: Version | str | None = None) -> Mapping[str, Any]:
        """The same for every knob of which there is such a value."""
        return self.table.defaults(self.table.era(self.version(version)).high)

    def supports_pp(self, architecture: str, version: Version | str | None = None) -> bool | Unknown:
        """Whether a model class (`LlamaForCausalLM`) can be cut into pipeline stages."""
        if self.pp_support is None:
            return Unknown(f"which classes of {self.label} have pipeline parallelism is not recorded")
        return self.pp_support(architecture, self.version(version))

    def knows(self, architecture: str, version: Version | str | None = None) -> bool | Unknown:
        """Whether the engine has a model class of this name."""
        if self.known_class is None:
            return Unknown(f"the model classes of {self.label} are not recorded")
        return self.known_class(architecture, self.version(version))

    def cutting(self, version: Version | str | None = None) -> Cutting:
        """The cutting table. Raises LookupError for an engine that is not judged."""
        if self.cut is None:
            raise LookupError(f"{self.label} has no cutting table")
        return self.cut(self.version(version))


def data_text(folder: str, name: str) -> str:
    """A data file of an engine's folder, as text."""
    with open(os.path.join(folder, "data", name), encoding="utf-8") as file:  # noqa: PTH118, PTH123 pathlib costs 5 ms
        return file.read()


@cache
def _table(folder: str, name: str) -> Table:
    return read_table(data_text(folder, name))


@cache
def _parsed(text: str) -> Version:
    return Version.of(text)
