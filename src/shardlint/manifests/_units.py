"""What a unit of systemd starts by `ExecStart`, and a quadlet of Podman in its container."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardlint.deployment import Launch
from shardlint.findings import Maybe, Problem, Unknown
from shardlint.manifests import _docker_run, _dotenv, _mounts, _opaque, _scripts, _surroundings
from shardlint.manifests._interpolation import split
from shardlint.manifests._splices import Splice, word_of
from shardlint.manifests._started import started
from shardlint.text import shell, units
from shardlint.text.source import Fragment, Library, Source, beside

_PREFIXES = "@-:+!|"
"""What may stand before the path of a command and says how it is started."""
_SPECIFIER = re.compile(r"%(.)", re.DOTALL)

_OPTIONS = ("PodmanArgs", "AddDevice", "Volume", "ShmSize", "Network", "Tmpfs", "Mount")

Variables = dict[str, Maybe[str]]


class _Unit:
    """A unit file: all values of each key of a section, where an empty one takes those before it away."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._values: dict[tuple[str, str], list[Fragment]] = {}
        for entry in units.entries(source):
            values = self._values.setdefault((entry.section, entry.key), [])
            if entry.value.text:
                values.append(_specified(entry.value))
            else:
                values.clear()

    def values(self, section: str, key: str) -> list[Fragment]:
        return self._values.get((section, key), [])

    def words(self, section: str, key: str) -> list[Fragment]:
        """The words of every value of a key."""
        return [word for value in self.values(section, key) for word in split(value)]

    def environment(self, section: str, library: Library) -> Variables:
        """`Environment`, and over it what the files say that lie beside the unit."""
        found: Variables = {}
        for word in self.words(section, "Environment"):
            name, equals, _ = word.text.partition("=")
            if equals:
                found[name] = word_of(word.part(len(name) + 1, len(word.text)))
        for file in self.words(section, "EnvironmentFile"):
            name = file.text.removeprefix("-").rpartition("/")[2]
            beside_it = library.sibling(beside(self.source.path, name)) if name else None
            if isinstance(beside_it, Source):
                found.update(_dotenv.variables_of(beside_it, {}))
        return found


def launches_of(source: Source, form: str, library: Library) -> Iterator[Launch | Problem]:
    """The launches of every command of the unit, and of its container."""
    unit = _Unit(source)
    name = source.path.replace("\\", "/").rpartition("/")[2]
    base = Launch(f"unit/{name}", "unit", form, source.span(0, 0), unit=name)
    env = unit.environment("Service", library)
    for value in unit.values("Service", "ExecStart"):
        start = len(value.text) - len(value.text.lstrip(_PREFIXES))
        command = value.part(start, len(value.text))
        for launch in _scripts.launches_of(command, form, library, env, base):
            yield _opaque.named(launch) if isinstance(launch, Launch) else launch
    if unit.values("Container", "Image"):
        yield from _container(unit, base, env, library)


def _container(unit: _Unit, base: Launch, service: Variables, library: Library) -> Iterator[Launch]:
    """A quadlet: systemd replaces the service's variables in its words, and Podman starts them in the image."""
    image = unit.values("Container", "Image")[-1]
    words = {key: [word_of(word) for word in unit.words("Container", key)] for key in _OPTIONS}
    podman = _docker_run.options(
        words["PodmanArgs"],
        device=words["AddDevice"],
        volume=words["Volume"],
        shm_size=words["ShmSize"],
        network=words["Network"],
        tmpfs=words["Tmpfs"],
        mount=words["Mount"],
    )
    env = {**unit.environment("Container", library), **podman.environment({}, library.sibling)}
    base = base._replace(
        at=image.span(0, len(image.text)),
        image=word_of(image),
        mounts=_mounts.of_docker_run(podman),
        container=_surroundings.of_run(podman),
    )
    entrypoint, arguments = (
        [text for value in unit.values("Container", key)[-1:] for text in _texts(value, service)]
        for key in ("Entrypoint", "Exec")
    )
    for start in started(entrypoint, arguments, env):
        yield start.within(base)._replace(
            gpus_per_pod=podman.cards(start.env),
            cards=podman.card_names(start.env),
        )


def _texts(value: Fragment, variables: Variables) -> list[Fragment]:
    """The words of a command line with variables replaced, as texts that can be read in turn."""
    return [text for command in shell.read(value, variables).commands[:1] for text in command.texts]


def _specified(value: Fragment) -> Fragment:
    """`%%` is a percent sign; every other specifier is filled in when the unit is loaded."""
    if "%" not in value.text:
        return value
    out, at = Splice(value), 0
    for found in _SPECIFIER.finditer(value.text):
        out.extend(value.part(at, found.start()))
        at = found.end()
        if found[1] == "%":
            out.copy(value, found.start())
        elif found[1].isalpha():
            why = f"systemd fills in {found[0]} when it loads the unit"
            out.hole(value, *found.span(), Unknown(why, value.span(*found.span()), found[0]))
        else:
            out.extend(value.part(*found.span()))
    out.extend(value.part(at, len(value.text)))
    return out.fragment()
