"""A server's command line, environment and image as a Deployment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from shardlint.deployment import KNOBS, Deployment, FlagProblem, Launch, Server, Word
from shardlint.engines.config_file import Files, FlagsIn, in_two, words_of
from shardlint.engines.engine import Engine
from shardlint.engines.flags import Reading, fields
from shardlint.engines.flags import read as read_flags
from shardlint.engines.images import release_in_tag, split
from shardlint.engines.recognising import Start
from shardlint.engines.tables import Era, Flag
from shardlint.engines.values import BadValue, convert
from shardlint.engines.versions import Version
from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.patterns import Pattern

Knobs = dict[str, Maybe[Any]]
KINDS = {"int": "int", "float": "float", "size": "length", "bool": "str", "str": "str"}
"""How a variable of the environment is read that stands for a knob of this type."""


def deployment(
    server: Server,
    engine: Engine,
    start: Start,
    flags_in: FlagsIn,
    release: str | None = None,
    upgrade: str | None = None,
) -> Deployment:
    """All that one server was told, by the flags of `release` where it does not say. Nothing unwritten is filled in.

    `upgrade` is a release that is taken in the place of the server's own.
    """
    launch = server.primary
    version = engine_version(server, engine)
    if upgrade is not None:
        version = Located(upgrade, origin="given", source="the release to upgrade to")
    told = version.value if isinstance(version, Located) else release
    reading = _command_line(launch, engine, start, told, flags_in)
    given = model(reading, engine, start)
    knobs = {**_object_knobs(reading, engine), **_knobs(reading)}
    from_environment = _environment(launch, engine)
    for name, value in from_environment.items():
        if name != "model":
            knobs.setdefault(name, value)
    return Deployment(
        name=launch.name,
        kind=launch.kind,
        form=launch.form,
        at=launch.at,
        engine=engine.name,
        server=server,
        image_tag=image_tag(launch),
        engine_version=version,
        model=given if given is not None else from_environment.get("model") or _model_in_image(launch, engine),
        knobs=knobs,
        engine_fields={name: value for name, value in fields(reading).items() if f"--{name}" not in engine.model_flags},
        gpus_per_pod=launch.gpus_per_pod,
        gpu=launch.gpu,
        pods=server.pods if server.pods is not None else knobs.get("nnodes"),
        replicas=server.replicas,
        flag_problems=tuple(reading.problems),
        open_words=tuple(reading.open_words),
    )


def _command_line(launch: Launch, engine: Engine, start: Start, version: str | None, flags_in: FlagsIn) -> Reading:
    era = engine.table.era(Version.parse(version) if version is not None else None)
    takes_model = start.command.takes_model
    words = [_renamed(word, start.command.renamed) for word in launch.argv[start.first_flag :]]
    given = in_two(words, engine.file_flags) if engine.parses_file_flags else words
    files = Files(tuple(given), engine.file_flags, flags_in)
    files.entries += launch.settings
    reading = read_flags(files.words, engine.table, era, takes_positional=takes_model)
    if files.entries:
        has_model = bool(reading.positionals or any(flag in reading.values for flag in engine.model_flags))
        together = _with_files(files, engine, start, era, has_model)
        files.problems += _no_model(files, engine, start, has_model)
        reading = read_flags(together, engine.table, era, takes_positional=takes_model)
    texts = (word.value for word in files.words if isinstance(word, Located))
    if start.command.takes_more or not engine.handed_over_by.isdisjoint(texts):
        reading.problems = [problem for problem in reading.problems if not problem.message.startswith(NOT_KNOWN)]
    reading.problems += files.problems
    reading.open_words += files.open_words
    for name in engine.file_flags:
        if (ignored := reading.values.get(name)) is not None:
            reading.problems.append(_ignored(name, ignored))
    return reading


NOT_KNOWN = "unrecognized arguments"


def _renamed(word: Word, names: Mapping[str, str]) -> Word:
    """A word whose flag has another name in the engine, with that name."""
    text = word.value if isinstance(word, Located) else word.spelled
    key, equals, value = text.partition("=")
    name = names.get(key.replace("_", "-")) if names and key.startswith("--") else None
    if name is None:
        return word
    whole = name + equals + value
    return word.with_value(whole) if isinstance(word, Located) else word._replace(spelled=whole)


def _with_files(files: Files, engine: Engine, start: Start, era: Era, has_model: bool) -> list[Word]:
    """The words of the command line behind those of its files; a model that stands alone comes first.

    A subcommand's files are read by the parser above it, which knows no flag that begins with `--no-`.
    """
    entries = files.entries
    if start.command.takes_model and has_model:
        entries = [entry for entry in entries if f"--{entry.key.value}" not in engine.model_flags]
    negates = partial(engine.table.takes, era=era) if start.command.subcommand is None else never
    added = list(words_of(entries, negates))
    first = files.words[0] if files.words else None
    leads = isinstance(first, Unknown) or (first is not None and not first.value.startswith("-"))
    at = 1 if start.command.takes_model and leads else 0
    return [*files.words[:at], *added, *files.words[at:]]


def _no_model(files: Files, engine: Engine, start: Start, has_model: bool) -> Iterator[FlagProblem]:
    named = has_model or any(f"--{entry.key.value}" in engine.model_flags for entry in files.entries)
    if start.command.takes_model and not named:
        message = "No model specified! Please specify model either as a positional argument or in a config file."
        yield FlagProblem(files.entries[0].key, message)


def never(spelling: str) -> bool:
    """Knows no flag."""
    return False


def _ignored(flag: str, value: Maybe[Any]) -> FlagProblem:
    """`--config=FILE`: taken, and not looked at."""
    written = value.value if isinstance(value, Located) else value.spelled
    message = f"{flag}={written} is taken, and the file is not read"
    return FlagProblem(Located(written, value.span, value.spelled), message, ignored=True)


def model(reading: Reading, engine: Engine, start: Start) -> Maybe[str] | None:
    """The model as the engine gets it: by flag, else the word that stands alone."""
    flagged = next((_named(reading.values[flag]) for flag in engine.model_flags if flag in reading.values), None)
    positional = next(iter(reading.positionals), None)
    if flagged is not None and isinstance(positional, Located) and start.command.takes_model:
        reading.problems.append(FlagProblem(positional, f"unrecognized arguments: {positional.value}"))
    return flagged if flagged is not None else _named(positional) if positional is not None else None


_PLACEHOLDER = Pattern(r"__[A-Z][A-Z0-9_]*__|<[^<>]+>|YOUR[-_][A-Z_-]+")
"""Names that somebody is to write something else for."""


def _named(model: Maybe[str]) -> Maybe[str]:
    """An empty name (`--model "${MODEL:-}"`) and a placeholder stand for one that is given elsewhere."""
    if isinstance(model, Located) and not model.value:
        return Unknown("the model's name is empty in this file", model.span, model.spelled, "naming the model")
    if isinstance(model, Located) and _PLACEHOLDER.fullmatch(model.value):
        return Unknown(f"{model.value} is a placeholder", model.span, model.spelled, "naming the model")
    return model


def _knobs(reading: Reading) -> Knobs:
    """The knobs among the flags. A word for "not set" leaves its knob unwritten, save for a length to work out."""
    found: Knobs = {}
    for name, flag in reading.flags.items():
        value = reading.values[name]
        is_unset = isinstance(value, Located) and value.value is None and flag.kind != "length"
        if flag.knob is not None and not is_unset:
            found[flag.knob] = value
    return found


def _object_knobs(reading: Reading, engine: Engine) -> Knobs:
    """The knobs inside flags whose value is a JSON object; one that is unknown makes all of its knobs unknown."""
    found: Knobs = {}
    for flag, keys in engine.object_knobs.items():
        value = reading.values.get(flag)
        for key, knob in keys.items():
            if isinstance(value, Unknown):
                found[knob] = value
            elif value is not None and isinstance(value.value, dict) and isinstance(value.value.get(key), int):
                found[knob] = value.with_value(value.value[key])
    return found


def _environment(launch: Launch, engine: Engine) -> Knobs:
    """The knobs (and the model) that variables set, by themselves or by the name of a profile."""
    profiled = {
        knob: value
        for variable, parts in engine.profiles.items()
        if isinstance(written := launch.env.get(variable), Located)
        for pattern, knob in parts.items()
        if (said := re.search(pattern, written.value)) is not None
        if (value := _variable(variable, knob, written.with_value(said.group(1)), engine)) is not None
    }
    return profiled | {
        target: value
        for variable, target in engine.environment.items()
        if (written := launch.env.get(variable)) is not None
        if (value := _variable(variable, target, written, engine)) is not None
    }


def _model_in_image(launch: Launch, engine: Engine) -> Located[str] | None:
    """The model after which an image is named that serves no other."""
    if not isinstance(launch.image, Located):
        return None
    named = re.search(engine.image_models, split(launch.image.value).repository)
    if named is None:
        return None
    return Located(named["model"], launch.image.span, launch.image.spelled, "derived", "the image's name")


def _variable(variable: str, target: str, written: Maybe[str], engine: Engine) -> Maybe[Any] | None:
    if isinstance(written, Located) and target == "model":
        return written.with_value(written.value.removeprefix("hf://")) if written.value.strip() else None
    if isinstance(written, Unknown):
        return written
    if not written.value.strip():
        return None
    flag = Flag(variable, KINDS[KNOBS[target].type])  # type: ignore[arg-type]
    value = convert(flag, written.value, engine.table, engine.table.era(None))
    if isinstance(value, BadValue):
        return Unknown(f"{written.value!r} is no value for {variable}", written.span, written.spelled)
    return written.with_value(value).respelled(f"{variable}={written.value}")


# Image and version


_WRITTEN_TAG = Pattern(r"[^\s:]:([A-Za-z0-9_][\w.-]*)[\"']?", re.ASCII)
"""The end of an image's reference whose registry or name is not known, and whose tag is."""


def image_tag(launch: Launch) -> Maybe[str] | None:
    """The tag as written; None where there is none (a digest alone, or no image)."""
    image = launch.image
    if isinstance(image, Unknown):
        last = image.spelled.rpartition("/")[2]
        written = _WRITTEN_TAG.search(last[-140:])
        known = written is not None and last.endswith(written[0]) and "/" in image.spelled
        return Located(written[1], image.span, image.spelled) if known and written is not None else image
    if image is None:
        return None
    tag = split(image.value).tag
    return None if tag is None else image.with_value(tag)


def engine_version(server: Server, engine: Engine) -> Maybe[str] | None:
    """The release of the engine: a pin beside the command, else the tag of a known image; Unknown says why not."""
    pinned = next(pins(server, engine), None)
    if pinned is not None:
        return pinned
    image = server.primary.image
    if image is None:
        return None
    if isinstance(image, Unknown):
        return Unknown(f"the image is not known: {image.reason}", image.span, image.spelled, _SETTLE)
    return _release(image, engine)


_SETTLE = "write the release in the image's tag, or say it in the settings"


def _release(image: Located[str], engine: Engine) -> Maybe[str]:
    parts = split(image.value)
    if parts.tag is None:
        return Unknown(f"the image {image.value} has no tag", image.span, image.spelled, _SETTLE)
    if not re.search(engine.release_images, parts.repository):
        reason = f"the tags of {parts.repository} are not known to be releases of {engine.label}"
        return Unknown(reason, image.span, image.spelled, _SETTLE)
    release = release_in_tag(parts.tag)
    if release is None:
        return Unknown(f"the tag {parts.tag} names no release of {engine.label}", image.span, image.spelled, _SETTLE)
    return image.with_value(release)


def pins(server: Server, engine: Engine) -> Iterator[Located[str]]:
    """Releases that installers in the same unit pin (`pip install vllm==0.8.5`), the last one first."""
    if not engine.packages:
        return
    names = "|".join(re.escape(name) for name in engine.packages)
    pattern = re.compile(rf"(?:{names})(?:\[[\w,-]*\])?==v?(?P<release>[\w.]+)(?:\+[\w.]+)?")
    primary = server.primary
    beside = [launch for launch in server.others if launch.unit == primary.unit]
    for launch in [primary, *reversed(beside)]:
        for word in launch.argv:
            match = pattern.fullmatch(word.value.strip("'\"")) if isinstance(word, Located) else None
            if match and isinstance(word, Located) and Version.parse(match["release"]):
                yield word.with_value(match["release"])
