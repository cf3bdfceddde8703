"""Go templates of a chart carried out as far as its own values tell: what is left is left as it was written.

References, defaults, quotes, `toYaml`, and `if`, `with` and `range` on values that are known are replaced by what they
make; an action with anything else in it stays in the text, where it is masked like any template.  Each character keeps
its place: in the values where one value is all that is written there, else in the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from shardlint.findings.records import NamedTuple
from shardlint.text.assembled import Assembled
from shardlint.text.nodes import CORE_TAGS, Mapping, Node, Scalar, Sequence
from shardlint.text.source import Source
from shardlint.text.templates import Action, actions

MOST_CHARACTERS = 2_000_000
MOST_STEPS = 20_000
"""Actions that are carried out: loops in loops grow by powers."""
_TOKEN = re.compile(
    r'\s*(?:"((?:\\.|[^"\\])*)"|`([^`]*)`|(-?\d+(?:\.\d+)?)(?![\w.])|(\$\w*(?:\.\w+)*|\.\w*(?:\.\w+)*)|(\w+)|([()|])|(:?=)|(,))'
)
_ALIASES = re.compile(r"(?:^|[\s\[{,])(?:[*&][\w-]|<<\s*:)")
_ONLY_A_KEY = re.compile(r"\s*(?:- +)*(?:[\w./-]+:\s+)?[\"']?")
_BEGIN = frozenset({"if", "with", "range", "define", "block"})


class Unresolved(Exception):
    """An expression that the chart's own values do not tell, or that is not understood."""


class _Branch(NamedTuple):
    """A part of a block: the action before it (`if`, `else if`, `else`) and what it holds."""

    action: Action
    body: list[_Part]


class _Block(NamedTuple):
    branches: list[_Branch]
    end: Action


_Part = tuple[int, int] | Action | _Block
"""Text from here to there, an action that prints or assigns, or a block."""


def filled(source: Source, values: Node | None, chart: Node | None) -> Source | None:
    """The template with what its chart tells put in; None where nothing of it is told, or its blocks do not close."""
    if "{{" not in source.text or "{%" in source.text:
        return None
    parts = _parsed(source.text)
    if parts is None:
        return None
    run = _Run(source, {"Values": values, "Chart": _chart(chart)})
    try:
        run.parts(parts, _Scope(run.root, {"": run.root}))
    except (RecursionError, _TooMuch):
        return None
    return run.result() if run.did_any else None


class _TooMuch(Exception):
    pass


def _chart(chart: Node | None) -> dict[str, Any]:
    """`.Chart.AppVersion`: the keys of Chart.yaml begin with a capital there."""
    found = chart.items() if isinstance(chart, Mapping) else ()
    return {key.text[:1].upper() + key.text[1:]: value for key, value in found}


def _parsed(text: str) -> list[_Part] | None:
    """Text, actions and blocks in each other; None where they do not match."""
    root: list[_Part] = []
    open_blocks: list[tuple[list[_Branch], list[_Part]]] = []
    here, at = root, 0
    for action in actions(text):
        if at < action.start:
            here.append((at, action.start))
        at = action.end
        if action.control and action.word in _BEGIN:
            branch = _Branch(action, [])
            open_blocks.append(([branch], here))
            here = branch.body
        elif action.control and action.word == "else":
            if not open_blocks:
                return None
            branch = _Branch(action, [])
            open_blocks[-1][0].append(branch)
            here = branch.body
        elif action.control and action.word == "end":
            if not open_blocks:
                return None
            branches, here = open_blocks.pop()
            here.append(_Block(branches, action))
        else:
            here.append(action)
    if at < len(text):
        here.append((at, len(text)))
    return None if open_blocks else root


class _Scope:
    """The dot and the variables in force. Variables of an outer block can be set from an inner one."""

    def __init__(self, dot: Any, variables: dict[str, Any], outer: _Scope | None = None) -> None:
        self.dot = dot
        self.variables = variables
        self.outer = outer

    def inner(self, dot: Any) -> _Scope:
        return _Scope(dot, {}, self)

    def get(self, name: str) -> Any:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.outer
        raise Unresolved

    def assign(self, name: str, value: Any) -> None:
        scope: _Scope | None = self
        while scope is not None and name not in scope.variables:
            scope = scope.outer
        (scope or self).variables[name] = value


UNKNOWN: Final = object()


class _Run:
    """One template while it is carried out."""

    def __init__(self, source: Source, root: dict[str, Any]) -> None:
        self.root = {**root, "Release": UNKNOWN, "Capabilities": UNKNOWN, "Template": UNKNOWN, "Files": UNKNOWN}
        self.did_any = False
        self._source = source
        self._text: list[str] = []
        self._offsets: list[int] = []
        self._owners: list[int] = []
        self._sources: list[Source] = [source]
        self._trims = False
        self._steps = 0

    def result(self) -> Source:
        return Assembled(self._source.path, "".join(self._text), self._offsets, self._owners, self._sources)

    def parts(self, parts: list[_Part], scope: _Scope, *, certain: bool = True) -> None:
        """`certain`: whether these parts are sure to be there, so that what they assign holds afterwards."""
        for part in parts:
            self._steps += 1
            if self._steps > MOST_STEPS or len(self._text) > MOST_CHARACTERS:
                raise _TooMuch
            if isinstance(part, Action):
                self._action(part, scope, certain=certain)
            elif isinstance(part, _Block):
                self._block(part, scope, certain=certain)
            else:
                self._copy(*part)

    # What stands in the template

    def _copy(self, start: int, end: int) -> None:
        text = self._source.text
        if self._trims:
            while start < end and text[start].isspace():
                start += 1
            self._trims = self._trims and start == end
        self._text += text[start:end]
        self._offsets += range(start, end)
        self._owners += [0] * (end - start)

    def _leave(self, action: Action) -> None:
        """An action that is not told stays as it is."""
        self._trims = False
        self._copy(action.start, action.end)

    def _open(self, action: Action) -> None:
        """Before what an action makes: it may take the blanks before it away."""
        self.did_any = True
        self._trims = False
        if self._source.text.startswith("{{-", action.start):
            while self._text and self._text[-1].isspace():
                for column in (self._text, self._offsets, self._owners):
                    column.pop()

    def _close(self, action: Action) -> None:
        self._trims = self._source.text.startswith("-}}", action.end - 3)

    def _inside(self, action: Action) -> str:
        return self._source.text[action.start + 2 : action.end - 2].removeprefix("-").removesuffix("-").strip()

    # What it makes

    def _action(self, action: Action, scope: _Scope, *, certain: bool) -> None:
        inside = self._inside(action)
        if inside.startswith("/*"):
            self._open(action)
            self._close(action)
            return
        assigned = re.match(r"\$(\w+)\s*(:?=)\s*(.*)", inside, re.DOTALL)
        try:
            if assigned is not None:
                value = _evaluated(assigned[3], scope) if certain or assigned[2] == ":=" else UNKNOWN
                self._set(scope, assigned[1], assigned[2], value)
                if value is UNKNOWN:
                    raise Unresolved
                self._open(action)
                self._close(action)
                return
            made = _evaluated(inside, scope)
            printed = _printed(made)
        except Unresolved:
            if assigned is not None:
                self._set(scope, assigned[1], assigned[2], UNKNOWN)
            self._leave(action)
            return
        self._open(action)
        self._print(printed, action)
        self._close(action)

    def _set(self, scope: _Scope, name: str, sign: str, value: Any) -> None:
        if sign == ":=":
            scope.variables[name] = value
        else:
            scope.assign(name, value)

    def _print(self, printed: list[tuple[str, Node | None, int]], action: Action) -> None:
        whole = len(printed) == 1 and self._is_whole(action)
        for text, node, at in printed:
            if node is None or not (whole or at >= 0):
                self._put(text, self._source, [action.start] * max(len(text) - 1, 0) + [action.end - 1])
            else:
                start, end = node.start, max(node.start, node.end - 1)
                exact = at if at >= 0 else node.source.text.find(text, node.start, node.end) if text else -1
                places = range(exact, exact + len(text)) if exact >= 0 else [start] * max(len(text) - 1, 0) + [end]
                self._put(text, node.source, list(places))

    def _is_whole(self, action: Action) -> bool:
        """Whether the action is all that its line says behind a key or a dash, quotes aside."""
        text = self._source.text
        first = text.rfind("\n", 0, action.start) + 1
        last = text.find("\n", action.end)
        before, after = text[first : action.start], text[action.end : last if last >= 0 else len(text)]
        return _ONLY_A_KEY.fullmatch(before) is not None and after.strip() in ("", '"', "'")

    def _put(self, text: str, source: Source, offsets: list[int]) -> None:
        if not text:
            return
        if source not in self._sources:
            self._sources.append(source)
        self._text += text
        self._offsets += offsets[: len(text)]
        self._owners += [self._sources.index(source)] * len(text)

    # Blocks

    def _block(self, block: _Block, scope: _Scope, *, certain: bool) -> None:
        first = block.branches[0].action
        if first.word == "define":
            self._open(first)
            self._close(block.end)
            return
        if first.word == "range":
            self._range(block, scope, certain=certain)
            return
        for number, branch in enumerate(block.branches):
            try:
                chosen, dot = self._chosen(branch.action, first.word, scope)
            except Unresolved:
                self._left(block, number, scope)
                return
            if chosen:
                self._open(first)
                self._close(branch.action)
                self.parts(branch.body, scope.inner(dot), certain=certain)
                after = block.branches[number + 1].action if number + 1 < len(block.branches) else block.end
                self._open(after)
                self._close(block.end)
                return
        self._open(first)
        self._close(block.end)

    def _chosen(self, action: Action, kind: str, scope: _Scope) -> tuple[bool, Any]:
        inside = self._inside(action)
        inside = re.sub(r"^(?:else\b\s*)?(?:if\b|with\b)?\s*", "", inside)
        if not inside:
            return True, scope.dot
        assigned = re.match(r"\$(\w+)\s*:=\s*(.*)", inside, re.DOTALL)
        value = _evaluated(assigned[2] if assigned else inside, scope)
        if assigned:
            scope.variables[assigned[1]] = value
        return _truth(value), value if kind == "with" else scope.dot

    def _left(self, block: _Block, number: int, scope: _Scope) -> None:
        """A block whose condition is not told, from that branch on: all of it may be there."""
        action = block.branches[number].action
        if number:
            self._leave(block.branches[0].action)
        for branch in block.branches[number:]:
            if branch.action is not action or not number:
                self._leave(branch.action)
            dot = UNKNOWN if block.branches[0].action.word == "with" else scope.dot
            self.parts(branch.body, scope.inner(dot), certain=False)
        self._leave(block.end)

    def _range(self, block: _Block, scope: _Scope, *, certain: bool) -> None:
        branch = block.branches[0]
        inside = re.sub(r"^range\b\s*", "", self._inside(branch.action))
        named = re.match(r"\$(\w+)(?:\s*,\s*\$(\w+))?\s*:=\s*(.*)", inside, re.DOTALL)
        try:
            over = _evaluated(named[3] if named else inside, scope)
            entries = list(_entries(over))
        except Unresolved:
            self._leave(branch.action)
            inner = scope.inner(UNKNOWN)
            inner.variables.update({name: UNKNOWN for name in (named.groups()[:2] if named else ()) if name})
            self.parts(branch.body, inner, certain=False)
            for other in block.branches[1:]:
                self._leave(other.action)
                self.parts(other.body, scope.inner(scope.dot), certain=False)
            self._leave(block.end)
            return
        self._open(branch.action)
        if not entries and len(block.branches) > 1:
            self._close(block.branches[1].action)
            self.parts(block.branches[1].body, scope.inner(scope.dot), certain=certain)
            self._open(block.end)
        for key, value in entries:
            self._close(branch.action)
            inner = scope.inner(value)
            if named is not None:
                both = (key, value) if named[2] else (value,)
                inner.variables.update(zip([name for name in named.groups()[:2] if name], both, strict=True))
            self.parts(branch.body, inner, certain=certain)
            self._open(block.branches[1].action if len(block.branches) > 1 else block.end)
        self._close(block.end)


# Expressions


def _evaluated(text: str, scope: _Scope) -> Any:
    """The value of a pipeline. Raises Unresolved."""
    tokens = list(_tokens(text))
    value, rest = _pipeline(tokens, scope)
    if rest or value is UNKNOWN:
        raise Unresolved
    return value


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, kinds = 0, ("text", "text", "number", "path", "word", "sign", "assign", "comma")
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None or match.lastindex is None:
            raise Unresolved
        group = match.lastindex
        written = match[group]
        yield kinds[group - 1], re.sub(r"\\(.)", _unescaped, written) if group == 1 else written
        at = match.end()


def _unescaped(match: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t"}.get(match[1], match[1])


_Tokens = list[tuple[str, str]]


def _pipeline(tokens: _Tokens, scope: _Scope) -> tuple[Any, _Tokens]:
    value, tokens = _command(tokens, scope, [])
    while tokens and tokens[0] == ("sign", "|"):
        value, tokens = _command(tokens[1:], scope, [value])
    return value, tokens


def _command(tokens: _Tokens, scope: _Scope, last: list[Any]) -> tuple[Any, _Tokens]:
    if not tokens:
        raise Unresolved
    kind, written = tokens[0]
    if kind == "word" and written not in ("true", "false", "nil"):
        tokens = tokens[1:]
        arguments: list[Any] = []
        while tokens and tokens[0] not in (("sign", "|"), ("sign", ")")):
            argument, tokens = _operand(tokens, scope)
            arguments.append(argument)
        return _called(written, [*arguments, *last]), tokens
    if last:
        raise Unresolved
    return _operand(tokens, scope)


def _operand(tokens: _Tokens, scope: _Scope) -> tuple[Any, _Tokens]:
    (kind, written), rest = tokens[0], tokens[1:]
    if kind == "text":
        return written, rest
    if kind == "number":
        return (float(written) if "." in written else int(written)), rest
    if kind == "path":
        return _looked_up(written, scope), rest
    if (kind, written) == ("sign", "("):
        value, rest = _pipeline(rest, scope)
        if not rest or rest[0] != ("sign", ")"):
            raise Unresolved
        if len(rest) > 1 and rest[1][0] == "path" and rest[1][1].startswith(".") and len(rest[1][1]) > 1:
            raise Unresolved
        return value, rest[1:]
    if written in ("true", "false", "nil"):
        return {"true": True, "false": False, "nil": None}[written], rest
    raise Unresolved


def _looked_up(path: str, scope: _Scope) -> Any:
    steps = path.split(".")
    value = scope.get(steps[0][1:]) if path.startswith("$") else scope.dot
    for step in steps[1:]:
        if step:
            value = _field(value, step)
    if value is UNKNOWN:
        raise Unresolved
    return value


def _field(value: Any, name: str) -> Any:
    if value is UNKNOWN:
        raise Unresolved
    if isinstance(value, Node):
        if value.templated:
            raise Unresolved
        return value.get(name) if isinstance(value, Mapping) else None
    return value.get(name) if isinstance(value, dict) else None


def _plain(value: Any) -> Any:
    """A scalar of the values as text, number, truth or nothing; anything else as it is."""
    if not isinstance(value, Scalar):
        return value
    if value.templated or not value.tag.startswith(CORE_TAGS):
        raise Unresolved
    kind = value.tag.removeprefix(CORE_TAGS)
    if kind == "null":
        return None
    if kind == "bool":
        return value.text.lower() in ("true", "yes", "on")
    if kind == "int" and re.fullmatch(r"[-+]?\d+", value.text):
        return int(value.text)
    if kind == "float" and re.fullmatch(r"[-+]?\d*\.?\d+", value.text):
        return float(value.text)
    return value.text


def _truth(value: Any) -> bool:
    if isinstance(value, Mapping | Sequence):
        return len(value) > 0
    return bool(_plain(value))


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    value = _plain(value)
    if isinstance(value, Mapping):
        yield from sorted(((key.text, one) for key, one in value.items()), key=lambda entry: entry[0])
    elif isinstance(value, Sequence):
        yield from enumerate(value)
    elif value is not None:
        raise Unresolved


class _Yaml(NamedTuple):
    """Lines that `toYaml` makes, each with its place in the values, and what `nindent` and `indent` add to them."""

    lines: list[tuple[str, int]]
    node: Node
    indent: int = 0
    breaks: bool = False


class _Quoted(NamedTuple):
    text: str
    node: Node | None


def _printed(value: Any) -> list[tuple[str, Node | None, int]]:
    """The text of a value in pieces: each with its node, and its place there where it is known."""
    if isinstance(value, _Yaml):
        pieces: list[tuple[str, Node | None, int]] = [("\n", None, -1)] if value.breaks else []
        for number, (line, at) in enumerate(value.lines):
            pieces.append((("\n" if number else "") + " " * value.indent, None, -1))
            pieces.append((line, value.node, at))
        return pieces
    if isinstance(value, _Quoted):
        return [(value.text, value.node, -1)]
    if isinstance(value, Mapping | Sequence | dict | list):
        raise Unresolved
    return [(_as_text(value), value if isinstance(value, Scalar) else None, -1)]


def _as_text(value: Any) -> str:
    if isinstance(value, _Quoted):
        return value.text
    if isinstance(value, Scalar):
        plain = _plain(value)
        return "" if plain is None else value.text if not isinstance(plain, bool) else str(plain).lower()
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise Unresolved


def _to_yaml(value: Any) -> Any:
    if not isinstance(value, Node) or value.templated:
        raise Unresolved
    if isinstance(value, Scalar):
        return value
    raw = value.source.text[value.start : value.end]
    if _ALIASES.search(raw) or type(value.source) is not Source:
        raise Unresolved
    column = value.start - (value.source.text.rfind("\n", 0, value.start) + 1)
    lines, at = [], value.start
    for line in raw.split("\n"):
        cut = 0 if at == value.start else min(column, len(line) - len(line.lstrip(" ")))
        lines.append((line[cut:], at + cut))
        at += len(line) + 1
    return _Yaml(lines, value)


def _indented(arguments: list[Any], *, breaks: bool) -> Any:
    columns, value = arguments
    if not isinstance(columns, int):
        raise Unresolved
    if isinstance(value, _Yaml):
        return value._replace(indent=value.indent + columns, breaks=breaks)
    text = _as_text(value)
    start = "\n" if breaks else ""
    return start + "\n".join(" " * columns + line for line in text.split("\n"))


def _quoted(value: Any, sign: str = '"') -> _Quoted:
    text = _as_text(value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") if sign == '"' else text
    return _Quoted(sign + escaped + sign, value if isinstance(value, Scalar) else None)


def _default(arguments: list[Any]) -> Any:
    fallback, value = arguments
    return value if _truth(value) else fallback


def _printf(arguments: list[Any]) -> str:
    form, rest = _as_text(arguments[0]), [_as_text(one) for one in arguments[1:]]
    if len(re.findall(r"%[sdvq]", form)) != len(rest) or re.search(r"%[^sdv]", form):
        raise Unresolved
    return re.sub(r"%[sdv]", lambda _: rest.pop(0), form)


def _same(first: Any, second: Any) -> bool:
    return bool(_plain(first) == _plain(second))


def _number(value: Any) -> int:
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, int | float | str):
        raise Unresolved
    try:
        return int(float(plain))
    except ValueError:
        raise Unresolved from None


def _last_true(arguments: list[Any]) -> Any:
    return next((one for one in arguments if not _truth(one)), arguments[-1])


def _first_true(arguments: list[Any]) -> Any:
    return next((one for one in arguments if _truth(one)), arguments[-1])


_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "default": _default,
    "quote": lambda given: _quoted(*given),
    "squote": lambda given: _quoted(given[0], "'"),
    "toString": lambda given: given[0] if isinstance(given[0], Scalar) else _as_text(given[0]),
    "toYaml": lambda given: _to_yaml(*given),
    "indent": lambda given: _indented(given, breaks=False),
    "nindent": lambda given: _indented(given, breaks=True),
    "int": lambda given: given[0] if isinstance(_plain(given[0]), int) else _number(*given),
    "int64": lambda given: given[0] if isinstance(_plain(given[0]), int) else _number(*given),
    "required": lambda given: given[1],
    "trim": lambda given: _as_text(given[0]).strip(),
    "lower": lambda given: _as_text(given[0]).lower(),
    "upper": lambda given: _as_text(given[0]).upper(),
    "printf": _printf,
    "eq": lambda given: any(_same(given[0], one) for one in given[1:]),
    "ne": lambda given: not _same(given[0], given[1]),
    "not": lambda given: not _truth(*given),
    "and": _last_true,
    "or": _first_true,
    "coalesce": _first_true,
    "empty": lambda given: not _truth(*given),
    "ternary": lambda given: given[0] if _truth(given[2]) else given[1],
    "hasKey": lambda given: isinstance(given[0], Mapping) and _as_text(given[1]) in given[0],
    "gt": lambda given: _number(given[0]) > _number(given[1]),
    "ge": lambda given: _number(given[0]) >= _number(given[1]),
    "lt": lambda given: _number(given[0]) < _number(given[1]),
    "le": lambda given: _number(given[0]) <= _number(given[1]),
    "hasPrefix": lambda given: _as_text(given[1]).startswith(_as_text(given[0])),
    "contains": lambda given: _as_text(given[0]) in _as_text(given[1]),
    "get": lambda given: _field(given[0], _as_text(given[1])),
}


def _called(name: str, arguments: list[Any]) -> Any:
    function = _FUNCTIONS.get(name)
    if function is None or any(argument is UNKNOWN for argument in arguments):
        raise Unresolved
    try:
        return function(arguments)
    except (TypeError, ValueError, IndexError):
        raise Unresolved from None
