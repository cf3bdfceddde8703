"""What the chart llm-d-modelservice makes of its values: https://github.com/llm-d-incubation/llm-d-modelservice

Its templates start `vllm serve MODEL` (`vllmServe`), the image's own entrypoint with `--model MODEL` (`imageDefault`),
or what the values write; they turn `parallelism` into flags, and into GPUs where the values ask for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shardlint.deployment import ConfigEntry, Launch, Word
from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.manifests import _addresses, _cards, _devices, _pods, _roles, _stated
from shardlint.manifests._objects import text
from shardlint.manifests._values import value_of
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node, Scalar

ROLES = ("decode", "prefill")
MOUNT_PATH = "/model-cache"
NOT_WRITTEN = Unknown("the chart's defaults decide it, which are not in this file", settle_by="rendering the chart")
_VENDOR = ("nvidia", "amd", "google", "intel", "cpu")
"""Types of accelerators that name no kind of card."""


class Parallelism:
    """The sizes of one role: of those that are not written, what follows from the others."""

    def __init__(self, written: Node | None) -> None:
        def size(name: str) -> Maybe[int] | None:
            return _pods.number(written.get(name)) if written is not None else None

        data, local, self._workers = size("data"), size("dataLocal"), size("workers")
        self.tensor = size("tensor")
        self.data = data or _roles.product(local, self._workers)
        self.local = local or _quotient(data, self._workers) or data
        self.workers = self._workers or _quotient(data, local)

    @property
    def gpus(self) -> Maybe[int]:
        """Those of one pod."""
        return _roles.product(self.local, self.tensor) or NOT_WRITTEN

    def flags(self) -> Iterator[ConfigEntry]:
        """The flags that the chart writes."""
        sizes = (
            ("tensor-parallel-size", "tensor", self.tensor),
            ("data-parallel-size", "data", self.data),
            ("data-parallel-size-local", "dataLocal", self.local),
        )
        for flag, key, size in sizes:
            if isinstance(size, Unknown) or (
                size is not None and (size.value > 1 or flag != "data-parallel-size-local")
            ):
                yield ConfigEntry(Located(flag, size.span, key, "derived"), size)

    def variables(self) -> _roles.Variables:
        """The variables that the chart gives to every container."""
        return {
            "TP_SIZE": _roles.as_text(self.tensor, NOT_WRITTEN),
            "DP_SIZE": _roles.as_text(self.data, NOT_WRITTEN),
            "DP_SIZE_LOCAL": _roles.as_text(self.local, NOT_WRITTEN),
        }


def _quotient(whole: Maybe[int] | None, part: Maybe[int] | None) -> Maybe[int] | None:
    if whole is None or part is None or isinstance(whole, Unknown):
        return None if whole is None or part is None else whole
    if isinstance(part, Unknown) or part.value == 0:
        return part if isinstance(part, Unknown) else None
    return Located(whole.value // part.value, part.span, part.spelled, "derived", f"{whole.value} / {part.value}")


def launches_of(values: Mapping, form: str, document: Document) -> Iterator[Launch]:
    """The launches of the roles that are created."""
    for name in ROLES:
        role, key = values.get(name), values.key(name)
        if not isinstance(role, Mapping) or key is None or _is_off(role):
            continue
        base = Launch(f"values/{name}", "values", form, key.span, replicas=_pods.number(role.get("replicas")))
        yield from _of_role(role, values, base, document)


def _is_off(role: Mapping) -> bool:
    return text(role.get("create")) == "false" or text(role.get("replicas")) == "0"


def _of_role(role: Mapping, values: Mapping, base: Launch, document: Document) -> Iterator[Launch]:
    sizes = Parallelism(role.get("parallelism"))
    base = base._replace(pods=_pods_of(values.get("multinode"), sizes))
    env = {**sizes.variables(), **_of_group(base.pods)}
    gpu = _card(role, values)
    for container in _roles.entries(role.get("containers")):
        if not isinstance(container, Mapping):
            continue
        how = _command(text(container.get("modelCommand")), values.get("modelArtifacts"), sizes, base.at)
        for launch in _pods.container_launches(container, role, base, document, env):
            given = launch.gpus_per_pod if _asks_for_cards(container) else _devices.usable(sizes.gpus, launch.env)
            own = launch._replace(gpus_per_pod=given, gpu=gpu or launch.gpu)
            yield how(own)


def _asks_for_cards(container: Mapping) -> bool:
    from shardlint.manifests import _resources

    return _resources.requested(container) is not None


def _pods_of(multinode: Node | None, sizes: Parallelism) -> Maybe[int] | None:
    """With `multinode` the workers of a role make one instance."""
    if multinode is None or text(multinode) == "false":
        return None
    if text(multinode) != "true":
        return Unknown("whether an instance has several pods is not known", multinode.span, multinode.spelled)
    return sizes.workers or NOT_WRITTEN


def _of_group(pods: Maybe[int] | None) -> dict[str, Maybe[str]]:
    """What the controller of LeaderWorkerSets adds, which the chart makes of a role with several pods."""
    if pods is None:
        return {}
    at_run_time = Unknown("set when the pod starts, by the LeaderWorkerSet controller")
    return {
        "LWS_GROUP_SIZE": _roles.as_text(pods, at_run_time),
        "LWS_LEADER_ADDRESS": at_run_time,
        "LWS_WORKER_INDEX": at_run_time,
    }


def _card(role: Mapping, values: Mapping) -> Maybe[str] | None:
    """The card that nodes must be labelled with, else the type of accelerator where that names one."""
    asked = role.get("acceleratorTypes")
    labelled = _cards.one_of(asked.get("labelValues")) if asked is not None else None
    kind = role.get("accelerator", "type") or values.get("accelerator", "type")
    if labelled is None and isinstance(kind, Scalar) and text(kind) and text(kind).lower() not in _VENDOR:
        return value_of(kind)
    extra = role.get("extraConfig")
    return labelled or _cards.named(role) or (_cards.named(extra) if extra is not None else None)


# Commands


def _command(how: str, artifacts: Node | None, sizes: Parallelism, at: Span) -> Callable[[Launch], Launch]:
    """What the chart makes of a container's launch; `at` is where a command of the chart stands."""

    def made(launch: Launch) -> Launch:
        if how not in ("vllmServe", "imageDefault"):
            return launch
        model = _model(artifacts) or NOT_WRITTEN._replace(span=at)
        words: tuple[str, ...] = _stated.VLLM if how == "vllmServe" else ("--model",)
        argv: tuple[Word, ...] = (*_stated.command(words, at, model), *launch.argv)
        is_default = how == "imageDefault"
        return launch._replace(at=at, argv=argv, settings=tuple(sizes.flags()), entrypoint_of_image=is_default)

    return made


def _model(artifacts: Node | None) -> Maybe[str] | None:
    """The name or path that the engine is given: what the address points to, where the values tell it."""
    if artifacts is None:
        return None
    name, address = (_addresses.model_at(artifacts.get(key)) for key in ("name", "uri"))
    uri = artifacts.get("uri")
    if not isinstance(address, Located) or not isinstance(uri, Scalar) or "{{" in uri.text:
        return name or address
    scheme, _, rest = address.value.partition("://")
    if scheme == "pvc":
        mount = text(artifacts.get("mountPath")) or MOUNT_PATH
        return address.with_value(f"{mount}/{rest.partition('/')[2]}")
    if scheme == "pvc+hf":
        return address.with_value("/".join(rest.split("/")[-2:]))
    return address if not rest else name or address
