"""Nix -> nodes with exact places, as far as the text itself tells: attribute sets, lists, strings, `let`, `//`, `++`.

Options of other modules, packages and functions stand as unknown, with their expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from shardlint.findings import Unknown
from shardlint.text import made
from shardlint.text.source import MASK, Fragment, Source
from shardlint.text.trees import named, parse

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_STEPS = 50_000
MAX_DEPTH = 60
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_OF_THEIR_LAST = frozenset(
    (
        "mkIf", "mkDefault", "mkForce", "mkOverride", "toString", "mkMerge", "mkBefore", "mkAfter", "escapeShellArg",
        "writeShellScript", "writeShellScriptBin", "writeScript", "optionalAttrs", "optionals", "optional",
    )
)  # fmt: skip
"""Functions whose last argument is what is there when it is there."""
_JOINERS = frozenset(("concatStringsSep", "escapeShellArgs", "concatLines"))

Scope = Mapping[str, "tuple[Node, Scope] | None"]
"""Names that the text binds, to their expressions; None for those that whoever evaluates it gives."""


def root(source: Source) -> Any:
    """What the file's expression comes to; the inside of a function where it is one."""
    reader = _Reader(source)
    top = next(named(parse(source.text, "nix")), None)
    return made.mapping((), source, 0, 0) if top is None else reader.value(top, {})


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self._steps = 0
        self._depth = 0
        self._open: set[int] = set()

    def text(self, node: Node) -> str:
        return self.source.text[node.start_byte : node.end_byte]

    def value(self, node: Node, scope: Scope) -> Any:
        """What an expression comes to, as a node."""
        self._steps += 1
        reader = _READERS.get(node.type)
        if reader is None or self._steps > MAX_STEPS or self._depth > MAX_DEPTH:
            return self.unknown(node)
        self._depth += 1
        found = reader(self, node, scope)
        self._depth -= 1
        return found

    def unknown(self, node: Node) -> Any:
        why = f"Nix works it out: {self.text(node)[:80]}"
        return made.unknown(why, self.source, node.start_byte, node.end_byte)

    def _field(self, node: Node, name: str) -> Node | None:
        return node.child_by_field_name(name)

    def _body(self, node: Node, scope: Scope) -> Any:
        body = self._field(node, "body")
        return self.unknown(node) if body is None else self.value(body, scope)

    def _function(self, node: Node, scope: Scope) -> Any:
        """Its inside; what it is called with is not known."""
        formals = self._field(node, "formals")
        names = [self._field(formal, "name") for formal in named(formals)] if formals is not None else []
        given = {self.text(name): None for name in names if name is not None}
        universal = self._field(node, "universal")
        return self._body(node, {**scope, **given, **({self.text(universal): None} if universal is not None else {})})

    def _let(self, node: Node, scope: Scope) -> Any:
        return self._body(node, self._bound(node, scope))

    def _bound(self, node: Node, scope: Scope) -> Scope:
        """A scope with the names of a binding set, which see one another."""
        inner: dict[str, tuple[Node, Scope] | None] = dict(scope)
        for binding in self._bindings(node):
            path, expression = self._field(binding, "attrpath"), self._field(binding, "expression")
            parts = list(named(path)) if path is not None else []
            if binding.type == "binding" and len(parts) == 1 and expression is not None:
                inner[self.text(parts[0])] = (expression, inner)
        return inner

    def _bindings(self, node: Node) -> list[Node]:
        return [binding for child in named(node) if child.type == "binding_set" for binding in named(child)]

    def _attributes(self, node: Node, scope: Scope) -> Any:
        tree: dict[str, Any] = {}
        within = self._bound(node, scope) if node.type == "rec_attrset_expression" else scope
        for binding in self._bindings(node):
            path, expression = self._field(binding, "attrpath"), self._field(binding, "expression")
            if binding.type == "binding" and path is not None and expression is not None:
                self._put(tree, list(named(path)), expression, within)
            elif binding.type == "inherit":
                attributes = self._field(binding, "attrs")
                for name in named(attributes) if attributes is not None else ():
                    tree[self.text(name)] = (self._key(name), self._looked_up(name, self.text(name), scope))
        return self._mapping(tree, node.start_byte, node.end_byte)

    def _put(self, tree: dict[str, Any], path: list[Node], expression: Node, scope: Scope) -> None:
        for step in path[:-1]:
            held = tree.setdefault(self._name(step), (self._key(step), {}))[1]
            if not isinstance(held, dict):
                return
            tree = held
        name, value = self._name(path[-1]), self.value(expression, scope)
        before = tree.get(name)
        if before is not None and isinstance(before[1], dict) and value.id == "mapping":
            before[1].update({key.value: (key, item) for key, item in value.value})
        else:
            tree[name] = (self._key(path[-1]), value)

    def _mapping(self, tree: dict[str, Any], start: int, end: int) -> Any:
        pairs = [
            (key, self._mapping(value, key.start_mark.index, key.end_mark.index) if isinstance(value, dict) else value)
            for key, value in tree.values()
        ]
        return made.mapping(pairs, self.source, start, end)

    def _name(self, node: Node) -> str:
        return self.text(node).strip('"')

    def _key(self, node: Node) -> Any:
        quoted = self.text(node).startswith('"')
        return made.scalar(self._fragment(node.start_byte + quoted, node.end_byte - quoted))

    def _fragment(self, start: int, end: int) -> Fragment:
        end = max(start, end)
        return Fragment(self.source.text[start:end], self.source, range(start, end + 1))

    def _list(self, node: Node, scope: Scope) -> Any:
        items = [self.value(child, scope) for child in named(node)]
        return made.sequence(items, self.source, node.start_byte, node.end_byte)

    def _variable(self, node: Node, scope: Scope) -> Any:
        name = self.text(node)
        if name in ("true", "false"):
            return made.scalar(self._fragment(node.start_byte, node.end_byte), made.TRUTH)
        return self._looked_up(node, name, scope)

    def _looked_up(self, node: Node, name: str, scope: Scope) -> Any:
        bound = scope.get(name)
        if bound is None or bound[0].id in self._open:
            return self.unknown(node)
        self._open.add(bound[0].id)
        found = self.value(*bound)
        self._open.discard(bound[0].id)
        return found

    def _select(self, node: Node, scope: Scope) -> Any:
        base, path = self._field(node, "expression"), self._field(node, "attrpath")
        default = self._field(node, "default")
        value = None if base is None else self.value(base, scope)
        for step in named(path) if path is not None else ():
            pairs = value.value if value is not None and value.id == "mapping" else ()
            value = next((item for key, item in pairs if key.value == self._name(step)), None)
        if value is None:
            return self.value(default, scope) if default is not None and _is_closed(base) else self.unknown(node)
        return value

    def _inner(self, node: Node, scope: Scope) -> Any:
        inner = next(named(node), None)
        return self.unknown(node) if inner is None else self.value(inner, scope)

    def _binary(self, node: Node, scope: Scope) -> Any:
        left, right = self._field(node, "left"), self._field(node, "right")
        if left is None or right is None:
            return self.unknown(node)
        operator = self.source.text[left.end_byte : right.start_byte].strip()
        first, second = self.value(left, scope), self.value(right, scope)
        if operator == "++":
            items = [item for part in (first, second) for item in (part.value if part.id == "sequence" else [part])]
            return made.sequence(items, self.source, node.start_byte, node.end_byte)
        if operator == "//" and second.id == "mapping":
            pairs = {
                key.value: (key, item) for part in (first, second) if part.id == "mapping" for key, item in part.value
            }
            return made.mapping(pairs.values(), self.source, node.start_byte, node.end_byte)
        if operator == "+" and all(hasattr(part, "fragment") for part in (first, second)):
            return made.scalar(made.joined([first.fragment, second.fragment], self.source))
        return self.unknown(node)

    def _apply(self, node: Node, scope: Scope) -> Any:
        """A few functions of nixpkgs whose last argument is what counts; any other is not known."""
        arguments: list[Node] = []
        function: Node | None = node
        while function is not None and function.type == "apply_expression":
            argument = self._field(function, "argument")
            arguments.insert(0, argument) if argument is not None else None
            function = self._field(function, "function")
        name = self.text(function).rpartition(".")[2] if function is not None else ""
        if not arguments:
            return self.unknown(node)
        last = arguments[-1]
        if name in ("optionals", "optional"):
            truth = self.text(arguments[0])
            if truth != "true":
                return made.sequence([self.unknown(node)], self.source, node.start_byte, node.end_byte)
        if name in _OF_THEIR_LAST:
            value = self.value(last, scope)
            return self._merged(node, value) if name == "mkMerge" else value
        if name in _JOINERS:
            return self._joined(node, self.value(last, scope))
        return self.unknown(node)

    def _merged(self, node: Node, value: Any) -> Any:
        return self._over(node, value.value if value.id == "sequence" else [])

    def _over(self, node: Node, parts: list[Any]) -> Any:
        """Attribute sets one over the other."""
        pairs = {key.value: (key, item) for part in parts if part.id == "mapping" for key, item in part.value}
        return made.mapping(pairs.values(), self.source, node.start_byte, node.end_byte)

    def _joined(self, node: Node, value: Any) -> Any:
        """The entries with a blank between each, which is how command lines are put together."""
        if value.id != "sequence" or not value.value or not all(hasattr(item, "fragment") for item in value.value):
            return self.unknown(node)
        parts: list[Fragment] = []
        for item in value.value:
            if parts:
                parts.append(Fragment(" ", self.source, [item.start_mark.index] * 2))
            parts.append(item.fragment)
        return made.scalar(made.joined(parts, self.source), start=node.start_byte, end=node.end_byte)

    def _number(self, node: Node, scope: Scope) -> Any:
        tag = made.FRACTION if node.type == "float_expression" else made.NUMBER
        return made.scalar(self._fragment(node.start_byte, node.end_byte), tag)

    def _string(self, node: Node, scope: Scope) -> Any:
        is_indented = node.type == "indented_string_expression"
        children = list(named(node))
        if len(children) == 1 and children[0].type == "interpolation":
            return self._inner(children[0], scope)
        parts = [self._part(child, scope, is_indented=is_indented) for child in children]
        whole = made.joined(parts, self.source) if parts else self._fragment(node.start_byte + 1, node.start_byte + 1)
        return made.scalar(whole, start=node.start_byte, end=node.end_byte)

    def _part(self, node: Node, scope: Scope, *, is_indented: bool) -> Fragment:
        start, end = node.start_byte, node.end_byte
        text = self.text(node)
        if node.type == "escape_sequence":
            character = text[-1] if is_indented else _ESCAPED.get(text[-1], text[-1])
            return Fragment(character, self.source, [start, end])
        if node.type == "dollar_escape":
            return self._fragment(end, end)
        if node.type != "interpolation":
            return self._fragment(start, end)
        value = self._inner(node, scope)
        if hasattr(value, "fragment") and made.hole_in(value) is None:
            inner = value.fragment.text
            offsets = [min(start + at, end - 1) for at in range(len(inner))]
            if inner:
                offsets[-1] = end - 1
            return Fragment(inner, self.source, [*offsets, end])
        why = made.hole_in(value)
        reason = why.reason if why is not None else f"Nix works it out: {text[:80]}"
        hole = Unknown(reason, self.source.span(start, end), text)
        return Fragment(MASK * (end - start), self.source, range(start, end + 1), {0: hole})


def _is_closed(base: Node | None) -> bool:
    """Whether the text itself tells what is selected from, so that a default counts."""
    return base is not None and base.type in ("attrset_expression", "rec_attrset_expression")


_READERS: dict[str, Callable[[_Reader, Node, Scope], Any]] = {
    "function_expression": _Reader._function,
    "let_expression": _Reader._let,
    "with_expression": _Reader._body,
    "assert_expression": _Reader._body,
    "attrset_expression": _Reader._attributes,
    "rec_attrset_expression": _Reader._attributes,
    "list_expression": _Reader._list,
    "variable_expression": _Reader._variable,
    "select_expression": _Reader._select,
    "parenthesized_expression": _Reader._inner,
    "binary_expression": _Reader._binary,
    "apply_expression": _Reader._apply,
    "integer_expression": _Reader._number,
    "float_expression": _Reader._number,
    "string_expression": _Reader._string,
    "indented_string_expression": _Reader._string,
}
