"""What manifests yield (launches) and what they make together (servers)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from shardlint.findings import Located, Maybe, Span, Unknown
from shardlint.findings.records import NamedTuple

Word = Located[str] | Unknown
"""One word of a command line. An unknown one keeps its text in `spelled` (`--port=${PORT}`)."""


class ConfigEntry(NamedTuple):
    """One key of a file of flags, and its value as the engine's YAML reader has it (text, number, list, ...)."""

    key: Located[str]
    value: Located[Any] | Unknown


class RayApplication(NamedTuple):
    """What Ray Serve is told about the processes of an engine. `None` means: not written."""

    builder: Located[str] | None = None
    """The function that makes the application (`ray.serve.llm:build_openai_app`)."""
    bundles: tuple[Maybe[int], ...] = ()
    """Cards of each bundle of the placement group."""
    actor_cards: Maybe[int] | None = None
    """Cards that the actor which starts the engine holds for itself."""
    cluster_cards: Maybe[int] | None = None
    """Cards of all workers of the cluster."""


NOTHING: Mapping[str, Maybe[str]] = MappingProxyType({})


class Probe(NamedTuple):
    """A check by which the kubelet decides that a container is to be started again."""

    at: Span
    """Its key (`livenessProbe`)."""
    name: str
    asks_server: bool
    """Whether nothing but a server that has loaded its model answers it."""
    seconds: Maybe[int]
    """From the start of the container until one that does not answer is killed."""
    reckoning: str
    """How that comes about: `60 s + 3 x 5 s`."""


class Container(NamedTuple):
    """What surrounds a command that runs in a container. `None` means: not written, and nothing follows from that."""

    shared_memory: Maybe[int] | None = None
    """Bytes of /dev/shm, the runtime's default included; None where only the host's memory bounds it."""
    more_shared_memory: tuple[str, ...] = ()
    """How the form says that there be more of it."""
    memory_limit: Maybe[int] | None = None
    """Bytes of the host's memory that it may use."""
    has_volumes: bool = False
    """Whether anything is mounted that keeps files when it is started again."""
    host_network: Located[bool] | None = None
    card_quota: Maybe[int] | None = None
    """Cards that all pods of the file may have together, where it says so."""
    unequal_cards: tuple[Located[int], Located[int]] | None = None
    """Cards in `limits` and in `requests`, where the two differ."""
    services: tuple[Located[str], ...] = ()
    """Names of Services of the file, whose addresses Kubernetes puts into the environment."""
    process_namespace: str = ""
    """Containers with the same non-empty text see each other's processes."""
    liveness: Probe | None = None
    startup: Probe | None = None
    shared_cards: Located[str] | None = None
    """What the cards are asked for by, where their unit is a part of a card that others may have the rest of."""


class Launch(NamedTuple):
    """One command that a manifest starts, with its surroundings. A container's script yields one per command.

    `None` means: not written. `Unknown` means: written, but not to be told from the file.
    """

    name: str
    """The contract's name: `Deployment/x`, `service/x`, a script's file name."""
    kind: str
    """The object's kind as written (`Deployment`, `LeaderWorkerSet`), `service`, `script`, `command`."""
    form: str
    """The file in `manifests/` that read it."""
    at: Span
    """The first word of the command, or the object's name where none is written."""
    argv: tuple[Word, ...] = ()
    settings: tuple[ConfigEntry, ...] = ()
    """Arguments that a controller takes from fields of the manifest and hands to the engine; `argv` wins."""
    entrypoint_of_image: bool = False
    """True where the image's own entrypoint stands before `argv` (Kubernetes `args` without `command`)."""
    env: Mapping[str, Maybe[str]] = NOTHING
    image: Maybe[str] | None = None
    """The whole reference, `registry/name:tag@digest`."""
    gpus_per_pod: Maybe[int] | None = None
    """Cards that each pod (host) of the launch can use."""
    gpu: Maybe[str] | None = None
    """The card as named: label, accelerator, machine type."""
    pods: Maybe[int] | None = None
    """Pods that the controller makes into one group (LWS size)."""
    replicas: Maybe[int] | None = None
    """Independent copies."""
    unit: str = ""
    """The container (or script) that the command runs in; commands of one unit run one after another."""
    group: str = ""
    """Launches with the same non-empty group form one engine instance (leader and worker of a LeaderWorkerSet)."""
    role: str = ""
    """`leader` or `worker` inside a group."""
    mounts: Mapping[str, str] = MappingProxyType({})
    """Files and folders of the host, by the path at which the container has them."""
    shares_pods: bool = False
    """Whether other copies run in the same pods: what one of them leaves of the cards, others take."""
    conditional: bool = False
    """Whether the command stands in a branch or loop of its script, so that it may not run."""
    cards: tuple[str, ...] | None = None
    """The host's names of the cards that it can use, in its own order; None where the file does not tell."""
    together: str = ""
    """Launches with the same non-empty text share the cards of one host and may run at the same time."""
    background: bool = False
    """Whether what starts it goes on at once, so that later launches run beside it."""
    container: Container | None = None
    """What surrounds it; None on a bare host, and where a controller makes the container in its own way."""
    unused_sizes: tuple[Located[int], ...] = ()
    """Sizes that fields of the manifest state and that its controller hands to no engine."""
    is_spread: bool = False
    """Whether its controller spreads the ranks over the pods of an instance, by flags that it adds itself."""
    ray: RayApplication | None = None
    """Where Ray Serve starts it, what that is told."""


class Server(NamedTuple):
    """One engine instance: the launch that starts the engine, and those that help it (workers, ray heads)."""

    engine: str
    """The engine's name (`vllm`, `sglang`, `trtllm`, `tgi`, `other`)."""
    primary: Launch
    others: tuple[Launch, ...] = ()
    pods: Maybe[int] | None = None
    """Pods or hosts that make one instance."""
    replicas: Maybe[int] | None = None
