"""Terraform's language -> nodes with exact places, variables and simple functions worked out.

What only a run of Terraform tells (other resources, data, variables without a default) stands as unknown, with its
expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shardlint.findings import Unknown
from shardlint.findings.records import NamedTuple
from shardlint.text import made
from shardlint.text.nodes import NULL
from shardlint.text.source import MASK, Fragment, Source
from shardlint.text.trees import named, parse

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_STEPS = 50_000
"""Expressions that are worked out; `for` inside `for` grows by powers."""
MAX_DEPTH = 40
MOST_CHARACTERS = 2**16
"""Of one text: locals that repeat one another grow by powers."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|\$(\$\{)|%(%\{)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_TEMPLATE = re.compile(r"\$\$\{|%%\{|\$\{\s*([A-Za-z_]\w*)\s*\}|\$\{[^{}]*\}|%\{[^{}]*\}")
_PLACEHOLDER = re.compile(r"%[-+# 0]*[\d.]*([sdvqtfg%])")

Files = Callable[[str], Source | Unknown]
Scope = Mapping[str, Any]
NO_SCOPE: Scope = {}


class Block(NamedTuple):
    """`type "label" { ... }`."""

    kind: str
    labels: tuple[str, ...]
    file: _File
    node: Node
    start: int
    end: int
    """The place of its last label, else of its type."""

    def body(self, scope: Scope = NO_SCOPE) -> Any:
        """Attributes, and nested blocks, which are a sequence by their type, also where there is one."""
        return self.file.body(self.node, scope)

    def attribute(self, name: str, scope: Scope = NO_SCOPE) -> Any | None:
        """The value of one attribute."""
        expression = self.file.attributes(self.node).get(name)
        return None if expression is None else self.file.value(expression, scope)


class Module:
    """The files of one folder: what they declare, and what their expressions come to."""

    def __init__(self, source: Source, others: Iterable[Source], values: Iterable[Source], files: Files) -> None:
        self.files = files
        self.steps = 0
        self.depth = 0
        self._open: set[str] = set()
        own = _File(source, self)
        everything = [own, *(_File(other, self) for other in others)]
        self.own = list(own.blocks())
        every = [*self.own, *(block for file in everything[1:] for block in file.blocks())]
        self._variables = {block.labels[0]: block for block in every if block.kind == "variable" and block.labels}
        self._resources = {block.labels: block for block in every if block.kind == "resource"}
        self._locals = {
            name: (block.file, expression)
            for block in every
            if block.kind == "locals"
            for name, expression in block.file.attributes(block.node).items()
        }
        self._given = {
            name: (file, expression)
            for file in (_File(value, self) for value in values)
            for name, expression in file.attributes(file.root).items()
        }

    def blocks(self, kind: str) -> Iterator[Block]:
        """The blocks of a type in the file itself."""
        return (block for block in self.own if block.kind == kind)

    def variable(self, name: str) -> Any | str:
        """What a variable is set to, else its default; why not where there is neither."""
        if name in self._given:
            return self._worked_out(f"var.{name}", *self._given[name])
        block = self._variables.get(name)
        default = None if block is None else block.file.attributes(block.node).get("default")
        if block is None or default is None:
            return f"the variable {name} has no default in this folder"
        return self._worked_out(f"var.{name}", block.file, default)

    def local(self, name: str) -> Any | str:
        if name not in self._locals:
            return f"local.{name} is not set in this folder"
        return self._worked_out(f"local.{name}", *self._locals[name])

    def resource(self, kind: str, name: str) -> Any | None:
        """The body of a resource in the folder."""
        block = self._resources.get((kind, name))
        return None if block is None else self._guarded(f"{kind}.{name}", block.body)

    def _worked_out(self, name: str, file: _File, expression: Node) -> Any | str:
        found = self._guarded(name, lambda: file.value(expression, NO_SCOPE))
        return f"{name} is defined by itself" if found is None else found

    def _guarded(self, name: str, work: Callable[[], Any]) -> Any | None:
        if name in self._open:
            return None
        self._open.add(name)
        try:
            return work()
        finally:
            self._open.discard(name)


class _File:
    """One file: its blocks, and its expressions worked out."""

    def __init__(self, source: Source, module: Module) -> None:
        self.source = source
        self.module = module
        self.root = parse(source.text, "hcl")

    def text(self, node: Node) -> str:
        return self.source.text[node.start_byte : node.end_byte]

    def blocks(self) -> Iterator[Block]:
        for node in self._inside(self.root):
            if node.type == "block":
                yield self._block(node)

    def _inside(self, node: Node) -> Iterator[Node]:
        for child in named(node):
            yield from self._inside(child) if child.type in ("body", "ERROR") else (child,)

    def _block(self, node: Node) -> Block:
        heads = [child for child in node.children if child.type in ("identifier", "string_lit")]
        words = [self.text(head).strip('"') for head in heads]
        last = heads[-1]
        return Block(words[0], tuple(words[1:]), self, node, last.start_byte, last.end_byte)

    def attributes(self, node: Node) -> dict[str, Node]:
        """The expressions of a body's attributes, by name."""
        found: dict[str, Node] = {}
        for child in self._inside(node):
            parts = list(named(child)) if child.type == "attribute" else []
            if len(parts) == 2:
                found[self.text(parts[0])] = parts[1]
        return found

    def body(self, node: Node, scope: Scope) -> Any:
        keys: dict[str, Any] = {}
        values: dict[str, list[Any]] = {}
        attributes: dict[str, Any] = {}
        for child in self._inside(node):
            if child.type == "attribute" and len(parts := list(named(child))) == 2:
                name = self.text(parts[0])
                keys[name] = self._key(parts[0])
                attributes[name] = self.value(parts[1], scope)
            elif child.type == "block":
                block = self._block(child)
                for kind, body in self._expanded(block, scope):
                    keys.setdefault(kind, self._key(child.children[0], kind))
                    values.setdefault(kind, []).append(body)
        pairs = [(keys[name], value) for name, value in attributes.items()]
        for kind, bodies in values.items():
            whole = made.sequence(bodies, self.source, bodies[0].start_mark.index, bodies[-1].end_mark.index)
            pairs.append((keys[kind], whole))
        return made.mapping(pairs, self.source, node.start_byte, node.end_byte)

    def _key(self, node: Node, text: str | None = None) -> Any:
        start, end = node.start_byte, node.end_byte
        if text is None or text == self.text(node):
            return made.scalar(self._fragment(start, end))
        return made.scalar(Fragment(text, self.source, [start] * (len(text) + 1)), start=start, end=end)

    def _expanded(self, block: Block, scope: Scope) -> Iterator[tuple[str, Any]]:
        """A nested block, or those that a `dynamic` one makes."""
        if block.kind != "dynamic" or not block.labels:
            yield block.kind, block.body(scope)
            return
        name = block.labels[0]
        parts = self.attributes(block.node)
        content = next((child for child in self._inside(block.node) if child.type == "block"), None)
        if content is None or "for_each" not in parts:
            return
        iterator = self.text(parts["iterator"]) if "iterator" in parts else name
        for key, value in _pairs(self.value(parts["for_each"], scope)):
            yield name, self.body(content, {**scope, iterator: {"key": key, "value": value}})

    def _fragment(self, start: int, end: int) -> Fragment:
        return Fragment(self.source.text[start:end], self.source, range(start, end + 1))

    # Expressions

    def value(self, node: Node, scope: Scope) -> Any:
        """What an expression comes to, as a node; unknown where the folder does not tell."""
        module = self.module
        module.steps += 1
        if module.steps > MAX_STEPS or module.depth > MAX_DEPTH:
            return self._open(node, "it is too long or nested too deeply")
        module.depth += 1
        try:
            return self._value(node, scope)
        finally:
            module.depth -= 1

    def _value(self, node: Node, scope: Scope) -> Any:
        if node.type == "expression":
            parts = list(named(node))
            if not parts:
                return self._open(node)
            if parts[0].type == "variable_expr":
                return self._reference(node, parts, scope)
            value = self.value(parts[0], scope)
            return self._steps(node, value, parts[1:], scope)
        reader = _READERS.get(node.type)
        return self._open(node) if reader is None else reader(self, node, scope)

    def _open(self, node: Node, why: str | None = None) -> Any:
        reason = why or f"Terraform works it out: {self.text(node)[:80]}"
        return made.unknown(reason, self.source, node.start_byte, node.end_byte)

    def _wrapper(self, node: Node, scope: Scope) -> Any:
        """A rule of the grammar that holds one other."""
        parts = list(named(node))
        return self.value(parts[0], scope) if len(parts) == 1 else self._open(node)

    def _string(self, node: Node, scope: Scope) -> Any:
        return self._template(node, scope, node.start_byte + 1, max(node.end_byte - 1, node.start_byte + 1))

    def _heredoc(self, node: Node, scope: Scope) -> Any:
        """The lines between the markers; `<<-` takes as many blanks off each as the least indented has."""
        text = self.source.text
        markers = [child for child in node.children if child.type == "heredoc_identifier"]
        first = text.find("\n", markers[0].end_byte if markers else node.start_byte) + 1
        last = text.rfind("\n", 0, markers[-1].start_byte) + 1 if len(markers) > 1 else node.end_byte
        if not first or last < first:
            return made.scalar(self._fragment(node.start_byte, node.start_byte))
        whole = self._template(node, scope, first, last, quoted=False)
        is_indented = any(child.type == "heredoc_start" and "-" in self.text(child) for child in node.children)
        if is_indented and hasattr(whole, "fragment"):
            return made.scalar(_dedented(whole.fragment), start=node.start_byte, end=node.end_byte)
        return whole

    def _template(self, node: Node, scope: Scope, start: int, end: int, *, quoted: bool = True) -> Any:
        parts: list[Fragment] = []
        inside = [child for child in named(node) if child.type in ("template_interpolation", "template_directive")]
        if quoted and len(inside) == 1 and inside[0].type == "template_interpolation":
            only = inside[0]
            if (only.start_byte, only.end_byte) == (start, end):
                return self._interpolated(only, scope)
        at = start
        for child in inside:
            parts.append(self._literal(at, child.start_byte, quoted=quoted))
            parts.append(self._part(child, scope, leads=child.start_byte == start))
            at = child.end_byte
        parts.append(self._literal(at, end, quoted=quoted))
        whole = made.joined(parts, self.source)
        if len(whole.text) > MOST_CHARACTERS:
            return self._open(node, f"it is longer than {MOST_CHARACTERS} characters")
        return made.scalar(whole, start=node.start_byte, end=node.end_byte)

    def _interpolated(self, node: Node, scope: Scope) -> Any:
        expression = next((child for child in named(node) if child.type == "expression"), None)
        return self._open(node) if expression is None else self.value(expression, scope)

    def _part(self, node: Node, scope: Scope, *, leads: bool) -> Fragment:
        """What an interpolation puts into a text, which stands where the expression does, from end to end."""
        value = self._interpolated(node, scope) if node.type == "template_interpolation" else self._open(node)
        start, end = node.start_byte, node.end_byte
        if not hasattr(value, "fragment"):
            value = self._open(node)
        hole = made.hole_in(value)
        if hole is not None:
            spelled = self.source.text[start:end]
            why = Unknown(hole.reason, self.source.span(start, end), spelled)
            return Fragment(MASK * (end - start), self.source, range(start, end + 1), {0: why})
        text = value.fragment.text
        offsets = [min(start + at, end - 1) for at in range(len(text))]
        if len(text) > 1 or (text and not leads):
            offsets[-1] = end - 1
        return Fragment(text, self.source, [*offsets, end])

    def _literal(self, start: int, end: int, *, quoted: bool) -> Fragment:
        raw = self.source.text[start:end]
        if "\\" not in raw and "$$" not in raw and "%%" not in raw:
            return self._fragment(start, end)
        text: list[str] = []
        offsets: list[int] = []
        at = 0
        for escape in _ESCAPE.finditer(raw):
            if not quoted and escape[4] is None and escape[5] is None:
                continue
            text.append(raw[at : escape.start()])
            offsets += range(start + at, start + escape.start())
            character = _unescaped(escape)
            text.append(character)
            offsets += [start + escape.start()] * len(character)
            at = escape.end()
        text.append(raw[at:])
        return Fragment("".join(text), self.source, [*offsets, *range(start + at, end + 1)])

    def _number(self, node: Node, scope: Scope) -> Any:
        tag = made.FRACTION if any(mark in self.text(node) for mark in ".eE") else made.NUMBER
        return made.scalar(self._fragment(node.start_byte, node.end_byte), tag)

    def _truth(self, node: Node, scope: Scope) -> Any:
        return made.scalar(self._fragment(node.start_byte, node.end_byte), made.TRUTH)

    def _null(self, node: Node, scope: Scope) -> Any:
        return made.scalar(self._fragment(node.start_byte, node.end_byte), NULL)

    def _tuple(self, node: Node, scope: Scope) -> Any:
        items = [self.value(child, scope) for child in named(node) if child.type == "expression"]
        return made.sequence(items, self.source, node.start_byte, node.end_byte)

    def _object(self, node: Node, scope: Scope) -> Any:
        pairs = []
        for element in named(node):
            parts = list(named(element))
            if element.type == "object_elem" and len(parts) == 2:
                pairs.append((self._object_key(parts[0], scope), self.value(parts[1], scope)))
        return made.mapping(pairs, self.source, node.start_byte, node.end_byte)

    def _object_key(self, node: Node, scope: Scope) -> Any:
        parts = list(named(node))
        if len(parts) == 1 and parts[0].type == "variable_expr":
            return self._key(node)
        key = self.value(node, scope)
        return key if hasattr(key, "fragment") else self._key(node)

    def _conditional(self, node: Node, scope: Scope) -> Any:
        parts = list(named(node))
        if len(parts) != 3:
            return self._open(node)
        truth = _truth_of(self.value(parts[0], scope))
        if truth is not None:
            return self.value(parts[1 if truth else 2], scope)
        yes, no = self.value(parts[1], scope), self.value(parts[2], scope)
        same = _known(yes) is not None and _known(yes) == _known(no)
        return yes if same else self._open(node)

    def _unary(self, node: Node, scope: Scope) -> Any:
        parts = list(named(node))
        if not parts:
            return self._open(node)
        value = self.value(parts[0], scope)
        known = _known(value)
        operator = self.text(node)[:1]
        if known is None:
            return self._open(node)
        if operator == "-":
            return self._worked_out(node, f"-{known}", value.tag)
        return self._worked_out(node, "false" if known == "true" else "true", made.TRUTH)

    def _binary(self, node: Node, scope: Scope) -> Any:
        parts = list(named(node))
        if len(parts) != 2:
            return self._open(node)
        operator = self.source.text[parts[0].end_byte : parts[1].start_byte].strip(" \t\n()")
        left, right = (_known(self.value(part, scope)) for part in parts)
        if operator in ("&&", "||"):
            decided = "false" if operator == "&&" else "true"
            if decided in (left, right):
                return self._worked_out(node, decided, made.TRUTH)
        result = None if left is None or right is None else _calculated(operator, left, right)
        return self._open(node) if result is None else self._worked_out(node, *result)

    def _worked_out(self, node: Node, text: str, tag: str = made.TEXT) -> Any:
        """A value that no place of the file holds; it stands where its expression does."""
        start, end = node.start_byte, node.end_byte
        offsets = [min(start + at, max(end - 1, start)) for at in range(len(text))]
        return made.scalar(Fragment(text, self.source, [*offsets, end]), tag, start, end)

    def _for(self, node: Node, scope: Scope) -> Any:
        """`[for x in xs : x]` and `{for k, v in m : k => v}`, where what they go through is known."""
        intro = next((child for child in named(node) if child.type == "for_intro"), None)
        results = [child for child in named(node) if child.type == "expression"]
        condition = next((child for child in named(node) if child.type == "for_cond"), None)
        if intro is None or not results:
            return self._open(node)
        names = [self.text(child) for child in named(intro) if child.type == "identifier"]
        over = next((child for child in named(intro) if child.type == "expression"), None)
        collection = None if over is None else self.value(over, scope)
        if collection is None or hasattr(collection, "fragment") or not names:
            return self._open(node)
        found: list[Any] = []
        for key, value in _pairs(collection):
            inner = {**scope, names[-1]: value, **({names[0]: key} if len(names) > 1 else {})}
            if condition is not None:
                test = next((child for child in named(condition) if child.type == "expression"), None)
                truth = None if test is None else _truth_of(self.value(test, inner))
                if truth is None:
                    return self._open(node)
                if not truth:
                    continue
            found.append(tuple(self.value(result, inner) for result in results[:2]))
        if len(results) > 1:
            pairs = [(key, value) for key, value in found if hasattr(key, "fragment")]
            return made.mapping(pairs, self.source, node.start_byte, node.end_byte)
        return made.sequence([item[0] for item in found], self.source, node.start_byte, node.end_byte)

    # References

    def _reference(self, node: Node, parts: Sequence[Node], scope: Scope) -> Any:
        root = self.text(parts[0])
        following = self.text(parts[1]).lstrip(". ") if len(parts) > 1 else ""
        if root in ("var", "local") and following:
            found = self.module.variable(following) if root == "var" else self.module.local(following)
            return self._open(node, found) if isinstance(found, str) else self._steps(node, found, parts[2:], scope)
        if root in scope:
            held = scope[root]
            if isinstance(held, dict):
                return self._steps(node, held[following], parts[2:], scope) if following in held else self._open(node)
            return self._steps(node, held, parts[1:], scope)
        if root == "path":
            return self._worked_out(node, ".")
        resource = self.module.resource(root, following) if following else None
        if resource is None:
            return self._open(node)
        return self._steps(node, resource, parts[2:], scope)

    def _steps(self, node: Node, value: Any, steps: Sequence[Node], scope: Scope) -> Any:
        """`.name`, `["key"]`, `[0]` behind a value."""
        for step in steps:
            key = self._step(step, scope)
            found = None if key is None else _at(value, key)
            if found is None:
                return self._open(node)
            value = found
        return value

    def _step(self, step: Node, scope: Scope) -> str | None:
        if step.type == "get_attr":
            return self.text(step).lstrip(". ")
        if step.type == "index":
            expression = next((child for inner in named(step) for child in named(inner)), None)
            return None if expression is None else _known(self.value(expression, scope))
        return None

    # Functions

    def _call(self, node: Node, scope: Scope) -> Any:
        parts = list(named(node))
        name = self.text(parts[0])
        arguments = [
            self.value(child, scope)
            for part in parts[1:]
            if part.type == "function_arguments"
            for child in named(part)
            if child.type == "expression"
        ]
        function = _FUNCTIONS.get(name)
        result = None if function is None else function(self, node, arguments)
        return self._open(node) if result is None else result

    def _same(self, node: Node, arguments: list[Any]) -> Any | None:
        """Functions that change the type or the marks of a value, or write it as a text that is read again."""
        return arguments[0] if arguments else None

    def _concat(self, node: Node, arguments: list[Any]) -> Any | None:
        items: list[Any] = []
        for argument in arguments:
            items += made.below(argument) if argument.id == "sequence" else [argument]
        return made.sequence(items, self.source, node.start_byte, node.end_byte)

    def _compact(self, node: Node, arguments: list[Any]) -> Any | None:
        if not arguments or arguments[0].id != "sequence":
            return None
        items = [item for item in made.below(arguments[0]) if item.id != "scalar" or item.value]
        return made.sequence(items, self.source, node.start_byte, node.end_byte)

    def _flatten(self, node: Node, arguments: list[Any]) -> Any | None:
        if len(arguments) != 1 or arguments[0].id != "sequence":
            return None
        return self._concat(node, list(made.below(arguments[0])))

    def _merge(self, node: Node, arguments: list[Any]) -> Any | None:
        pairs: dict[str, tuple[Any, Any]] = {}
        for argument in arguments:
            if argument.id == "mapping":
                pairs.update({key.value: (key, value) for key, value in made.below(argument)})
        return made.mapping(pairs.values(), self.source, node.start_byte, node.end_byte)

    def _first(self, node: Node, arguments: list[Any]) -> Any | None:
        """`coalesce` and `try`: the first that is there; an unknown one may be."""
        for argument in arguments:
            if argument.id != "scalar" or (argument.tag != NULL and argument.value):
                return argument
        return None

    def _lookup(self, node: Node, arguments: list[Any]) -> Any | None:
        key = _known(arguments[1]) if len(arguments) > 1 else None
        if key is None or arguments[0].id != "mapping":
            return None
        return _at(arguments[0], key) or (arguments[2] if len(arguments) > 2 else None)

    def _format(self, node: Node, arguments: list[Any]) -> Any | None:
        """`format("%s:%s", image, tag)`; what is unknown among them stays unknown in its place."""
        pattern = _known(arguments[0]) if arguments else None
        if pattern is None:
            return None
        parts: list[Fragment] = []
        at, rest = 0, list(arguments[1:])
        for found in _PLACEHOLDER.finditer(pattern):
            parts.append(self._placed(node, pattern[at : found.start()]))
            at = found.end()
            if found[1] == "%":
                parts.append(self._placed(node, "%"))
                continue
            value = rest.pop(0) if rest else None
            if value is None or not hasattr(value, "fragment"):
                return None
            hole = made.hole_in(value)
            parts.append(self._placed(node, value.value, hole))
        parts.append(self._placed(node, pattern[at:]))
        return made.scalar(made.joined(parts, self.source), start=node.start_byte, end=node.end_byte)

    def _placed(self, node: Node, text: str, hole: Unknown | None = None) -> Fragment:
        start = node.start_byte
        offsets = [start] * (len(text) + 1)
        if hole is None:
            return Fragment(text, self.source, offsets)
        return Fragment(MASK * len(text), self.source, offsets, {0: hole})

    def _join(self, node: Node, arguments: list[Any]) -> Any | None:
        separator = _known(arguments[0]) if len(arguments) == 2 else None
        if separator is None or arguments[1].id != "sequence":
            return None
        parts: list[Fragment] = []
        for place, item in enumerate(made.below(arguments[1])):
            if not hasattr(item, "fragment"):
                return None
            if place:
                parts.append(self._placed(node, separator))
            of_this_file = item.source is self.source
            parts.append(item.fragment if of_this_file else self._placed(node, item.value, made.hole_in(item)))
        return made.scalar(made.joined(parts, self.source), start=node.start_byte, end=node.end_byte)

    def _length(self, node: Node, arguments: list[Any]) -> Any | None:
        if len(arguments) != 1 or (arguments[0].id == "scalar" and _known(arguments[0]) is None):
            return None
        return self._worked_out(node, str(len(arguments[0].value)), made.NUMBER)

    def _extreme(self, node: Node, arguments: list[Any]) -> Any | None:
        numbers = [_as_number(_known(argument)) for argument in arguments]
        if not numbers or any(number is None for number in numbers):
            return None
        largest = self.text(node).startswith("max")
        chosen = (max if largest else min)(number for number in numbers if number is not None)
        return arguments[numbers.index(chosen)]

    def _changed(self, node: Node, arguments: list[Any]) -> Any | None:
        text = _known(arguments[0]) if arguments else None
        change = _CHANGES.get(self.text(node).partition("(")[0].strip())
        return None if text is None or change is None else self._worked_out(node, change(text))

    def _read_file(self, node: Node, arguments: list[Any]) -> Any | None:
        """`file("${path.module}/x")` and `templatefile` with its variables put in."""
        path = _known(arguments[0]) if arguments else None
        found = self.module.files(path.removeprefix("./")) if path is not None else None
        if not isinstance(found, Source):
            return None
        whole = Fragment.whole(found)
        if len(arguments) > 1 and arguments[1].id == "mapping":
            whole = _filled(whole, arguments[1])
        return made.scalar(whole)


_READERS: dict[str, Callable[[_File, Node, Scope], Any]] = {
    "literal_value": _File._wrapper,
    "template_expr": _File._wrapper,
    "collection_value": _File._wrapper,
    "operation": _File._wrapper,
    "for_expr": _File._wrapper,
    "string_lit": _File._string,
    "quoted_template": _File._string,
    "heredoc_template": _File._heredoc,
    "numeric_lit": _File._number,
    "bool_lit": _File._truth,
    "null_lit": _File._null,
    "tuple": _File._tuple,
    "object": _File._object,
    "conditional": _File._conditional,
    "unary_operation": _File._unary,
    "binary_operation": _File._binary,
    "for_tuple_expr": _File._for,
    "for_object_expr": _File._for,
    "function_call": _File._call,
    "variable_expr": lambda file, node, scope: file._reference(node, [node], scope),
}

_FUNCTIONS: dict[str, Callable[[_File, Node, list[Any]], Any | None]] = {
    **dict.fromkeys(
        (
            "tostring", "tonumber", "tobool", "tolist", "toset", "tomap", "sensitive", "nonsensitive", "yamlencode",
            "jsonencode", "base64encode", "chomp", "trimspace", "distinct", "filebase64", "ephemeralasnull",
        ),
        _File._same,
    ),
    "concat": _File._concat,
    "compact": _File._compact,
    "flatten": _File._flatten,
    "merge": _File._merge,
    "coalesce": _File._first,
    "try": _File._first,
    "lookup": _File._lookup,
    "format": _File._format,
    "join": _File._join,
    "length": _File._length,
    "max": _File._extreme,
    "min": _File._extreme,
    "lower": _File._changed,
    "upper": _File._changed,
    "file": _File._read_file,
    "templatefile": _File._read_file,
}  # fmt: skip
_CHANGES: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper}


def _known(value: Any) -> str | None:
    """The text of a scalar that is known."""
    return value.value if value.id == "scalar" and made.hole_in(value) is None else None


def _truth_of(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(_known(value) or "")


def _pairs(collection: Any) -> list[tuple[Any, Any]]:
    """Keys and values of a mapping, numbers and items of a sequence; nothing of what is unknown."""
    if collection.id == "mapping":
        return list(made.below(collection))
    if collection.id != "sequence":
        return []
    return [
        (item, item) if item.id == "scalar" else (_counted(place, item), item)
        for place, item in enumerate(made.below(collection))
    ]


def _counted(place: int, item: Any) -> Any:
    at = item.start_mark.index
    text = str(place)
    return made.scalar(Fragment(text, item.source, [at] * (len(text) + 1)), made.NUMBER)


def _at(value: Any, key: str) -> Any | None:
    """The part of a value under a key or number; a block that stands alone is its own first."""
    if value.id == "mapping":
        found = [item for name, item in made.below(value) if name.value == key]
        return found[-1] if found else None
    if value.id == "sequence" and key.isdigit() and int(key) < len(value.value):
        return made.below(value)[int(key)]
    return None


def _as_number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _calculated(operator: str, left: str, right: str) -> tuple[str, str] | None:
    """A comparison or a sum, and its kind."""
    if operator in ("==", "!="):
        return ("true" if (left == right) == (operator == "==") else "false"), made.TRUTH
    if operator in ("&&", "||"):
        both = [text == "true" for text in (left, right)]
        return ("true" if (all(both) if operator == "&&" else any(both)) else "false"), made.TRUTH
    first, second = _as_number(left), _as_number(right)
    if first is None or second is None:
        return None
    if operator in _COMPARISONS:
        return ("true" if _COMPARISONS[operator](first, second) else "false"), made.TRUTH
    if operator not in _SUMS or (operator in "/%" and not second):
        return None
    result = _SUMS[operator](first, second)
    whole = result.is_integer()
    return (str(int(result)) if whole else str(result)), made.NUMBER if whole else made.FRACTION


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}
_SUMS: dict[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "%": lambda left, right: left % right,
}


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    if code:
        number = int(code, 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    if escape[4] or escape[5]:
        return escape[4] or escape[5]
    return _ESCAPED.get(escape[3], escape[3])


def _dedented(fragment: Fragment) -> Fragment:
    lines = fragment.text.splitlines(keepends=True)
    indents = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    taken = min(indents, default=0)
    parts: list[Fragment] = []
    at = 0
    for line in lines:
        skipped = min(taken, len(line) - len(line.lstrip(" ")))
        parts.append(fragment.part(at + skipped, at + len(line)))
        at += len(line)
    return made.joined(parts, fragment.source) if parts else fragment


def _filled(template: Fragment, variables: Any) -> Fragment:
    """A template file with its plain variables put in; any other expression in it is unknown."""
    known = {key.value: value for key, value in made.below(variables)}
    parts: list[Fragment] = []
    at = 0
    for found in _TEMPLATE.finditer(template.text):
        start, end = found.span()
        parts.append(template.part(at, start))
        at = end
        if found[0] in ("$${", "%%{"):
            parts.append(template.part(start + 1, end))
            continue
        value = known.get(found[1] or "")
        hole = made.hole_in(value) if value is not None else None
        if value is None or not hasattr(value, "fragment") or hole is not None:
            reason = hole.reason if hole else f"Terraform fills it in: {found[0][:80]}"
            why = Unknown(reason, template.span(start, end), found[0])
            parts.append(Fragment(MASK * (end - start), template.source, range(start, end + 1), {0: why}))
        else:
            text = value.fragment.text
            offsets = [min(start + place, end - 1) for place in range(len(text))]
            parts.append(Fragment(text, template.source, [*offsets, end]))
    parts.append(template.part(at, len(template.text)))
    return made.joined(parts, template.source)
