"""What the resources of a Terraform file start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from shardlint import manifests
from shardlint.deployment import Launch
from shardlint.findings import Maybe, Problem, Unknown
from shardlint.findings.patterns import Pattern
from shardlint.findings.records import NamedTuple
from shardlint.manifests import _devices, _docker_run, _lmi, _opaque, _scripts
from shardlint.manifests._inner import documents_in
from shardlint.manifests._objects import text
from shardlint.manifests._releases import at_path, of_values
from shardlint.manifests._started import started
from shardlint.manifests._terraform_objects import cloud_run, kubernetes, task_containers
from shardlint.manifests._values import value_of
from shardlint.text import made
from shardlint.text.assembled import Tree
from shardlint.text.documents import Document
from shardlint.text.hcl import Block, Module, Scope
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Library, Source, beside

_ENGINE = Pattern(r"(?i)llm|sglang|tensorrt|trt-llm|text-generation|tgi|nim|dynamo|lmi|djl")
_SCRIPTS = (
    "user_data", "user_data_base64", "custom_data", "metadata_startup_script", "startup_script", "user_data_replace",
    "cloud_init", "content",
)  # fmt: skip
_MACHINES = ("instance_type", "machine_type", "size", "vm_size", "plan", "type")
MOST_COPIES = 100
"""Of one resource with `for_each`."""


def launches_of(document: Document, form: str, library: Library) -> Iterator[Launch | Problem]:
    """The launches of each resource, under its address."""
    if not document.source.holds(_ENGINE):
        return
    module = _module(document.source, library)
    place = _Place(document, library, module)
    for block in module.blocks("resource"):
        if len(block.labels) != 2:
            continue
        read = _reader(block.labels[0])
        for key, scope in _copies(block) if read is not None else ():
            address = ".".join(block.labels) + key
            base = Launch(address, block.labels[0], form, document.source.span(block.start, block.end), unit=address)
            body = made.open_node(block.body(scope))
            for launch in read(body, base, place) if read is not None else ():
                yield launch if isinstance(launch, Problem) else _opaque.told_by_environment(launch)


def _module(source: Source, library: Library) -> Module:
    """The file with the others of its folder, and the values that are given to it there."""
    folder, _, own = source.path.replace("\\", "/").rpartition("/")
    names = [name for name in library.names_in(folder) if name != own]
    files = partial(_near, source, library)
    others = [found for name in names if name.endswith(".tf") and isinstance(found := files(name), Source)]
    values = [name for name in names if name == "terraform.tfvars"]
    values += [name for name in names if name.endswith(".auto.tfvars")]
    given = [found for name in values if isinstance(found := files(name), Source)]
    return Module(source, others, given, files)


def _near(source: Source, library: Library, path: str) -> Source | Unknown:
    return library.sibling(beside(source.path, path))


def _copies(block: Block) -> Iterator[tuple[str, Scope]]:
    """A resource, once for each of those that `for_each` makes of it, none where `count` is zero."""
    count, each = block.attribute("count"), block.attribute("for_each")
    if count is not None and count.id == "scalar" and count.value == "0":
        return
    if each is None or each.id == "scalar" or not each.value:
        yield "", {}
        return
    entries = made.below(each)
    for entry in entries[:MOST_COPIES]:
        key, value = entry if each.id == "mapping" else (entry, entry)
        yield f'["{key.value}"]', {"each": {"key": key, "value": value}}


Found = Iterator[Launch | Problem]
Reader = Callable[[Node, Launch, "_Place"], Found]


class _Place(NamedTuple):
    """The file that a resource stands in, and what lies around it."""

    document: Document
    library: Library
    module: Module


def _reader(kind: str) -> Reader | None:
    """What is done with a resource of a type; those that may have a startup script are many."""
    plain = re.sub(r"_v\d\w*$", "", kind)
    return _READERS.get(plain) or _READERS.get(kind) or (_machine if re.search(_COMPUTE, kind) else None)


_COMPUTE = r"instance|virtual_machine|server|droplet|template|launch_configuration|user_data|cloudinit|vm$"


def _object(body: Node, base: Launch, at: _Place) -> Found:
    """A Kubernetes object in blocks."""
    root = kubernetes(base.kind, body, at.module)
    if root is not None:
        yield from _inner(root, base, at)


def _inner(root: Node, base: Launch, at: _Place) -> Found:
    """The launches of an object that a resource holds, under the resource's address."""
    found = manifests.launches(at.document._replace(kind="yaml", root=root), at.library)
    yield from found.problems
    for launch in found.launches:
        yield launch._replace(name=base.name, form=base.form, unit=f"{base.unit}:{launch.unit}")


def _manifest(body: Node, base: Launch, at: _Place) -> Found:
    """`kubernetes_manifest` with an object, `kubectl_manifest` with its text."""
    written = body.get("manifest") or body.get("yaml_body") or body.get("manifests") or body.get("content")
    if isinstance(written, Mapping):
        yield from _inner(written, base, at)
    elif isinstance(written, Scalar):
        for inner in documents_in(written).documents:
            found = manifests.launches(inner, at.library)
            yield from found.problems
            for launch in found.launches:
                yield launch._replace(form=base.form, unit=f"{base.unit}:{launch.unit}")


def _release(body: Node, base: Launch, at: _Place) -> Found:
    """`helm_release`: its values one over the other, and each `set` over them."""
    values: list[Tree] = []
    for one in _items(body.get("values")):
        if isinstance(one, Mapping):
            values.append(one)
        elif isinstance(one, Scalar):
            parsed = documents_in(one)
            yield from parsed.problems
            values += [inner.root for inner in parsed.documents if inner.root is not None]
    for name in ("set", "set_list"):
        for entry in _items(body.get(name)):
            value = entry.get("value")
            if value is not None and (path := text(entry.get("name"))):
                values.append(at_path(path, value))
    for launch in of_values(values, base, at.document, at.library):
        yield launch if isinstance(launch, Problem) else launch._replace(form=base.form)


def _items(node: Node | None) -> Iterator[Node]:
    if isinstance(node, Sequence):
        yield from node
    elif node is not None:
        yield node


def _cloud_run(body: Node, base: Launch, at: _Place) -> Found:
    root = cloud_run(body, at.document.source)
    if root is not None:
        yield from _inner(root, base, at)


def _task(body: Node, base: Launch, at: _Place) -> Found:
    """`aws_ecs_task_definition`: containers in JSON."""
    root = task_containers(body, at.document.source)
    if root is not None:
        yield from _inner(root, base, at)


def _container(body: Node, base: Launch, at: _Place) -> Found:
    """`docker_container`."""
    given = {"gpus": body.get("gpus"), "runtime": body.get("runtime")}
    stated = {name: [value_of(node)] for name, node in given.items() if isinstance(node, Scalar) and not node.is_null}
    run = _docker_run.options(
        (), **stated, env=[value_of(word) for word in _items(body.get("env")) if isinstance(word, Scalar)]
    )
    env = run.environment({}, at.library.sibling)
    words = {
        name: [word.fragment() for word in _items(body.get(name)) if isinstance(word, Scalar)]
        for name in ("entrypoint", "command")
    }
    image = body.get("image")
    shared = base._replace(image=value_of(image) if isinstance(image, Scalar) else None)
    for start in started(words["entrypoint"], words["command"], env):
        yield shared._replace(
            at=start.at or base.at,
            argv=start.argv,
            env=start.env,
            entrypoint_of_image=start.entrypoint_of_image,
            gpus_per_pod=run.cards(start.env),
            cards=run.card_names(start.env),
        )


def _sagemaker(body: Node, base: Launch, at: _Place) -> Found:
    """`aws_sagemaker_model`, on the machines of the endpoint that names it."""
    machine, copies = _endpoint(at.module)
    for kind in ("primary_container", "container"):
        for container in _items(body.get(kind)):
            environment = container.get("environment")
            env = {
                key.text: value_of(value)
                for key, value in (environment.items() if isinstance(environment, Mapping) else ())
                if isinstance(value, Scalar)
            }
            image = container.get("image")
            launch = base._replace(
                image=value_of(image) if isinstance(image, Scalar) else None,
                env=env,
                gpu=machine,
                replicas=copies,
                entrypoint_of_image=True,
            )
            options = _lmi.options_of(env)
            spelled = "" if launch.image is None else launch.image.spelled
            yield _lmi.launch_of(options, launch) if options and "vllm" not in spelled else launch


def _endpoint(module: Module) -> tuple[Maybe[str] | None, Maybe[int] | None]:
    for block in module.blocks("resource"):
        if block.labels[:1] != ("aws_sagemaker_endpoint_configuration",):
            continue
        body = made.open_node(block.body())
        for variant in _items(body.get("production_variants")):
            machine, copies = variant.get("instance_type"), variant.get("initial_instance_count")
            found = value_of(machine) if isinstance(machine, Scalar) else None
            number = _devices.count(value_of(copies)) if isinstance(copies, Scalar) else None
            return found, number
    return None, None


def _machine(body: Node, base: Launch, at: _Place) -> Found:
    """A machine with a script that it runs when it starts."""
    gpu, cards = _hardware(body)
    for script in _startup_scripts(body):
        fragment = script.fragment()
        shebang = fragment.text.lstrip()[:2] == "#!" or "vllm" in fragment.text or "docker run" in fragment.text
        if not shebang or fragment.text.lstrip().startswith("#cloud-config"):
            continue
        for launch in _scripts.launches_of(fragment, base.form, at.library, base=base):
            if isinstance(launch, Problem):
                yield launch
                continue
            counted = launch.gpus_per_pod
            all_of_host = counted is None or (isinstance(counted, Unknown) and counted.reason == _devices.ALL_OF_HOST)
            given = cards if all_of_host and cards is not None else counted
            yield launch._replace(gpu=launch.gpu or gpu, gpus_per_pod=given)


def _startup_scripts(body: Node) -> Iterator[Scalar]:
    for name in _SCRIPTS:
        if isinstance(script := body.get(name), Scalar):
            yield script
    metadata = body.get("metadata")
    for holder in _items(metadata):
        for name in ("startup-script", "user-data", "startup_script"):
            if isinstance(script := holder.get(name), Scalar):
                yield script


def _hardware(body: Node) -> tuple[Maybe[str] | None, Maybe[int] | None]:
    """The card and its number where they are written, else the machine."""
    for block in _items(body.get("guest_accelerator")):
        kind, count = block.get("type"), block.get("count")
        if isinstance(kind, Scalar):
            return value_of(kind), _devices.count(value_of(count)) if isinstance(count, Scalar) else None
    for name in _MACHINES:
        if isinstance(machine := body.get(name), Scalar):
            return value_of(machine), None
    return None, None


_READERS: dict[str, Reader] = {
    **{
        f"kubernetes_{kind}": _object
        for kind in (
            "deployment",
            "stateful_set",
            "daemonset",
            "daemon_set",
            "pod",
            "job",
            "cron_job",
            "replication_controller",
        )
    },
    "kubernetes_manifest": _manifest,
    "kubectl_manifest": _manifest,
    "helm_release": _release,
    "google_cloud_run_v2_service": _cloud_run,
    "google_cloud_run": _cloud_run,
    "aws_ecs_task_definition": _task,
    "docker_container": _container,
    "aws_sagemaker_model": _sagemaker,
}
