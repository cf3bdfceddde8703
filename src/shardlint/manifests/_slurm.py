"""Slurm batch scripts: what the directives ask for, and the commands that run on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from shardlint.deployment import Launch, Word
from shardlint.findings import Located, Maybe, Problem, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.manifests import _devices, _scripts
from shardlint.text.source import Fragment, Library

_LINE = re.compile(r"[ \t]*(?:(#)([^\n]*))?(?:\n|\Z)")
_OPTION = re.compile(
    r"\s+(?:--([\w-]+)|-([A-Za-z]))(?:[= \t]\s*|(?=[^\s=-]))?(\"[^\"\n]*\"|'[^'\n]*'|(?!-)[^\s#\"'][^\s]*)?"
)
_LONG = {"N": "nodes", "n": "ntasks", "G": "gpus", "C": "constraint", "p": "partition"}
_GRES = re.compile(r"(?:gres/|gres:)?gpu(?::([A-Za-z][\w.-]*))?(?:[:=](\d+|[^,:(]*))?(?:\(.*?\))?")
_TYPED = re.compile(r"(?:([A-Za-z][\w.-]*):)?(\S+)")
_CARD = re.compile(
    r"(?i)(?<![a-z])(?:gb[23]00|gh200|b[23]00|h[12]00|h20|h800|a100|a800|a6000|a5000|a40|a30|a16|a10g?|l40s?|l4|v100|"
    r"p100|t4|mi\d{3}[ax]?|rtx\w*|gaudi\d?)(?!\d)"
)
"""What a partition or a constraint that names a card has in it."""
_RAY = re.compile(r"\bray\s+start\b|run_cluster\.sh|symmetric-run")
_OVER_NODES = frozenset(
    (
        "--nnodes", "--node-rank", "--dist-init-addr", "--headless", "--data-parallel-address",
        "--data-parallel-start-rank", "--master-addr",
    )
)  # fmt: skip
"""Flags of a command that is one of several, a node each."""

Options = Mapping[str, Word]


class _Job(NamedTuple):
    """What a job or one of its steps has."""

    nodes: Maybe[int] | None
    gpus_per_node: Maybe[int] | None
    gpu: Maybe[str] | None


def launches_of(script: Fragment, form: str, library: Library) -> Iterator[Launch | Problem]:
    """The launches of every command of a batch script, on the nodes and cards of its job or of its own `srun`."""
    options = dict(_directives(script))
    job = _job(options, None)
    over_ray = _RAY.search(script.text) is not None
    for launch, step in _scripts.steps_of(script, form, library, _variables(options, job)):
        if isinstance(launch, Problem):
            yield launch
            continue
        here = _job(step, job) if step else job
        given = launch.gpus_per_pod or here.gpus_per_node
        yield launch._replace(
            gpus_per_pod=_devices.usable(given, launch.env),
            gpu=launch.gpu or here.gpu,
            pods=_pods(job, here, launch, over_ray=over_ray),
        )


def _pods(job: _Job, here: _Job, launch: Launch, *, over_ray: bool) -> Maybe[int] | None:
    """The nodes of one engine: all of the job's where its processes find each other, else those of its step.

    A command that is neither runs on the first node, or on each for itself.
    """
    if over_ray:
        return job.nodes
    words = {word.value.partition("=")[0] for word in launch.argv if isinstance(word, Located)}
    if words & _OVER_NODES:
        return here.nodes
    return here.nodes if isinstance(here.nodes, Located) and here.nodes.value == 1 else None


def _directives(script: Fragment) -> Iterator[tuple[str, Word]]:
    """The options of the `#SBATCH` lines before the first command, the last of several last."""
    at = 0
    while at < len(script.text) and (line := _LINE.match(script.text, at)) is not None:
        at = line.end()
        if not line[1] or not line[2].startswith("SBATCH"):
            continue
        begin = line.start(2) + len("SBATCH")
        for option in _OPTION.finditer(script.text, begin, line.end(2)):
            if " #" in script.text[begin : option.start(0) + 1]:
                break
            if option[3] is None:
                continue
            start, end = option.span(3)
            if script.text[start] in "\"'":
                start, end = start + 1, end - 1
            name = option[1] or _LONG.get(option[2], option[2])
            text = script.text[start:end]
            yield name, Located(text, script.span(start, end), text)


def _variables(options: Options, job: _Job) -> dict[str, Word]:
    """What Slurm sets for the script, as far as the directives tell."""
    found: dict[str, Word] = {}
    for names, value in (
        (("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), job.nodes),
        (("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"), job.gpus_per_node),
        (("SLURM_NTASKS", "SLURM_NPROCS"), _number(options, "ntasks")),
        (("SLURM_NTASKS_PER_NODE",), _number(options, "ntasks-per-node")),
        (("SLURM_GPUS_PER_TASK",), _typed(options.get("gpus-per-task"))[1]),
    ):
        if isinstance(value, Located):
            found.update({name: value.with_value(str(value.value)) for name in names})
    return found


def _job(options: Options, around: _Job | None) -> _Job:
    """What the options of a job ask for, or those of a step within one."""
    nodes = _number(options, "nodes") or (around.nodes if around else None)
    gpu, per_node = _cards(options, nodes)
    if around is None:
        gpu = gpu or _named(options.get("constraint")) or _named(options.get("partition"))
        return _Job(nodes, per_node, gpu)
    return _Job(nodes, per_node or around.gpus_per_node, gpu or around.gpu)


def _number(options: Options, name: str) -> Maybe[int] | None:
    """A count; of a range (`2-4`) nothing is certain."""
    word = options.get(name)
    return None if word is None else _devices.count(word)


def _cards(options: Options, nodes: Maybe[int] | None) -> tuple[Maybe[str] | None, Maybe[int] | None]:
    """The kind and the number of a node's cards, by whichever option states them."""
    for name in ("gpus-per-node", "gres"):
        kind, count = _typed(options.get(name)) if name != "gres" else _generic(options.get(name))
        if count is not None:
            return kind, count
    kind, total = _typed(options.get("gpus"))
    if total is not None:
        return kind, _shared(total, nodes, f"--gpus {_spelled(total)}")
    kind, per_task = _typed(options.get("gpus-per-task"))
    if per_task is None:
        return kind, None
    tasks = _number(options, "ntasks-per-node")
    if tasks is not None:
        return kind, _product(per_task, tasks, "tasks of a node")
    all_tasks = _number(options, "ntasks")
    if all_tasks is None:
        return kind, per_task
    total = _product(per_task, all_tasks, "tasks")
    return kind, _shared(total, nodes, f"--gpus-per-task {_spelled(per_task)} x --ntasks {_spelled(all_tasks)}")


def _typed(word: Word | None) -> tuple[Maybe[str] | None, Maybe[int] | None]:
    """`a100:4` or `4`; several kinds are none."""
    if word is None or isinstance(word, Unknown):
        return None, word
    if "," in word.value:
        return None, Unknown("several kinds of GPUs are asked for", word.span, word.spelled)
    match = _TYPED.fullmatch(word.value.strip())
    if match is None:
        return None, _devices.count(word)
    return word.with_value(match[1]) if match[1] else None, _devices.count(word.with_value(match[2]))


def _generic(word: Word | None) -> tuple[Maybe[str] | None, Maybe[int] | None]:
    """`gpu:a100:4,nvme:1`; a name without a number is one."""
    if word is None or isinstance(word, Unknown):
        return None, word
    for entry in word.value.split(","):
        if (match := _GRES.fullmatch(entry.strip())) is not None:
            kind = word.with_value(match[1]) if match[1] else None
            return kind, _devices.count(word.with_value(match[2] or "1"))
    return None, None


def _named(word: Word | None) -> Maybe[str] | None:
    """A partition or constraint that names a card; where it allows several there is no telling."""
    if not isinstance(word, Located):
        return None
    cards = {card.lower() for card in _CARD.findall(word.value)}
    if len(cards) > 1:
        return Unknown("several kinds of GPUs are allowed", word.span, word.spelled, settle_by="--hardware")
    return word if cards else None


def _shared(total: Maybe[int], nodes: Maybe[int] | None, terms: str) -> Maybe[int]:
    """A total over the nodes; Slurm takes one node where none is asked for."""
    if isinstance(total, Unknown):
        return total
    if isinstance(nodes, Unknown):
        return Unknown(f"the number of nodes is not known: {nodes.reason}", total.span, total.spelled)
    among = 1 if nodes is None else nodes.value
    if not among or total.value % among:
        return Unknown(f"{terms} over {among} nodes does not come out even", total.span, total.spelled)
    return (
        total
        if among == 1
        else Located(total.value // among, total.span, total.spelled, "derived", f"{terms} / {among} nodes")
    )


def _product(left: Maybe[int], right: Maybe[int], what: str) -> Maybe[int]:
    for part in (left, right):
        if isinstance(part, Unknown):
            return part
    assert isinstance(left, Located) and isinstance(right, Located)
    if right.value == 1:
        return left
    terms = f"{left.value} x {right.value} {what}"
    return Located(left.value * right.value, left.span, left.spelled, "derived", terms)


def _spelled(count: Maybe[int]) -> str:
    return str(count.value) if isinstance(count, Located) else count.spelled
