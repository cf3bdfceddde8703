"""Programs that run another command, on other nodes or in a container: `srun`, `mpirun`, `ssh`, `apptainer exec`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from shardlint.deployment import Word
from shardlint.findings import Located
from shardlint.findings.records import NamedTuple
from shardlint.manifests._docker_run import after, text_of

Options = Mapping[str, Word]
NO_OPTIONS: Options = MappingProxyType({})


class Wrapper(NamedTuple):
    """How one such program is called."""

    switches: str = ""
    """Long options that take no word; all others do."""
    short_switches: str = ""
    """Letters of those among the short ones."""
    verbs: tuple[str, ...] = ()
    """One of these stands before its options."""
    operands: int = 0
    """Words of its own between its options and the command."""
    joins: bool = False
    """What follows is a text for a shell, whatever number of words it is."""
    image: str = ""
    """The option that names the container's image; `0` where its first operand does."""


_APPTAINER = Wrapper(
    "nv rocm nvccli writable writable-tmpfs fakeroot cleanenv contain containall no-home compat no-init no-privs "
    "keep-privs ipc pid net uts userns no-umask no-eval passphrase disable-cache",
    "ceipuwaC",
    ("exec", "run"),
    operands=1,
    image="0",
)
_MPI = Wrapper(
    "allow-run-as-root oversubscribe report-bindings bind-to-none tag-output merge-stderr-to-stdout nolocal "
    "pernode nooversubscribe verbose quiet",
    "qvl",
)
WRAPPERS: dict[str, Wrapper] = {
    "srun": Wrapper(
        "exclusive overlap unbuffered label wait-all-nodes no-kill overcommit verbose quiet exact whole "
        "container-writable container-mount-home no-container-mount-home container-remap-root "
        "no-container-remap-root container-entrypoint no-container-entrypoint pty spread-job disable-status "
        "no-allocate contiguous immediate preserve-env multi-prog",
        "ulvQksOXZE",
        image="container-image",
    ),
    "mpirun": _MPI,
    "mpiexec": _MPI,
    "apptainer": _APPTAINER,
    "singularity": _APPTAINER,
    "shifter": Wrapper("env-clear", image="image"),
    "ssh": Wrapper("", "46AaCfGgKkMNnqsTtVvXxYy", operands=1, joins=True),
    "tmux": Wrapper("", "dAPDEX", ("new-session", "new", "new-window", "neww"), joins=True),
    "screen": Wrapper("", "dmLURrxADqXO"),
    "chroot": Wrapper(operands=1),
    "cpulimit": Wrapper(),
    "pm2": Wrapper("", "", ("start",), joins=True),
}
_LONG = {
    "N": "nodes", "n": "ntasks", "G": "gpus", "p": "partition", "C": "constraint", "w": "nodelist", "i": "image",
}  # fmt: skip
_CLUSTER = re.compile(r"-[A-Za-z]+")


class Wrapped(NamedTuple):
    """A command without the programs that only run it."""

    start: int
    """Which of its words is the first that is the command's own."""
    names: tuple[str, ...] = ()
    """The programs before it."""
    options: Options = NO_OPTIONS
    """Those of `srun`, by their long names."""
    image: Word | None = None
    joins: bool = False


def unwrapped(words: Sequence[Word]) -> Wrapped:
    """What really runs, and what the programs before it say of where."""
    found = Wrapped(0)
    while found.start < len(words) and not found.joins:
        name = _name(words[found.start])
        wrapper = WRAPPERS.get(name)
        inner = None if wrapper is None else _inside(words, found.start + 1, wrapper)
        if inner is None or inner.start >= len(words):
            break
        options = inner.options if name == "srun" else {}
        found = Wrapped(
            inner.start,
            (*found.names, name),
            {**found.options, **options},
            inner.image or found.image,
            inner.joins,
        )
    return found


def _inside(words: Sequence[Word], place: int, wrapper: Wrapper) -> Wrapped | None:
    """The command behind one program, whose own words begin at a place; None where it runs none."""
    options: dict[str, Word] = {}
    place = _options(words, place, wrapper, options)
    if wrapper.verbs:
        if place >= len(words) or text_of(words[place]) not in wrapper.verbs:
            return None
        place = _options(words, place + 1, wrapper, options)
    operands = words[place : place + wrapper.operands]
    if wrapper.operands:
        place = (
            _options(words, place + wrapper.operands, wrapper, options) if wrapper.joins else place + wrapper.operands
        )
    image = operands[0] if wrapper.image == "0" and operands else options.get(wrapper.image)
    return Wrapped(place, (), options, _image(image), wrapper.joins)


def _options(words: Sequence[Word], place: int, wrapper: Wrapper, found: dict[str, Word]) -> int:
    while place < len(words):
        text = text_of(words[place])
        if text == "--":
            return place + 1
        if not text.startswith("-") or len(text) < 2:
            return place
        name, value, place = _option(words, place, wrapper)
        if value is not None:
            found[name] = value
    return place


def _option(words: Sequence[Word], place: int, wrapper: Wrapper) -> tuple[str, Word | None, int]:
    """The option at a place, its value, and the place after both. Long ones may have one dash (`mpirun -np 2`)."""
    word, text = words[place], text_of(words[place])
    name, equals, _ = text.lstrip("-").partition("=")
    if equals:
        return name, after(word, text.index("=") + 1), place + 1
    if not text.startswith("--"):
        name = _LONG.get(text[1], text[1])
        if _CLUSTER.fullmatch(text) and set(text[1:]) <= set(wrapper.short_switches):
            return name, None, place + 1
        if len(text) > 2 and not _CLUSTER.fullmatch(text):
            return name, after(word, 2), place + 1
    elif name in wrapper.switches.split():
        return name, None, place + 1
    return name, (words[place + 1] if place + 1 < len(words) else None), place + 2


def _name(word: Word) -> str:
    return word.value.rpartition("/")[2] if isinstance(word, Located) else ""


def _image(word: Word | None) -> Word | None:
    """A reference to an image; a file of one (`vllm.sif`) says nothing of its tag."""
    if not isinstance(word, Located):
        return word
    if word.value.startswith("docker://"):
        return after(word, len("docker://"))
    if word.value.startswith(("/", ".")) or word.value.endswith((".sif", ".sqsh", ".simg", ".img")):
        return None
    return word.with_value(word.value.removeprefix("docker:").replace("#", "/", 1))
