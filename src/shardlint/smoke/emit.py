"""The manifest that runs the smoke test where the server will run: its image, GPUs, nodes, network, shared memory.

Nothing is applied. What is emitted carries the manifest that was read, its Secrets left out, and the numbers of its
model, in a ConfigMap, so that every pod tries the same plan.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import yaml

from shardlint.findings.patterns import Pattern
from shardlint.findings.words import counted
from shardlint.smoke.job import PORT
from shardlint.smoke.ray_process import PHASES
from shardlint.smoke.without_secrets import HOLDERS, without_secrets

Kind = Literal["job", "jobset", "lws-init", "rayjob"]
KINDS: tuple[Kind, ...] = ("job", "jobset", "lws-init", "rayjob")

OWN = "shardlint"
"""The folder and the volume of the ConfigMap, unless the pod has such ones."""
START_SECONDS = 1800
"""For pods to be placed, images to be pulled and names to appear, beside the run's own deadlines.

Serving images have some 10 GB: 1000 s at 10 MB/s, and minutes to be unpacked. A run ends by its own deadline, so more
would cost nothing but for pods whose image cannot be pulled at all: these hold their GPUs until then.
"""
KEPT_SECONDS = 3600

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
OF_POD = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "hostNetwork",
    "dnsPolicy",
    "hostIPC",
    "runtimeClassName",
    "schedulerName",
    "priorityClassName",
    "serviceAccountName",
    "imagePullSecrets",
    "resourceClaims",
    "securityContext",
    "volumes",
)
"""What decides on which machine and in which surroundings a pod runs."""
OF_CONTAINER = ("image", "imagePullPolicy", "env", "envFrom", "resources", "volumeMounts", "securityContext")


NO_TEXT = Pattern(r"[-+]?\.?\d[\w.:+-]*|[-+]?\.(inf|nan)|y|yes|n|no|true|false|on|off|null|~|", re.IGNORECASE)
"""What numbers, dates, truths and nothing are written as in YAML 1.1, 1.2 or its readers."""
NO_LABEL = Pattern("[^a-z0-9-]+")
NO_YAML = "the manifest is no plain YAML: render it first, and emit from what is rendered"

NOT_READ = (yaml.YAMLError, RecursionError)
"""Of what is no YAML, and of an object that holds itself by an alias."""


class NotEmitted(ValueError):
    """Why there is no such manifest for a deployment."""


class Served(NamedTuple):
    """The deployment that is to be tried."""

    name: str
    """As shardlint calls it, `Deployment/chat`."""
    manifest: str
    """The text of its file."""
    line: int
    """Where its command stands."""
    nodes: int
    models: Mapping[str, Any]
    """The content of its model's files, as `--models` takes it."""
    deadline_seconds: float


class Emitted(NamedTuple):
    """YAML, and what its reader has to be warned of."""

    text: str
    warnings: tuple[str, ...] = ()


def emitted(kind: Kind, served: Served, image: str | None = None) -> Emitted:
    """The whole text. Raises NotEmitted where the kind cannot hold the deployment."""
    pod = _Pod.of(served, image)
    warnings: list[str] = []
    documents = list(_MAKERS[kind](served, pod, warnings))
    text = "---\n".join(yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=110) for document in documents)
    head = [f"# Tries the layout of {served.name} where it will run: {counted(served.nodes, 'pod')} of its own kind."]
    if image is None:
        head.append(
            "# The image has to hold shardlint, which servers' images do not bring; --image names one that does."
        )
    head += [f"# WARNING: {warning}" for warning in warnings]
    return Emitted("\n".join(head) + "\n" + text, tuple(warnings))


class _Pod(NamedTuple):
    """The serving pod as its manifest has it."""

    document: dict[str, Any]
    spec: dict[str, Any]
    container: dict[str, Any]
    image: str | None

    @classmethod
    def of(cls, served: Served, image: str | None) -> _Pod:
        for document, spec, container in _containers(served.manifest, served.line):
            metadata = _mapping(document.get("metadata"))
            taken_over = (metadata.get("name"), metadata.get("namespace"), image or container.get("image"))
            if any("{{" in str(each) for each in taken_over):
                raise NotEmitted(NO_YAML)  # a template in quotes
            return cls(document, spec, container, image)
        raise NotEmitted(f"{served.name} stands in no pod of Kubernetes whose image and nodes could be taken over")

    @property
    def name(self) -> str:
        """Of what is emitted: a label of DNS (RFC 1035), with room for what is hung on to it, such as `-nodes-0-0`."""
        own = NO_LABEL.sub("-", str(_mapping(self.document.get("metadata")).get("name", "server")).lower()).strip("-")
        own = own if own[:1].isalpha() else f"server-{own}"
        return own[:40].rstrip("-") + "-smoke"

    @property
    def metadata(self) -> dict[str, Any]:
        namespace = _mapping(self.document.get("metadata")).get("namespace")
        return {"name": self.name, **({"namespace": namespace} if namespace else {})}

    def trying(self, words: list[str], name: str = "smoke") -> dict[str, Any]:
        """The container that runs the test in the place of the server."""
        kept = {key: self.container[key] for key in OF_CONTAINER if key in self.container}
        own = {"name": self.volume["name"], "mountPath": self.folder, "readOnly": True}
        mounts = [*_mappings(kept.get("volumeMounts")), own]
        image = {"image": self.image} if self.image else {}
        return {"name": name, **kept, **image, "command": ["python3", "-m", "shardlint"], "args": words} | {
            "volumeMounts": mounts,
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }

    @property
    def folder(self) -> str:
        """Where the ConfigMap is mounted."""
        return "/" + _free(OWN, [path.strip("/").partition("/")[0] for path in _said(self.document, "mountPath")])

    @property
    def volume(self) -> dict[str, Any]:
        return {"name": _free(OWN, [*_said(self.document, "name")]), "configMap": {"name": self.name}}

    @property
    def claimed(self) -> list[str]:
        """The volumes that are no part of the pod: a StatefulSet claims them for each of its own."""
        there = [volume.get("name") for volume in _mappings(self.spec.get("volumes"))]
        mounted = [mount.get("name") for mount in _mappings(self.container.get("volumeMounts"))]
        return [str(name) for name in dict.fromkeys(mounted) if name and name not in there]

    def pod(self, container: dict[str, Any], apart: bool, warnings: list[str]) -> dict[str, Any]:
        """A pod in the same surroundings; those of several nodes on machines of their own."""
        if self.claimed:
            warnings.append(f"not among the volumes of the pod, so empty here: {', '.join(self.claimed)}")
        empty = [{"name": name, "emptyDir": {}} for name in self.claimed]
        volumes = [*_mappings(self.spec.get("volumes")), *empty, self.volume]
        kept = {key: self.spec[key] for key in OF_POD if key in self.spec} | {"volumes": volumes}
        labels = {"app": self.name}
        if apart:
            rule = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
            affinity = _mapping(kept.get("affinity"))
            others = _mapping(affinity.get("podAntiAffinity"))
            rules = [*_mappings(others.get(REQUIRED)), rule]
            kept["affinity"] = {**affinity, "podAntiAffinity": {**others, REQUIRED: rules}}
        return {"metadata": {"labels": labels}, "spec": {**kept, "restartPolicy": "Never", "containers": [container]}}


def _containers(text: str, line: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """The object, the pod and the container around a line, or those that have an alias of what is there."""
    try:
        for root in yaml.compose_all(text, yaml.SafeLoader):
            if root is not None and _covers(root, line):
                for has in (_covers, _has_alias):
                    for held, spec, container in _pods(root, root, line, has):
                        yield _data(held), _data(spec), _data(container)
    except NOT_READ as failure:
        raise NotEmitted(NO_YAML) from failure


def _pods(
    node: yaml.Node, held: yaml.Node, line: int, has: Callable[[yaml.Node, int], bool]
) -> Iterator[tuple[yaml.Node, yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            if has(item, line):
                yield from _pods(item, held, line, has)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == "containers" and isinstance(value, yaml.SequenceNode):
                covering = [item for item in value.value if has(item, line)]
                yield from ((held, node, item) for item in covering[:1])
            elif key.value in HOLDERS and isinstance(value, yaml.SequenceNode):
                for item in value.value:
                    if has(item, line):
                        yield from _pods(item, item, line, has)
            elif has(value, line):
                yield from _pods(value, held, line, has)


def _has_alias(node: yaml.Node, line: int) -> bool:
    """Whether a node that stands around the line is within this one, wherever this one stands."""
    seen: set[int] = set()
    nodes = [node]
    while nodes:
        each = nodes.pop()
        if _covers(each, line):
            return True
        if id(each) not in seen:
            seen.add(id(each))
            nodes += _within(each)
    return False


def _within(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [value for _key, value in node.value]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _covers(node: yaml.Node, line: int) -> bool:
    return bool(node.start_mark.line < line <= node.end_mark.line + 1)


def _data(node: yaml.Node) -> dict[str, Any]:
    loader = yaml.SafeLoader("")
    return _mapping(_without_null(loader.construct_document(node)))


def _without_null(value: Any) -> Any:
    """What is null is, to Kubernetes, as if it were not there."""
    if isinstance(value, dict):
        return {key: _without_null(each) for key, each in value.items() if each is not None}
    return [_without_null(each) for each in value if each is not None] if isinstance(value, list) else value


def _said(data: Any, key: str) -> Iterator[str]:
    """All that is said under a key, at any depth."""
    if isinstance(data, dict):
        yield from [str(data[key])] if key in data else []
    for within in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _said(within, key)


def _free(name: str, taken: Collection[str]) -> str:
    """The name, or the first of those with a number that nothing else has."""
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(each for each in names if each not in taken)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> list[dict[str, Any]]:
    """The objects of a list such as `volumes`."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _job(served: Served, pod: _Pod, warnings: list[str]) -> Iterator[dict[str, Any]]:
    yield _config_map(served, pod)
    if served.nodes > 1:
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": pod.metadata,
            "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": pod.name}},
        }
    spec = _job_spec(served, pod, f"{pod.name}-0.{pod.name}", warnings)
    if served.nodes > 1:
        spec["template"]["spec"]["subdomain"] = pod.name
    yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": pod.metadata, "spec": spec}


def _job_set(served: Served, pod: _Pod, warnings: list[str]) -> Iterator[dict[str, Any]]:
    yield _config_map(served, pod)
    spec = _job_spec(served, pod, f"{pod.name}-nodes-0-0.{pod.name}", warnings)
    kept = spec.pop("ttlSecondsAfterFinished")
    yield {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": pod.metadata,
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "failurePolicy": {"maxRestarts": 0},
            "ttlSecondsAfterFinished": kept,
            "replicatedJobs": [{"name": "nodes", "replicas": 1, "template": {"spec": spec}}],
        },
    }


def _job_spec(served: Served, pod: _Pod, master: str, warnings: list[str]) -> dict[str, Any]:
    words = _words_of_node(served, pod, "$(JOB_COMPLETION_INDEX)", master)
    return {
        "completions": served.nodes,
        "parallelism": served.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "activeDeadlineSeconds": int(START_SECONDS + 2 * served.deadline_seconds),
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        "template": pod.pod(pod.trying(words), served.nodes > 1, warnings),
    }


def _lws_init(served: Served, pod: _Pod, warnings: list[str]) -> Iterator[dict[str, Any]]:
    if pod.document.get("kind") != "LeaderWorkerSet":
        raise NotEmitted(f"{served.name} is no LeaderWorkerSet; --emit job tries it in pods beside it")
    if pod.document["spec"].get("startupPolicy") == "LeaderReady":
        warnings.append(
            "startupPolicy LeaderReady makes the workers only once the leader is ready, and the leader's init "
            "container waits for the workers: they would wait for ever. It is LeaderCreated here"
        )
    yield _config_map(served, pod)
    changed = json.loads(json.dumps(pod.document, default=str))
    changed["spec"]["startupPolicy"] = "LeaderCreated"
    template = changed["spec"]["leaderWorkerTemplate"]
    words = _words_of_node(served, pod, "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)")
    name = _free("try-layout", [*_said(changed, "name")])
    for role in ("leaderTemplate", "workerTemplate"):
        if role in template:
            spec = template[role].setdefault("spec", {})
            before = _mappings(spec.get("initContainers"))
            spec["initContainers"] = [*before, _of_role(spec, pod).trying(words, name)]
            spec["volumes"] = [*_mappings(spec.get("volumes")), pod.volume]
    yield changed


def _of_role(spec: dict[str, Any], pod: _Pod) -> _Pod:
    """The container of the leader or of a worker that has the GPUs."""
    containers = _mappings(spec.get("containers")) or [pod.container]
    with_gpus = [each for each in containers if "gpu" in json.dumps(each.get("resources", {}), default=str)]
    return pod._replace(container=(with_gpus or containers)[0])


def _ray_job(served: Served, pod: _Pod, warnings: list[str]) -> Iterator[dict[str, Any]]:
    yield _config_map(served, pod)
    container = pod.trying([], "ray")
    del container["command"], container["args"]
    worker = pod.pod(container, served.nodes > 1, warnings)
    worker["spec"].pop("restartPolicy")
    head = json.loads(json.dumps(worker, default=str))
    groups = []
    if served.nodes > 1:
        groups = [{"groupName": "nodes", "replicas": served.nodes - 1, "rayStartParams": {}, "template": worker}]
        groups = [{**groups[0], "minReplicas": served.nodes - 1, "maxReplicas": served.nodes - 1}]
    yield {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": pod.metadata,
        "spec": {
            "entrypoint": shlex.join(["python3", "-m", "shardlint", *_words(served, pod), "--launch", "ray"]),
            "shutdownAfterJobFinishes": True,
            "backoffLimit": 0,
            "activeDeadlineSeconds": int(START_SECONDS + PHASES * served.deadline_seconds),
            "rayClusterSpec": {"headGroupSpec": {"rayStartParams": {}, "template": head}, "workerGroupSpecs": groups},
        },
    }


def _words(served: Served, pod: _Pod) -> list[str]:
    files = (f"{pod.folder}/manifest.yaml", "--models", f"{pod.folder}/models.json")
    return ["smoke", *files, "--deployment", served.name, "--deadline", f"{served.deadline_seconds:g}"]


def _words_of_node(served: Served, pod: _Pod, node: str, master: str) -> list[str]:
    seat = ["--nodes", str(served.nodes), "--node-rank", node, "--master", f"{master}:{PORT}"]
    return [*_words(served, pod), *(seat if served.nodes > 1 else ())]


def _config_map(served: Served, pod: _Pod) -> dict[str, Any]:
    try:
        manifest = without_secrets(served.manifest)
    except NOT_READ as failure:
        raise NotEmitted(NO_YAML) from failure
    data = {"manifest.yaml": manifest, "models.json": json.dumps(served.models, indent=1)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": pod.metadata, "data": data}


class _Dumper(yaml.SafeDumper):
    """Texts of several lines stand as they are, nothing is an alias of something before it, and what any version of
    YAML takes for something else than a text is quoted."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else "'" if NO_TEXT.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)

_MAKERS: dict[Kind, Callable[[Served, _Pod, list[str]], Iterator[dict[str, Any]]]] = {
    "job": _job,
    "jobset": _job_set,
    "lws-init": _lws_init,
    "rayjob": _ray_job,
}
