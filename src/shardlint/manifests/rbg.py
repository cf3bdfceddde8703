"""RoleBasedGroup (RBG): roles of standalone pods, of leaders with workers, or of components that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardlint.deployment import Launch
from shardlint.findings import Located, Maybe, Unknown
from shardlint.manifests._objects import YAML_FILES, of_kind, text
from shardlint.text.documents import Document
from shardlint.text.nodes import Mapping, Node
from shardlint.text.source import Library

NAME = "rbg"
FILES = YAML_FILES
KINDS = ("RoleBasedGroup", "RoleBasedGroupSet")


def launches(document: Document, library: Library) -> Iterable[Launch]:
    """The launches of every role of every RoleBasedGroup in the document."""
    for item in of_kind(document, *KINDS):
        from shardlint.manifests import _pods, _roles  # only where there is a pod to read

        base = _pods.launch_of(item, NAME)
        roles = item.get("spec", "roles") or item.get("spec", "groupTemplate", "spec", "roles")
        for entry in _roles.entries(roles or item.get("spec", "template", "roles")):
            own = _roles.role(base, entry.get("name") or "", entry.get("replicas"))
            yield from _of_role(entry, own, item, document)


def _of_role(entry: Node, base: Launch, item: Mapping, document: Document) -> Iterator[Launch]:
    components = entry.get("customComponentsPattern", "components")
    if components is not None:
        yield from _of_components(components, base, document)
        return
    group = entry.get("leaderWorkerPattern") or entry.get("leaderWorkerSet")
    template = _template(entry, item)
    if group is None:
        yield from _with_patches(template, (), base, document, {})
        return
    yield from _of_group(group, _template(group, item) or template, base, document)


def _of_components(components: Node, base: Launch, document: Document) -> Iterator[Launch]:
    """Pods of several templates that make one instance together."""
    from shardlint.manifests import _pods, _roles

    base = base._replace(group=f"{base.name}:{base.at.line}:{base.at.column}")
    for component in _roles.entries(components):
        own = base._replace(role=text(component.get("name")), pods=_pods.number(component.get("size")))
        yield from _pods.launches(component.get("template", "spec"), own, document)


def _template(holder: Node, item: Mapping) -> tuple[Node, ...] | None:
    """The pod spec, and the patches that are laid over it: written here, or taken from `roleTemplates` by name."""
    from shardlint.manifests import _roles

    holder = holder.get("standalonePattern") or holder
    written = holder.get("template", "spec")
    reference = holder.get("templateRef")
    if written is not None or reference is None:
        return None if written is None else (written,)
    for template in _roles.entries(item.get("spec", "roleTemplates")):
        if text(template.get("name")) == text(reference.get("name")):
            parts = (
                template.get("template", "spec"),
                reference.get("patch", "spec"),
                holder.get("templatePatch", "spec"),
            )
            return tuple(part for part in parts if part is not None)
    return None


def _of_group(group: Node, template: tuple[Node, ...] | None, base: Launch, document: Document) -> Iterator[Launch]:
    """A leader and its workers by one template, with a patch for each of the two."""
    from shardlint.manifests import _pods

    size = _pods.number(group.get("size"))
    base = base._replace(
        pods=size or Located(1, origin="default", source="a pattern without a size"),
        group=f"{base.name}:{base.at.line}:{base.at.column}",
    )
    patches = {
        role: group.get(f"{role}TemplatePatch", "spec") or group.get(f"patch{role.capitalize()}Template", "spec")
        for role in ("leader", "worker")
    }
    several = isinstance(size, Unknown) or (size is not None and size.value > 1)
    for role, patch in patches.items():
        if role == "leader" or several:
            over = (patch,) if patch is not None else ()
            yield from _with_patches(template, over, base._replace(role=role), document, _variables(base.pods, role))


def _with_patches(
    template: tuple[Node, ...] | None,
    patches: tuple[Node, ...],
    base: Launch,
    document: Document,
    given: dict[str, Maybe[str]],
) -> Iterator[Launch]:
    from shardlint.manifests import _patched

    if template:
        yield from _patched.launches((*template, *patches), base, document, given)


def _variables(size: Maybe[int] | None, role: str) -> dict[str, Maybe[str]]:
    """What the controller adds to every container, under its own names and those of a LeaderWorkerSet."""
    from shardlint.manifests import _roles

    at_run_time = Unknown("set when the pod starts, by the RoleBasedGroup controller")
    leads = role == "leader"
    index = Located("0", origin="derived", source="the leader's index") if leads else at_run_time
    values = {"GROUP_SIZE": _roles.as_text(size, at_run_time), "LEADER_ADDRESS": at_run_time, "WORKER_INDEX": index}
    return {f"{prefix}_{name}": value for prefix in ("RBG_LWP", "LWS") for name, value in values.items()}
