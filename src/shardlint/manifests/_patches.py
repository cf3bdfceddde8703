"""What kustomize does to objects: strategic merge and JSON patches, images, numbers of copies, replacements."""

from __future__ import annotations

import re

from shardlint.findings.records import NamedTuple
from shardlint.text.assembled import Tree, at, entries, is_mapping, members, text_at
from shardlint.text.nodes import Node, Scalar, Sequence
from shardlint.text.source import Fragment

_NAMED_LISTS = frozenset(
    {"containers", "initContainers", "ephemeralContainers", "env", "volumes", "imagePullSecrets", "resourceClaims"}
)
"""Lists of built-in kinds whose entries are merged by their names."""
_BUILT_IN = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod"})


class Patch(NamedTuple):
    """A patch, and which objects it is for: those of its target, else the one that it names itself."""

    content: Tree
    target: Node | None

    def applied(self, objects: list[Tree]) -> list[Tree]:
        if isinstance(self.content, Sequence):
            return [operated(one, members(self.content)) if self._is_for(one) else one for one in objects]
        removes = text_at(self.content, "$patch") == "delete"
        found = []
        for one in objects:
            if not self._is_for(one):
                found.append(one)
            elif not removes:
                found.append(_merged(one, self._nameless(), named=text_at(one, "kind") in _BUILT_IN))
        return found

    def _is_for(self, one: Tree) -> bool:
        if self.target is not None:
            return selects(self.target, one)
        names = (("kind",), ("metadata", "name"))
        return all(text_at(self.content, *path) == text_at(one, *path) for path in names)

    def _nameless(self) -> Tree:
        """The patch without its own name, which a target makes void."""
        return {key: value for key, value in entries(self.content) if key not in ("apiVersion", "kind", "metadata")}


def selects(target: Tree, one: Tree) -> bool:
    """Whether a selector means an object; names and kinds are patterns."""
    for key, path in (("kind", ("kind",)), ("name", ("metadata", "name"))):
        pattern = text_at(target, key)
        if pattern and not _matches(pattern, text_at(one, *path)):
            return False
    labels = text_at(target, "labelSelector")
    for label in labels.split(",") if labels else ():
        name, _, value = label.partition("=")
        if text_at(one, "metadata", "labels", name.strip()) != value.lstrip("=").strip():
            return False
    return True


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        return pattern == text


def _merged(below: Tree | None, above: Tree, *, named: bool, key: str = "") -> Tree:
    """A strategic merge: mappings key by key, lists of named things by name, any other list replaced."""
    if is_mapping(below) and is_mapping(above):
        if text_at(above, "$patch") == "replace":
            return {name: value for name, value in entries(above) if name != "$patch"}
        found = dict(entries(below))
        for name, value in entries(above):
            if isinstance(value, Scalar) and value.is_null:
                found.pop(name, None)
            else:
                found[name] = _merged(found.get(name), value, named=named, key=name)
        return found
    if named and key in _NAMED_LISTS and members(below):
        return _merged_by_name(members(below), members(above))
    return above


def _merged_by_name(below: list[Tree], above: list[Tree]) -> list[Tree]:
    found = list(below)
    for entry in above:
        name = text_at(entry, "name")
        place = next((number for number, one in enumerate(found) if text_at(one, "name") == name), None)
        if text_at(entry, "$patch") == "delete":
            found = [one for one in found if text_at(one, "name") != name]
        elif place is None:
            found.append(entry)
        else:
            found[place] = _merged(found[place], entry, named=True)
    return found


def operated(one: Tree, operations: list[Tree]) -> Tree:
    """A JSON patch; an operation that does not fit the object is left out."""
    for operation in operations:
        steps = [_unescaped(step) for step in text_at(operation, "path").split("/")[1:]]
        name, value = text_at(operation, "op"), at(operation, "value")
        if name in ("move", "copy"):
            value = _looked_up(one, [_unescaped(step) for step in text_at(operation, "from").split("/")[1:]])
        if name == "move":
            start = [_unescaped(step) for step in text_at(operation, "from").split("/")[1:]]
            one = put(one, start, None, adds=False)
        if steps and name in ("add", "replace", "remove", "move", "copy") and (value is not None or name == "remove"):
            one = put(one, steps, None if name == "remove" else value, adds=name != "replace")
    return one


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _looked_up(tree: Tree | None, steps: list[str]) -> Tree | None:
    for step in steps:
        entries_here = members(tree)
        if entries_here:
            place = _place(entries_here, step)
            tree = entries_here[place] if place is not None and place < len(entries_here) else None
        else:
            tree = at(tree, step)
    return tree


def put(tree: Tree | None, steps: list[str], value: Tree | None, *, adds: bool) -> Tree:
    """The tree with a value at a path; None takes away what is there. `adds` puts it between the entries of a list."""
    step, rest = steps[0], steps[1:]
    if isinstance(tree, Sequence | list):
        return _put_into_list(members(tree), step, rest, value, adds=adds)
    found = dict(entries(tree))
    if rest:
        if step in found or value is not None:
            found[step] = put(found.get(step), rest, value, adds=adds)
    elif value is None:
        found.pop(step, None)
    else:
        found[step] = value
    return found


def _put_into_list(found: list[Tree], step: str, rest: list[str], value: Tree | None, *, adds: bool) -> Tree:
    place = len(found) if step == "-" else _place(found, step)
    if place is None or place > len(found) or (place == len(found) and (rest or value is None)):
        return found
    if rest:
        found[place] = put(found[place], rest, value, adds=adds)
    elif value is None:
        del found[place]
    elif adds or place == len(found):
        found.insert(place, value)
    else:
        found[place] = value
    return found


def _place(found: list[Tree], step: str) -> int | None:
    """The number of an entry: as it is, or by `[name=x]`."""
    if step.isdigit():
        return int(step)
    key, equals, wanted = step.strip("[]").partition("=")
    if not equals:
        return None
    return next((number for number, one in enumerate(found) if text_at(one, key) == wanted), None)


def with_image(one: Tree, image: Node) -> Tree:
    """An object with the image of every container replaced that has the name."""
    if isinstance(one, Node | dict) and is_mapping(one):
        return {
            key: _image(value, image) if key == "image" and isinstance(value, Scalar) else with_image(value, image)
            for key, value in entries(one)
        }
    if isinstance(one, Sequence | list):
        return [with_image(entry, image) for entry in members(one)]
    return one


def _image(written: Scalar, image: Node) -> Tree:
    """The reference put together: each part of it stands where it was written."""
    reference, _, digest = written.text.strip().partition("@")
    name, tag = reference, ""
    if ":" in reference.rpartition("/")[2]:
        name, _, tag = reference.rpartition(":")
    if name != text_at(image, "name"):
        return written
    new_name, new_tag, new_digest = (image.get(key) for key in ("newName", "newTag", "digest"))
    if isinstance(new_digest, Scalar) and new_digest.text:
        return _joined(_part(new_name, name, written), "@", _part(new_digest, "", written))
    if not isinstance(new_tag, Scalar) and digest:
        return _joined(_part(new_name, name, written), "@", digest)
    return _joined(_part(new_name, name, written), ":", _part(new_tag, tag, written))


def _part(node: Node | None, text: str, written: Scalar) -> Fragment:
    if isinstance(node, Scalar) and node.text:
        return node.fragment()
    fragment = written.fragment()
    start = max(fragment.text.find(text), 0)
    return fragment.part(start, start + len(text))


def _joined(name: Fragment, sign: str, rest: Fragment | str) -> Fragment:
    """One text at the place of its first part."""
    text = rest if isinstance(rest, str) else rest.text
    behind = sign + text if text else ""
    last = name.offsets[max(len(name.text) - 1, 0)]
    return Fragment(name.text + behind, name.source, [*name.offsets[: len(name.text)], *[last] * (len(behind) + 1)])


def with_replicas(one: Tree, copies: Node) -> Tree:
    """An object with its number of copies, where the name is that of the transformer."""
    count = copies.get("count")
    if count is None or text_at(one, "metadata", "name") != text_at(copies, "name") or at(one, "spec") is None:
        return one
    return put(one, ["spec", "replicas"], count, adds=True)


def replaced(objects: list[Tree], replacement: Node) -> list[Tree]:
    """A field of one object put into fields of others; parts of text (`delimiter`) are left as they are."""
    source = replacement.get("source")
    path = text_at(source, "fieldPath") or "metadata.name"
    value = next(
        (_looked_up(one, _steps(path)) for one in objects if source is not None and selects(source, one)), None
    )
    if value is None:
        return objects
    for target in members(replacement.get("targets")):
        select = at(target, "select")
        if select is None or at(target, "options", "delimiter") is not None:
            continue
        for field in members(at(target, "fieldPaths")):
            steps = _steps(field.text) if isinstance(field, Scalar) else []
            objects = [
                put(one, steps, value, adds=False)
                if selects(select, one) and steps and _looked_up(one, steps) is not None
                else one
                for one in objects
            ]
    return objects


def _steps(path: str) -> list[str]:
    """`spec.containers.[name=x].image`, `metadata.labels.[a.b/c]`, `data.A\\.B`."""
    found = re.findall(r"\[([^\]]*)\]|((?:\\.|[^.\[\]])+)", path)
    return [f"[{bracket}]" if "=" in bracket else bracket or plain.replace("\\.", ".") for bracket, plain in found]
