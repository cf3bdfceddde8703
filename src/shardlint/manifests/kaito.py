"""KAITO: Workspace, InferenceSet and MultiRoleInference, which name a preset model and a machine.

KAITO starts vLLM itself. What it makes of the GPUs that the machines have is decided when the node is there: tensor
parallel over the cards of a machine, pipeline parallel over machines, unless the ConfigMap behind `config` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._objects import YAML_FILES, kind, of_kind, place, text
from shardlint.text.documents import Document, documents
from shardlint.text.nodes import Mapping, Node, Scalar, Sequence
from shardlint.text.source import Inset, Library

NAME = "kaito"
FILES = YAML_FILES
KINDS = ("Workspace", "InferenceSet", "MultiRoleInference")
GROUP = "kaito.sh/"
CONFIG_FILE = "inference_config.yaml"
TRANSFORMERS = ("inference_api.py", "--pretrained_model_name_or_path")
"""What the runtime starts that is not vLLM (`kaito.sh/runtime: transformers`)."""


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every object of KAITO in the document that serves a model."""
    for item in of_kind(document, *KINDS, group=GROUP):
        if kind(item) == "MultiRoleInference":
            yield from _roles(item)
        else:
            yield from _workspace(item, document, library)


def _workspace(item: Mapping, document: Document, library: Library) -> Iterator[Launch]:
    """A workspace, or the template of a set of them; older examples have a `spec` around the fields."""
    from shardlint.manifests import _pods

    within = item.get("spec", "template") if kind(item) == "InferenceSet" else item.get("spec") or item
    inference = within.get("inference") if within is not None else None
    if within is None or inference is None:
        return
    copies = item.get("spec", "replicas") if kind(item) == "InferenceSet" else None
    resource = within.get("resource")
    base = _pods.launch_of(item, NAME, copies)._replace(
        gpu=_machine(resource), pods=_pods.number(resource.get("count")) if resource is not None else None
    )
    preset = inference.get("preset", "name")
    if isinstance(preset, Scalar) and not preset.is_null:
        yield _preset(base, item, within, preset, _config(inference, document, library))
    else:
        yield from _pods.launches(inference.get("template", "spec"), base, document)


def _preset(
    base: Launch, item: Mapping, within: Node, preset: Node, stated: tuple[ConfigEntry, ...] | Unknown
) -> Launch:
    """What KAITO starts for a model that it knows by name."""
    from shardlint.manifests import _pods, _stated
    from shardlint.manifests._addresses import model_at

    model = model_at(preset)
    at = place(item)
    if "transformers" in (_runtime(item), _runtime(within)):
        return base._replace(argv=_stated.command(TRANSFORMERS, at, model))
    partition = within.get("resource", "partition", "count")
    argv = _stated.command(_stated.VLLM, at, model)
    if isinstance(stated, Unknown):
        argv, stated = (*argv, stated), ()
    return base._replace(
        argv=argv,
        settings=(*_chosen_by_controller(base, stated), *stated),
        gpus_per_pod=_pods.number(partition),
        unit=f"{base.name}:{base.at.line}",
    )


def _runtime(item: Node) -> str:
    return text(item.get("metadata", "annotations", "kaito.sh/runtime"))


def _chosen_by_controller(base: Launch, stated: tuple[ConfigEntry, ...]) -> Iterator[ConfigEntry]:
    """The sizes that KAITO works out where the configuration does not say them."""
    written = {entry.key.value.replace("_", "-") for entry in stated}
    several = isinstance(base.pods, Unknown) or (base.pods is not None and base.pods.value > 1)
    sizes = ("tensor-parallel-size", "pipeline-parallel-size") if several else ("tensor-parallel-size",)
    for size in sizes:
        if size not in written:
            reason = "KAITO chooses it by the GPUs of the machine and the memory that the model needs"
            settled = "writing it into the ConfigMap behind inference.config"
            yield ConfigEntry(Located(size, base.at, origin="derived"), Unknown(reason, base.at, "", settled))


def _machine(resource: Node | None) -> Maybe[str] | None:
    from shardlint.manifests._values import value_of

    machine = resource.get("instanceType") if resource is not None else None
    return value_of(machine) if isinstance(machine, Scalar) and machine.text.strip() else None


def _config(inference: Node, document: Document, library: Library) -> tuple[ConfigEntry, ...] | Unknown:
    """The arguments of vLLM in the ConfigMap that `config` names."""
    from shardlint.manifests._neighbours import near
    from shardlint.manifests._stated import entries

    named = inference.get("config")
    if not isinstance(named, Scalar) or not text(named):
        return ()
    config = near(document, library, text(named), "ConfigMap")
    held = config.get("data", CONFIG_FILE) if config is not None else None
    if not isinstance(held, Scalar):
        reason = f"the arguments of vLLM are in the ConfigMap {text(named)}, which is not in this folder"
        return Unknown(reason, named.span, named.spelled, "putting the ConfigMap beside it")
    roots = [inner.root for inner in documents(Inset(held.fragment())).documents if inner.root is not None]
    return tuple(entry for root in roots for entry in entries(root.get("vllm")))


def _roles(item: Mapping) -> Iterator[Launch]:
    """Prefill and decode of one model, each on machines of its own."""
    from shardlint.manifests import _pods, _stated
    from shardlint.manifests._addresses import model_at

    roles = item.get("spec", "roles")
    model = model_at(item.get("spec", "model", "name"))
    if model is None or not isinstance(roles, Sequence):
        return
    for role in roles:
        base = _pods.launch_of(item, NAME, role.get("replicas"))
        named = f"{base.name}/{text(role.get('type'))}"
        how_many = Unknown("KAITO chooses the number of machines by the memory that the model needs", role.span)
        base = base._replace(
            name=named, argv=_stated.command(_stated.VLLM, base.at, model), gpu=_machine(role), pods=how_many
        )
        yield base._replace(settings=tuple(_chosen_by_controller(base, ())), unit=f"{named}:{base.at.line}")
