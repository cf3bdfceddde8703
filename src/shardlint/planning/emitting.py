"""A chosen layout as a manifest that starts it: a script, a Kubernetes Deployment, or a LeaderWorkerSet.

Nothing is applied or run.  Each text says in comments why it is as it is, and what its reader has to fill in.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Literal

from shardlint.findings.records import NamedTuple
from shardlint.findings.words import counted
from shardlint.planning.candidates import Candidate
from shardlint.planning.ranking import Ranked

Kind = Literal["command", "kubernetes", "lws"]
KINDS: tuple[Kind, ...] = ("command", "kubernetes", "lws")

MASTER_PORT, DATA_PARALLEL_PORT, SERVING_PORT = 29501, 13345, 8000
SHARED_MEMORY_GIB_PER_GPU = 4
"""vLLM's queues between processes take 0.2 to 0.5 GiB a rank of it, NCCL the rest."""
PROBE_SECONDS = 10
STARTING_MINUTES = 60
"""Before a probe gives up on a start: pulling the image, loading the weights, capturing graphs."""


class Wanted(NamedTuple):
    """What is to be served."""

    model: str
    release: str
    ranked: Ranked
    card: str
    """The card's name; empty where it is not known."""
    max_model_len: int | None
    has_experts: bool
    remarks: tuple[str, ...] = ()
    """What its reader should know of the layout before it is started."""

    @property
    def layout(self) -> Candidate:
        return self.ranked.option.candidate

    @property
    def name(self) -> str:
        """A name that Kubernetes takes, from the model's."""
        folded = re.sub(r"[^a-z0-9]+", "-", self.model.rpartition("/")[2].lower()).strip("-")[:50].strip("-")
        return folded if folded[:1].isalpha() else f"model-{folded}".strip("-")


class NotEmitted(ValueError):
    """Why a layout has no manifest of the kind."""


def emitted(kind: Kind, wanted: Wanted) -> str:
    """The whole text. Raises NotEmitted where the kind cannot hold the layout, or no text can hold the names."""
    for name in (wanted.model, wanted.card):
        if not name.isprintable() or name.startswith("-"):
            raise NotEmitted(f"{name!r} is no name that can stand in a manifest")
    return "\n".join(_MAKERS[kind](wanted)) + "\n"


# A script


def _command(wanted: Wanted) -> Iterator[str]:
    yield "#!/bin/sh"
    yield from _why(wanted)
    if wanted.layout.nodes == 1:
        yield _joined([f"exec vllm serve {shlex.quote(wanted.model)}", *_flags(wanted)])
        return
    yield f"# Start this on each of the {wanted.layout.nodes} nodes: NODE_RANK is 0, 1, ... in turn, HEAD_ADDRESS the"
    yield "# address of the first as the others reach it. The first answers all requests."
    yield ': "${NODE_RANK:?}" "${HEAD_ADDRESS:?}"'
    yield 'if [ "$NODE_RANK" -eq 0 ]; then'
    yield from _indented(2, _script(wanted, "$NODE_RANK", "$HEAD_ADDRESS", follows=False))
    yield "fi"
    yield from _script(wanted, "$NODE_RANK", "$HEAD_ADDRESS", follows=True)


def _script(wanted: Wanted, rank: str, head: str, *, follows: bool) -> Iterator[str]:
    flags = [*_flags(wanted), *_meeting(wanted, rank, head, follows=follows)]
    yield from _joined([f"exec vllm serve {shlex.quote(wanted.model)}", *flags]).split("\n")


def _joined(words: list[str]) -> str:
    return " \\\n  ".join(words)


# Kubernetes


def _kubernetes(wanted: Wanted) -> Iterator[str]:
    yield from _why(wanted)
    pods, wanted = _apart(wanted)
    if wanted.layout.nodes > 1:
        raise NotEmitted(
            f"one engine of this layout takes {wanted.layout.nodes} nodes, and a Deployment's pods are one each"
        )
    yield from (
        "apiVersion: apps/v1",
        "kind: Deployment",
        "metadata:",
        f"  name: {wanted.name}",
        "spec:",
        f"  replicas: {pods}" + ("  # copies of the engine, each on GPUs of its own" if pods > 1 else ""),
        "  selector:",
        f"    matchLabels: {{app: {wanted.name}}}",
        "  template:",
        "    metadata:",
        f"      labels: {{app: {wanted.name}}}",
        "    spec:",
    )
    words = [_yaml(wanted.model), *_flags(wanted)]
    yield from _indented(6, _pod(wanted, ["command: [vllm, serve]", "args:", *(f"  - {word}" for word in words)]))
    yield from _service(wanted)


def _lws(wanted: Wanted) -> Iterator[str]:
    yield from _why(wanted)
    copies, wanted = _apart(wanted)
    hosts = wanted.layout.nodes
    if hosts == 1:
        raise NotEmitted("one engine of this layout takes one node; --emit kubernetes writes a Deployment for it")
    yield from (
        "apiVersion: leaderworkerset.x-k8s.io/v1",
        "kind: LeaderWorkerSet",
        "metadata:",
        f"  name: {wanted.name}",
        "spec:",
        f"  replicas: {copies}" + ("  # copies of the engine, each on nodes of its own" if copies > 1 else ""),
        "  startupPolicy: LeaderCreated  # the ranks meet while they start: no pod may wait for another to be ready",
        "  leaderWorkerTemplate:",
        f"    size: {hosts}  # nodes of one engine",
        "    restartPolicy: RecreateGroupOnPodRestart",
    )
    for role in ("leader", "worker"):
        script = _script(wanted, "$LWS_WORKER_INDEX", "$LWS_LEADER_ADDRESS", follows=role == "worker")
        yield f"    {role}Template:"
        yield "      metadata:"
        yield f"        labels: {{app: {wanted.name}, role: {role}}}"
        yield "      spec:"
        lines = ["command: [/bin/sh, -c]", "args:", "  - |", *_indented(4, script)]
        yield from _indented(8, _pod(wanted, lines, serves=role == "leader"))
    yield from _service(wanted, "role: leader")


def _pod(wanted: Wanted, command: list[str], serves: bool = True) -> Iterator[str]:
    gpus = wanted.layout.gpus_per_node
    where = f" {wanted.card}" if wanted.card else ""
    yield f"# nodeSelector: choose the nodes with{where or ' the right'} GPUs by the labels of your cluster"
    yield "containers:"
    yield "  - name: vllm"
    yield f"    image: vllm/vllm-openai:v{wanted.release}"
    yield from _indented(4, iter(command))
    yield "    resources:"
    yield f'      limits: {{nvidia.com/gpu: "{gpus}"}}'
    if serves:
        yield "    ports:"
        yield f"      - {{name: http, containerPort: {SERVING_PORT}}}"
        failures = STARTING_MINUTES * 60 // PROBE_SECONDS
        yield "    startupProbe:  # a liveness probe alone would end a server that is still loading"
        yield f"      httpGet: {{path: /health, port: {SERVING_PORT}}}"
        yield f"      periodSeconds: {PROBE_SECONDS}"
        yield f"      failureThreshold: {failures}  # {STARTING_MINUTES} minutes"
        yield "    readinessProbe:"
        yield f"      httpGet: {{path: /health, port: {SERVING_PORT}}}"
    yield "    volumeMounts:"
    yield "      - {name: shm, mountPath: /dev/shm}"
    yield "volumes:"
    yield "  - name: shm  # processes of one engine talk through it; the default is 64 MiB"
    yield f"    emptyDir: {{medium: Memory, sizeLimit: {max(1, gpus) * SHARED_MEMORY_GIB_PER_GPU}Gi}}"


def _service(wanted: Wanted, role: str = "") -> Iterator[str]:
    selector = f"app: {wanted.name}" + (f", {role}" if role else "")
    yield from (
        "---",
        "apiVersion: v1",
        "kind: Service",
        "metadata:",
        f"  name: {wanted.name}-http  # not vllm: it would set VLLM_PORT in every pod",
        "spec:",
        f"  selector: {{{selector}}}",
        "  ports:",
        f"    - {{port: 80, targetPort: {SERVING_PORT}}}",
    )


def _indented(by: int, lines: Iterator[str]) -> Iterator[str]:
    yield from (" " * by + line for line in lines)


def _yaml(text: str) -> str:
    """A scalar that is read as text: `true`, `null` or `1e3` would not be without quotes."""
    return text if re.fullmatch(r"[A-Za-z][\w.-]*/[\w./-]+", text, re.ASCII) else json.dumps(text, ensure_ascii=False)


# What all of them say


def _why(wanted: Wanted) -> Iterator[str]:
    layout = wanted.layout
    yield f"# {wanted.model} on {counted(layout.world_size, 'GPU')}: {wanted.ranked.why}."
    requests = wanted.ranked.option.requests
    if requests is not None and wanted.max_model_len:
        held = f"{requests.likely} ({requests.low} to {requests.high})"
        yield f"# The KV cache likely holds {held} requests of {wanted.max_model_len} tokens at once."
    yield from (f"# {remark}." for remark in wanted.remarks)


def _apart(wanted: Wanted) -> tuple[int, Wanted]:
    """How many engines of their own its copies can be, and one of these; copies that share experts are one engine."""
    if wanted.has_experts:
        return 1, wanted
    option = wanted.ranked.option
    one = option._replace(candidate=wanted.layout.one_copy)
    return wanted.layout.data_parallel_size, wanted._replace(ranked=wanted.ranked._replace(option=one))


def _flags(wanted: Wanted) -> list[str]:
    """The options that every process of an engine has."""
    layout = wanted.layout
    flags = [f"--tensor-parallel-size={layout.tensor_parallel_size}"]
    if layout.pipeline_parallel_size > 1:
        flags.append(f"--pipeline-parallel-size={layout.pipeline_parallel_size}")
    if layout.data_parallel_size > 1:
        flags.append(f"--data-parallel-size={layout.data_parallel_size}")
    if layout.decode_context_parallel_size > 1:
        flags.append(f"--decode-context-parallel-size={layout.decode_context_parallel_size}")
    if layout.enable_expert_parallel:
        flags.append("--enable-expert-parallel")
    if wanted.max_model_len is not None:
        flags.append(f"--max-model-len={wanted.max_model_len}")
    return flags


def _meeting(wanted: Wanted, rank: str, head: str, *, follows: bool) -> Iterator[str]:
    """How the processes of an engine on several nodes find each other."""
    layout = wanted.layout
    if layout.nnodes > 1:
        yield f"--nnodes={layout.nodes}"
        yield f'--node-rank="{rank}"'
        yield f'--master-addr="{head}"'
        yield f"--master-port={MASTER_PORT}"
    else:
        yield f"--data-parallel-size-local={layout.data_parallel_size_local}"
        yield f'--data-parallel-address="{head}"'
        yield f"--data-parallel-rpc-port={DATA_PARALLEL_PORT}"
        if follows:
            yield f'--data-parallel-start-rank="$(({rank.removeprefix("$")} * {layout.data_parallel_size_local}))"'
    if follows:
        yield "--headless"


_MAKERS: dict[Kind, Callable[[Wanted], Iterator[str]]] = {
    "command": _command,
    "kubernetes": _kubernetes,
    "lws": _lws,
}
