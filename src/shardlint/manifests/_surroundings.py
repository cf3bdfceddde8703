"""What surrounds a command in a container: shared memory, limits, network, probes, and parts of cards.

Kubernetes pods, Compose services and `docker run` say the same things in three ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING, TypeGuard

from shardlint.deployment import Container, Probe
from shardlint.findings import Located, Maybe, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.manifests import _devices, _quantities, _resources
from shardlint.manifests._objects import of_kind_in_file, text
from shardlint.manifests._values import value_of
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence

if TYPE_CHECKING:
    from shardlint.manifests._compose_service import Service
    from shardlint.manifests._docker_run import DockerRun

Nodes = SequenceOf[Node]
SHM = "/dev/shm"
DEFAULT_SHM_BYTES = 64 * 2**20
"""What container runtimes give where nobody asks for more."""
BY_DEFAULT = "the default of container runtimes"
IN_POD = ("emptyDir: {medium: Memory} as a volume that is mounted at /dev/shm",)
IN_SERVICE = ("shm_size: 8gb", "ipc: host")
IN_RUN = ("--shm-size 8g", "--ipc=host")
DEFAULT_SHM: Located[int] = Located(DEFAULT_SHM_BYTES, None, "", "default", BY_DEFAULT)

_PROBE_DEFAULTS = (("initialDelaySeconds", 0), ("periodSeconds", 10), ("failureThreshold", 3))
_SHARES = frozenset(
    (
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "nvidia.com/gpucores",
        "volcano.sh/vgpu-memory",
        "volcano.sh/vgpu-memory-percentage",
        "volcano.sh/vgpu-cores",
    )
)
"""Resources by which schedulers of virtual GPUs (HAMi, Volcano) give a part of each card."""
_SLICED = Pattern(
    r"(?i)cloud\.google\.com/gke-gpu-partition-size=.|cloud\.google\.com/gke-gpu-sharing-strategy=."
    r"|nvidia\.com/gpu\.sharing-strategy=(?!none).|nvidia\.com/gpu\.product=.*(?:-SHARED$|-MIG-\d)"
)
"""Labels of nodes whose cards are cut or shared."""
_SERVICE = Pattern(r"kind[\"']?:\s*[\"']?Service\b")
_ASKS_SERVER = Pattern(r"(?i)curl|wget|https?:|health|localhost|127\.0\.0\.1|/v1/|\bnc\b")


# Pods


def of_pod(*layers: tuple[Node, Node]) -> Container:
    """That of one container, by its entry and the pod spec around it; of several layers the first that says a thing."""
    containers, specs = [container for container, _ in layers], [spec for _, spec in layers]
    limit = _first(containers, "resources", "limits", "memory")
    return Container(
        shared_memory=_of_volumes(containers, specs),
        more_shared_memory=IN_POD,
        memory_limit=_quantities.kubernetes(value_of(limit)) if _is_written(limit) else None,
        unequal_cards=_unequal_cards(containers),
        has_volumes=_has_volumes(containers, specs),
        host_network=_flag(_first(specs, "hostNetwork")),
        process_namespace="host" if _flag(_first(specs, "hostPID")) else "",
        liveness=probe(containers, "livenessProbe"),
        startup=probe(containers, "startupProbe"),
        shared_cards=_shared_cards(containers, specs),
    )


def services(spec: Node, document: Document) -> tuple[Located[str], ...]:
    """The Services of the file whose addresses the pod finds in its environment, unless it wants no links to them."""
    if not document.source.holds(_SERVICE) or text(spec.get("enableServiceLinks")) == "false":
        return ()
    own = document.root.get("metadata", "namespace") if document.root is not None else None
    found = []
    for item in of_kind_in_file(document.source, "Service"):
        named, space = item.get("metadata", "name"), item.get("metadata", "namespace")
        if not isinstance(named, Scalar) or text(item.get("spec", "clusterIP")) == "None":
            continue
        if text(own) in ("", text(space)) or not text(space):
            found.append(Located(named.text, named.span, named.spelled))
    return tuple(found)


def without_host_ipc(container: Container | None, spec: Node, who: str) -> Container | None:
    """The same where a controller leaves `hostIPC` out of the pods that it makes."""
    asked = _flag(spec.get("hostIPC"))
    if container is None or asked is None or container.shared_memory is not None:
        return container
    left_out = Located(DEFAULT_SHM_BYTES, asked.span, asked.spelled, "default", f"{BY_DEFAULT}, for {who}")
    return container._replace(shared_memory=left_out)


def with_operators_memory(container: Container | None) -> Container | None:
    """The same where an operator mounts memory at /dev/shm by itself."""
    if container is None or not _is_default(container.shared_memory):
        return container
    return container._replace(shared_memory=None)


def _is_default(size: Maybe[int] | None) -> bool:
    return isinstance(size, Unknown) or (size is not None and size.origin == "default")


def _first(layers: Nodes, *path: str) -> Node | None:
    return next((node for layer in layers if (node := layer.get(*path)) is not None), None)


def _of_volumes(containers: Nodes, specs: Nodes) -> Maybe[int] | None:
    """Bytes of the volume at /dev/shm, or the runtime's default where there is none and the host's is not shared."""
    mount = _find(containers, "volumeMounts", "mountPath", SHM)
    if mount is not None:
        named = text(mount.get("name"))
        volume = _find(specs, "volumes", "name", named)
        if volume is None:
            return Unknown(f"the volume {named} is not in this file", mount.span, mount.spelled)
        limit = volume.get("emptyDir", "sizeLimit")
        in_memory = text(volume.get("emptyDir", "medium")) == "Memory"
        return _quantities.kubernetes(value_of(limit)) if in_memory and _is_written(limit) else None
    if (shared := _first(specs, "hostIPC")) is not None and text(shared) != "false":
        return None
    lists = [layer.get(key) for key, layers in (("volumeMounts", containers), ("volumes", specs)) for layer in layers]
    for part in (*lists, *containers, *specs):
        if part is not None and part.templated:
            return Unknown("a template may mount /dev/shm", part.span, "", settle_by="render the template first")
    return DEFAULT_SHM


def _has_volumes(containers: Nodes, specs: Nodes) -> bool:
    """Whether a mounted volume outlives the container, or a template may mount one."""
    mounted = [mount for layer in containers for mount in _entries(layer.get("volumeMounts"))]
    if any(layer.templated for layer in (*containers, *specs)):
        return True
    volumes = [_find(specs, "volumes", "name", text(mount.get("name"))) for mount in mounted]
    return any(volume is None or text(volume.get("emptyDir", "medium")) != "Memory" for volume in volumes)


def _entries(node: Node | None) -> Iterator[Node]:
    return iter(node) if isinstance(node, Sequence) else iter(())


def _find(layers: Nodes, name: str, key: str, value: str) -> Node | None:
    """The entry of a list whose key has that value."""
    for layer in layers:
        for entry in _entries(layer.get(name)):
            if (text(entry.get(key)).rstrip("/") or "/") == value:
                return entry
    return None


def probe(containers: Nodes, name: str) -> Probe | None:
    """One probe of a container, with Kubernetes' defaults for what it does not say."""
    holder = next((container for container in containers if isinstance(container.get(name), Mapping)), None)
    key = holder.key(name) if isinstance(holder, Mapping) else None
    written = holder.get(name) if holder is not None else None
    if not isinstance(written, Mapping) or key is None or len(written) == 0:
        return None
    numbers = [_number(written, field, default) for field, default in _PROBE_DEFAULTS]
    unknown = next((number for number in numbers if isinstance(number, Unknown)), None)
    delay, period, failures = (number.value if isinstance(number, Located) else 0 for number in numbers)
    total = Located(delay + period * failures, key.span, key.spelled, "derived")
    command = written.get("exec")
    asks = command is None or _ASKS_SERVER.search(command.spelled) is not None
    return Probe(key.span, name, asks, unknown or total, f"{delay} s + {failures} x {period} s = {total.value} s")


def _number(written: Mapping, field: str, default: int) -> Maybe[int]:
    node = written.get(field)
    if not isinstance(node, Scalar) or node.is_null:
        return Located(default, origin="default", source="the default of Kubernetes")
    return _devices.count(value_of(node))


def _unequal_cards(containers: Nodes) -> tuple[Located[int], Located[int]] | None:
    """Cards in limits and in requests, where they are written in both and differ."""
    upper, lower = (_first(containers, "resources", part) for part in ("limits", "requests"))
    if not isinstance(upper, Mapping) or not isinstance(lower, Mapping):
        return None
    limits, requests = _resources.counted_in(upper), _resources.counted_in(lower)
    if not isinstance(limits, Located) or not isinstance(requests, Located) or limits.value == requests.value:
        return None
    return limits, requests


def _shared_cards(containers: Nodes, specs: Nodes) -> Located[str] | None:
    """What says that the cards are parts of cards: a resource, else the label of the nodes that are selected."""
    holders: list[tuple[Node | None, Callable[[str], object]]] = [
        (_first(containers, "resources", "limits"), is_part_of_card),
        (_first(containers, "resources", "requests"), is_part_of_card),
        (_first(specs, "nodeSelector"), _SLICED.match),
    ]
    for fields, is_part in holders:
        for key, value in fields.items() if isinstance(fields, Mapping) else ():
            if not isinstance(value, Scalar) or value.is_null:
                continue
            name, amount = key.text.strip(), value.text.strip()
            if is_part(f"{name}={amount}"):
                return Located(f"{name}: {amount}", key.span, key.spelled)
    return None


def is_part_of_card(asked: str) -> bool:
    """Whether `NAME=AMOUNT` asks for devices that are less than a card, or for a share of one."""
    name, _, amount = asked.partition("=")
    shares_none = name.endswith(("-percentage", "cores")) and amount in ("100", "0")
    return name.startswith("nvidia.com/mig-") or name.endswith(".shared") or (name in _SHARES and not shares_none)


def _is_written(node: Node | None) -> TypeGuard[Scalar]:
    return isinstance(node, Scalar) and not node.is_null


def _flag(node: Node | None) -> Located[bool] | None:
    """A written `true`; None for everything else."""
    return Located(True, node.span, node.spelled) if node is not None and text(node) == "true" else None


# Compose


def of_service(service: Service) -> Container:
    """That of a Compose service."""
    limit = service.word("deploy", "resources", "limits", "memory") or service.word("mem_limit")
    network, processes = service.word("network_mode"), service.word("pid")
    is_host = isinstance(network, Located) and network.value == "host"
    return Container(
        shared_memory=_of_ipc(
            service.word("ipc"), service.word("shm_size"), [*_mounted(service), *service.words("tmpfs")]
        ),
        more_shared_memory=IN_SERVICE,
        memory_limit=_quantities.docker(limit) if limit is not None else None,
        host_network=network.with_value(True) if isinstance(network, Located) and is_host else None,
        process_namespace=_text(processes),
    )


def _mounted(service: Service) -> Iterator[Maybe[str]]:
    yield from service.words("volumes")
    entries = service.get("volumes")
    for entry in entries if isinstance(entries, Sequence) else ():
        target = service.project.word(entry.get("target"))
        if target is not None:
            yield target


# docker run


def of_run(run: DockerRun) -> Container:
    """That of `docker run` and its kin."""
    places = [word for name in ("volume", "v", "mount", "tmpfs") for word in run.options.get(name, [])]
    limit, network = run.last("memory") or run.last("m"), run.last("network") or run.last("net")
    is_host = isinstance(network, Located) and network.value == "host"
    return Container(
        shared_memory=_of_ipc(run.last("ipc"), run.last("shm-size"), places, run.open_options),
        more_shared_memory=IN_RUN,
        memory_limit=_quantities.docker(limit) if limit is not None else None,
        host_network=network.with_value(True) if isinstance(network, Located) and is_host else None,
        process_namespace=_text(run.last("pid")),
    )


def _of_ipc(
    ipc: Maybe[str] | None, size: Maybe[str] | None, places: SequenceOf[Maybe[str]], more: SequenceOf[Unknown] = ()
) -> Maybe[int] | None:
    """Bytes of /dev/shm by the IPC mode, the size, and what is mounted there."""
    if isinstance(ipc, Unknown):
        return ipc
    if ipc is not None and ipc.value not in ("private", "shareable", "none", ""):
        return None
    if any(SHM in _text(place) for place in places):
        return None
    if size is not None:
        return _quantities.docker(size)
    return more[0] if more else DEFAULT_SHM


def _text(word: Maybe[str] | None) -> str:
    return "" if word is None else word.value if isinstance(word, Located) else word.spelled
