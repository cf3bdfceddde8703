"""What values of a chart say of the servers that it makes: image, command, arguments, cards, copies.

Charts name these things alike without agreeing on it, and put them at the top, into sections (`model`, `image`, `vllm`)
or into one mapping for each server. A mapping that says enough of an engine by itself is a server; where none below it
does, it is read together with its sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as EnvMapping

from shardlint.deployment import ConfigEntry, Launch, Word
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.manifests import _cards, _devices, _resources, _stated
from shardlint.manifests._environment import environment
from shardlint.manifests._objects import text
from shardlint.manifests._started import started
from shardlint.manifests._values import fragments, value_of, word
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Fragment

_DEEPEST = 8
_MOST = 5_000
"""Mappings that are looked at: aliases inside aliases would double with every level."""
OF_OTHER_CHARTS = frozenset({"servingEngineSpec", "modelArtifacts", "routerSpec"})
"""Keys of charts whose values have a form of their own."""
SECTIONS = frozenset(
    {
        "app", "config", "container", "deployment", "engine", "engineconfig", "gpu", "image", "inference",
        "inferenceserver", "job", "llm", "main", "model", "modelconfig", "modelparameters", "modelserver",
        "parallelism", "pod", "podspec", "runtime", "server", "serving", "settings", "sglang", "spec", "tgi", "vllm",
        "vllmconfig", "worker",
    }
)  # fmt: skip
"""Names of mappings that say a part of one server."""
ONLY_SECTIONS = frozenset(
    {
        "config", "engineconfig", "gpu", "image", "model", "modelconfig", "modelparameters", "parallelism", "settings",
        "vllmconfig",
    }
)  # fmt: skip
"""Those of them that never say all of one."""
ARGUMENTS = frozenset(
    {
        "args", "arguments", "extraargs", "additionalargs", "commandargs", "containerargs", "cliargs",
        "vllmargs", "vllmextraargs", "vllmengineargs", "engineargs", "engineextraargs", "serverargs",
        "serverextraargs", "modelargs", "runtimeargs", "sglangargs", "extraflags", "flags", "vllmflags",
        "extravllmargs", "servingargs",
    }
)  # fmt: skip
COMMANDS = ("command", "startCommand", "customCommand")
ENVIRONMENTS = frozenset({"env", "extraenv", "envvars", "extraenvvars", "environment", "environmentvariables"})
COPIES = ("replicaCount", "replicas")
CARDS = frozenset(
    {
        "gpus",
        "gpucount",
        "numgpus",
        "gpunum",
        "gpurequest",
        "gpurequestcount",
        "gpulimit",
        "requestgpu",
        "accelerators",
        "numaccelerators",
    }
)
CARD_NAMES = frozenset({"gputype", "gpumodel", "gpuname", "gpuproduct", "acceleratortype", "accelerator"})
MODELS = (
    "modelid", "modelurl", "huggingfacename", "huggingfaceid", "huggingfacemodel", "hfmodelid", "hfmodel",
    "hfmodelname", "modelname", "modelpath", "modelrepo", "modelnameorpath", "modelref", "model",
)  # fmt: skip
OF_MODEL = ("id", "huggingfaceName", "hfName", "repo", "repoId", "repository", "hfRepo", "path", "name", "uri", "url")
"""Keys of a mapping that is called `model`."""
STATED = {
    "tensorparallelsize": "tensor-parallel-size", "tensorparallel": "tensor-parallel-size",
    "tensorparallelism": "tensor-parallel-size", "tpsize": "tensor-parallel-size", "tp": "tensor-parallel-size",
    "pipelineparallelsize": "pipeline-parallel-size", "ppsize": "pipeline-parallel-size",
    "pp": "pipeline-parallel-size", "pipelineparallelism": "pipeline-parallel-size",
    "dataparallelsize": "data-parallel-size", "dpsize": "data-parallel-size",
    "enableexpertparallel": "enable-expert-parallel", "maxmodellen": "max-model-len",
    "maxmodellength": "max-model-len", "contextlength": "max-model-len",
    "gpumemoryutilization": "gpu-memory-utilization", "gpumemoryutil": "gpu-memory-utilization",
    "dtype": "dtype", "quantization": "quantization", "kvcachedtype": "kv-cache-dtype",
    "maxnumseqs": "max-num-seqs", "maxnumbatchedtokens": "max-num-batched-tokens", "enforceeager": "enforce-eager",
    "trustremotecode": "trust-remote-code", "enablechunkedprefill": "enable-chunked-prefill",
    "enableprefixcaching": "enable-prefix-caching",
}  # fmt: skip
"""Fields that stand for a flag, in lower case and without dashes and underscores."""
SGLANG_NAMES = {
    "tensor-parallel-size": "tp-size", "pipeline-parallel-size": "pp-size", "data-parallel-size": "dp-size",
    "max-model-len": "context-length",
}  # fmt: skip
"""The same flags where SGLang has another name for them."""
_SIZES = frozenset(STATED) - {"dtype", "quantization", "trustremotecode"}
_ENGINE = re.compile(
    r"(?<![a-z])(?:(?P<vllm>vllm)|(?P<sglang>sglang)|(?P<tgi>text-generation-inference|tgi)|"
    r"(?P<trtllm>tensorrt[-_]?llm|trtllm))(?![a-z])"
)
_PLACEHOLDER = re.compile(r"__\w+__|<[^<>\s]+>")
_OPEN = "arguments of the chart's templates"


def launches_of(root: Mapping, form: str, document: Document) -> Iterator[Launch]:
    """The launches of every server that the values describe."""
    for server in _servers(root, (), (), document, iter(range(_MOST))):
        yield from server.launches(form)


def stated(fields: Node | None) -> Iterator[ConfigEntry]:
    """The fields of a mapping that stand for flags (`maxModelLen: 8192`)."""
    for key, value in fields.items() if isinstance(fields, Mapping) else ():
        flag = STATED.get(_plain(key))
        if flag is not None and isinstance(value, Scalar) and _says(value):
            yield ConfigEntry(Located(flag, value.span, key.text, "derived"), _unquoted(value))


class _Server:
    """A mapping that describes a server, its sections, and the mappings around it, the nearest first."""

    def __init__(self, parts: list[Mapping], path: tuple[str, ...], outer: tuple[Mapping, ...], document: Document):
        self.parts = parts
        self.path = path
        self.outer = outer
        self.document = document
        is_container = len(path) > 1 and path[-2] in ("containers", "controllers")
        is_section = bool(path) and _plain_text(path[-1]) in SECTIONS and not is_container
        self.image = self._image(parts) or (None if is_section else self._image(self._all()))
        self.words = self._named(ARGUMENTS)
        self.command = _first(parts, COMMANDS)
        self.model = self._model()
        self.stated = [entry for part in parts for entry in stated(part)]
        self.engine = self._engine()

    # What it says

    def _all(self) -> Iterator[Mapping]:
        yield from self.parts
        for around in self.outer:
            yield from _sections(around)

    def _named(self, names: frozenset[str], *, around: bool = False) -> list[tuple[Scalar, Node]]:
        """The entries under any of some names, in the order of the file."""
        parts = self._all() if around else iter(self.parts)
        return [(key, value) for part in parts for key, value in part.items() if _plain(key) in names and _says(value)]

    def _image(self, parts: Iterable[Mapping]) -> Maybe[str] | None:
        for part in parts:
            image = part.get("image")
            found = _whole_image(image if isinstance(image, Mapping) else part)
            if found is None and isinstance(image, Scalar) and not image.is_null and text(image):
                tag = part.get("tag") or part.get("imageTag")
                found = _joined(image, tag if isinstance(tag, Scalar) else None)
            if found is not None:
                return found
        return None

    def _model(self) -> Maybe[str] | None:
        """The model's id or path; of several names the one that looks like an id."""
        found = [value_of(node) for node in self._models()]
        with_owner = (value for value in found if isinstance(value, Located) and "/" in value.value)
        chosen = next(with_owner, None) or next(iter(found), None)
        return None if chosen is None else _unless_placeholder(chosen)

    def _models(self) -> Iterator[Scalar]:
        for name in MODELS:
            for _, value in self._named(frozenset({name})):
                if isinstance(value, Scalar):
                    yield value
        models = (part.get("model") for part in self.parts)
        sections = [one for one in models if isinstance(one, Mapping)]
        if len(self.path) > 1 and self.path[-2] in ("models", "modelSpec"):
            sections.append(self.parts[0])
        found = (section.get(name) for section in sections for name in OF_MODEL)
        yield from (node for node in found if isinstance(node, Scalar) and _says(node))

    def _engine(self) -> str:
        """The engine that the image or a key of arguments speaks of, without an image any key; `''` for none."""
        if self.image is not None:
            said = [self.image.value if isinstance(self.image, Located) else self.image.spelled]
            said += [key.text for key, _ in self.words]
        else:
            said = [key.text for key, _ in self.words]
            said += [key.text for part in self.parts for key, value in part.items() if isinstance(value, Mapping)]
            said += reversed(self.path)
        for one in said:
            if (found := _ENGINE.search(one.lower())) is not None:
                return found.lastgroup or ""
        return ""

    @property
    def is_server(self) -> bool:
        """Whether enough is said to be sure that it is one."""
        if self.command is not None:
            return True
        says_more = (
            bool(self.words) or bool(self.model) or any(_SIZES & {entry.key.spelled.lower()} for entry in self.stated)
        )
        if self.engine:
            return says_more or (self.image is not None and self._cards() is not None)
        return bool(self.words) and self.image is not None

    @property
    def is_whole(self) -> bool:
        """Whether it needs nothing of the mapping around it: what to run, and in which image or of which model."""
        if self.path and _plain_text(self.path[-1]) in ONLY_SECTIONS:
            return False
        if self.command is not None:
            return self.image is not None or _mentions_engine(self.command)
        if self.words and (self.image or self.model) is not None:
            return True
        return bool(self.engine and self.image and self.model)

    @property
    def speaks_of_engine(self) -> bool:
        return bool(self.engine) or (self.command is not None and _mentions_engine(self.command))

    # What it starts

    def launches(self, form: str) -> Iterator[Launch]:
        env = self._environment()
        at = self._at()
        name = "/".join(("values", *self.path)) if self.path else f"values {self._own_name()}".rstrip()
        base = Launch(name, "values", form, at, unit=f"{name}:{at.line}", image=self.image, gpu=self._card())
        base = base._replace(replicas=self._copies(), settings=tuple(self._settings()))
        cards = self._cards()
        words = [fragment for _, node in self.words for fragment in _words_in(node, env)]
        for command in started(fragments(self.command, env), words, env, word):
            argv = tuple(_unless_placeholder(one) for one in command.argv)
            if self.command is None:
                argv = self._with_command(argv, at)
            yield base._replace(
                at=command.at or at,
                argv=argv,
                env=command.env,
                entrypoint_of_image=command.entrypoint_of_image and not self._writes_command(command.argv),
                gpus_per_pod=_devices.usable(cards, command.env),
                conditional=command.conditional,
            )

    def _writes_command(self, argv: tuple[Word, ...]) -> bool:
        """Whether the chart has to write the command: nothing else says it, and the arguments are flags."""
        first = argv[0] if argv else None
        are_flags = first is None or isinstance(first, Unknown) or first.value.startswith("-")
        return self.command is None and self.engine in ("vllm", "sglang") and are_flags

    def _with_command(self, argv: tuple[Word, ...], at: Span) -> tuple[Word, ...]:
        rest = Unknown("they are not in this file", at, _OPEN, "helm template CHART -f FILE | shardlint -")
        if not self._writes_command(argv):
            return (*argv, rest)
        if self.engine == "sglang":
            return (*_stated.command(_stated.SGLANG, at), *argv, rest)
        nameless = self.model is None and not any(_names_model(one) for one in argv)
        model = Unknown("the values name no model", at, "MODEL", rest.settle_by) if nameless else None
        return (*_stated.command(_stated.VLLM, at, model), *argv, rest)

    def _settings(self) -> Iterator[ConfigEntry]:
        names = SGLANG_NAMES if self.engine == "sglang" else {}
        if self.command is None:
            for entry in self.stated:
                yield entry._replace(key=entry.key.with_value(names.get(entry.key.value, entry.key.value)))
            for _, node in self.words:
                yield from _stated.entries(node)
        if self.model is not None and self.command is None:
            flag = {"sglang": "model-path", "tgi": "model-id"}.get(self.engine, "model")
            yield ConfigEntry(Located(flag, self.model.span, self.model.spelled, "derived"), self.model)

    def _environment(self) -> EnvMapping[str, Maybe[str]]:
        env: dict[str, Maybe[str]] = {}
        for part in self.parts:
            for key, value in part.items():
                if _plain(key) not in ENVIRONMENTS:
                    continue
                if isinstance(value, Mapping):
                    env |= {name.text: value_of(one) for name, one in value.items() if isinstance(one, Scalar)}
                elif key.text == "env":
                    env |= environment(part, self.document, {})
        return env

    def _cards(self) -> Maybe[int] | None:
        for part in self._all():
            if (asked := _resources.requested(part)) is not None:
                return asked
            for path in (("limits", "gpu"), ("requests", "gpu"), ("gpu",)):
                if isinstance(node := part.get("resources", *path), Scalar) and _says(node):
                    return _devices.count(value_of(node))
        for part in self.parts:
            gpu = part.get("gpu")
            number = gpu.get("count") if isinstance(gpu, Mapping) else gpu
            if isinstance(number, Scalar) and re.fullmatch(r"\d+", text(number)):
                return _devices.count(value_of(number))
        return next((self._of_pod(value) for _, value in self._named(CARDS) if isinstance(value, Scalar)), None)

    def _of_pod(self, number: Scalar) -> Maybe[int]:
        """A number of cards without a resource: that of a pod, unless the server may have several of them."""
        found = value_of(number)
        stages = [entry.value for entry in self.stated if entry.key.value == "pipeline-parallel-size"]
        if any(isinstance(value, Unknown) or value.value not in (1, "1") for value in stages):
            reason = "with pipeline stages the cards of all pods may be meant"
            return Unknown(reason, number.span, number.spelled, "helm template CHART -f FILE | shardlint -")
        return _devices.count(found)

    def _card(self) -> Maybe[str] | None:
        for part in self._all():
            if (named := _cards.named(part)) is not None:
                return named
        for key, value in self._named(CARD_NAMES, around=True):
            if isinstance(value, Scalar) and not text(value).isdigit() and _plain(key):
                return _unless_placeholder(value_of(value))
        return next((name for part in self._all() if (name := _resources.device_name(part)) is not None), None)

    def _copies(self) -> Maybe[int] | None:
        for part in self._all():
            for name in COPIES:
                if isinstance(node := part.get(name), Scalar) and _says(node):
                    return _devices.count(value_of(node))
        return None

    def _at(self) -> Span:
        """Where the server stands: its first argument, its model, its image, else its first key."""
        for node in (self.command, *(node for _, node in self.words)):
            if isinstance(node, Scalar):
                return node.span
            if isinstance(node, Sequence) and len(node):
                return node[0].span
        if self.model is not None and self.model.span is not None:
            return self.model.span
        return next(iter(self.parts[0].items()))[0].span

    def _own_name(self) -> str:
        names = ("fullnameOverride", "nameOverride", "name", "app")
        return next((found for name in names if (found := text(self.parts[0].get(name)))), "")


def _servers(
    here: Mapping, path: tuple[str, ...], outer: tuple[Mapping, ...], document: Document, left: Iterator[int]
) -> Iterator[_Server]:
    """The servers of a mapping: those below it that are whole, else itself with its sections."""
    if next(left, None) is None or _is_off(here) or any(key in here for key in OF_OTHER_CHARTS) or len(path) > _DEEPEST:
        return
    below = list(_below(here, path, outer, document, left))
    whole = [server for server in below if server.is_whole]
    if any(server.speaks_of_engine for server in whole):
        yield from whole
        return
    taken = [part for server in whole for part in server.parts]
    own = _Server([part for part in _sections(here) if part not in taken], path, outer, document)
    if own.is_server:
        yield from (*whole, own)
    else:
        yield from below


def _below(
    here: Mapping, path: tuple[str, ...], outer: tuple[Mapping, ...], document: Document, left: Iterator[int]
) -> Iterator[_Server]:
    for key, value in here.items():
        if _plain(key) in ENVIRONMENTS:
            continue
        if isinstance(value, Mapping):
            yield from _servers(value, (*path, key.text), (here, *outer), document, left)
        elif isinstance(value, Sequence):
            for number, entry in enumerate(value):
                if isinstance(entry, Mapping):
                    name = text(entry.get("name")) or str(number)
                    yield from _servers(entry, (*path, key.text, name), (here, *outer), document, left)


def _sections(here: Mapping) -> list[Mapping]:
    """A mapping, and those in it that say a part of it."""
    found = [here]
    for part in found:  # grows meanwhile
        for key, value in part.items():
            if _plain(key) in SECTIONS and isinstance(value, Mapping) and value not in found and not _is_off(value):
                found.append(value)
    return found


def _is_off(here: Mapping) -> bool:
    return any(text(here.get(name)).lower() in ("false", "no", "off") for name in ("enabled", "enable", "create"))


def _first(parts: Iterable[Mapping], names: Iterable[str]) -> Node | None:
    """What the first of the mappings says under the first of the names."""
    found = (part.get(name) for part in parts for name in names)
    return next((node for node in found if _says(node)), None)


def _says(node: Node | None) -> bool:
    """Whether something is written there."""
    if isinstance(node, Scalar):
        return not node.is_null and bool(node.text.strip())
    return isinstance(node, Mapping | Sequence) and len(node) > 0


def _plain(key: Scalar) -> str:
    return _plain_text(key.text)


def _plain_text(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _words_in(node: Node, env: EnvMapping[str, Maybe[str]]) -> Iterator[Fragment]:
    """Arguments that are written as words; those of a mapping are settings."""
    return iter(()) if isinstance(node, Mapping) else iter(fragments(node, env))


def _unquoted(value: Scalar) -> Located[object] | Unknown:
    """The value of a field: charts print numbers and booleans alike with or without quotes."""
    found = _stated.value_of(value)
    if isinstance(found, Located) and isinstance(found.value, str):
        if re.fullmatch(r"\d+", found.value):
            return found.with_value(int(found.value))
        if found.value.lower() in ("true", "false"):
            return found.with_value(found.value.lower() == "true")
    return found


def _whole_image(image: Mapping) -> Maybe[str] | None:
    """`repository`, with `registry` before it and `tag` behind it, as charts put them together."""
    repository = next((node for name in ("repository", "name") if isinstance(node := image.get(name), Scalar)), None)
    tag = image.get("tag")
    if repository is None or not _says(repository) or not (image.get("repository") or tag):
        return None
    if "/" not in repository.text and not isinstance(image.get("repository"), Scalar):
        return None
    registry = image.get("registry")
    return _joined(
        repository, tag if isinstance(tag, Scalar) else None, registry if isinstance(registry, Scalar) else None
    )


def _joined(repository: Scalar, tag: Scalar | None, registry: Scalar | None = None) -> Maybe[str]:
    found = value_of(repository)
    if isinstance(found, Unknown):
        return found
    whole = found.value
    if registry is not None and _says(registry):
        whole = f"{registry.text.strip()}/{whole}"
    if tag is not None and _says(tag):
        written = value_of(tag)
        if isinstance(written, Unknown):
            return Unknown(written.reason, written.span, f"{whole}:{written.spelled}", written.settle_by)
        whole = f"{whole}@{written.value}" if written.value.startswith("sha256:") else f"{whole}:{written.value}"
    return found.with_value(whole)


def _unless_placeholder(value: Maybe[str]) -> Maybe[str]:
    if isinstance(value, Located) and _PLACEHOLDER.search(value.value):
        return Unknown(f"{value.value} is a placeholder", value.span, value.value)
    return value


def _names_model(word: Word) -> bool:
    written = word.value if isinstance(word, Located) else word.spelled
    return written.partition("=")[0] in ("--model", "--model-path", "--model-id")


def _mentions_engine(command: Node) -> bool:
    return _ENGINE.search(command.spelled.lower()) is not None
