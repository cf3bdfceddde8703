"""Values in source that is not run: constants, tables of constants, defaults of fields, and the words of a type."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from source_tree import Found, Scope, linearised, statements

OPERATORS: Mapping[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
}  # fmt: skip


class NotPlain(Exception):
    """An expression whose value the text alone does not tell."""


def value(node: ast.expr, scope: Scope, given: Mapping[str, Any] | None = None) -> Any:
    """The value of an expression. Raises NotPlain."""
    names = given or {}
    match node:
        case ast.Constant():
            return node.value
        case ast.Name() if node.id in names:
            return names[node.id]
        case ast.UnaryOp(op=ast.USub()):
            return -value(node.operand, scope, names)
        case ast.UnaryOp(op=ast.Not()):
            return not value(node.operand, scope, names)
        case ast.List() | ast.Tuple() | ast.Set():
            return [part for element in node.elts for part in _element(element, scope, names)]
        case ast.Dict():
            return _table(node, scope, names)
        case ast.DictComp() | ast.ListComp():
            return _comprehended(node, scope, names)
        case ast.BinOp() if type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left, scope, names), value(node.right, scope, names))
        case ast.Call():
            return _called(node, scope, names)
        case ast.Attribute():
            return attribute(node, scope)
        case ast.Name():
            found = scope.find(node.id)
            if found is not None and isinstance(found.node, ast.expr) and found.node is not node:
                return value(found.node, found.scope)
    raise NotPlain(ast.unparse(node))


def _element(node: ast.expr, scope: Scope, names: Mapping[str, Any]) -> Any:
    return value(node.value, scope, names) if isinstance(node, ast.Starred) else [value(node, scope, names)]


def _table(node: ast.Dict, scope: Scope, names: Mapping[str, Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, part in zip(node.keys, node.values, strict=True):
        if key is None:
            found |= value(part, scope, names)
        else:
            found[value(key, scope, names)] = value(part, scope, names)
    return found


def _comprehended(node: ast.DictComp | ast.ListComp, scope: Scope, names: Mapping[str, Any]) -> Any:
    """A comprehension over one table: `{k: m for k, (m, v) in TABLE.items() if v == "X"}`, `[e.value for e in E]`."""
    (loop,) = node.generators
    if isinstance(node, ast.ListComp) and isinstance(node.elt, ast.Attribute) and node.elt.attr in ("value", "name"):
        members = enum_members(scope.class_of(loop.iter))
        if members:
            return list(members.values() if node.elt.attr == "value" else members)
    rows = [{**names, **_unpacked(loop.target, item)} for item in value(loop.iter, scope, names)]
    rows = [row for row in rows if all(_is_true(test, scope, row) for test in loop.ifs)]
    if isinstance(node, ast.ListComp):
        return [value(node.elt, scope, row) for row in rows]
    return {value(node.key, scope, row): value(node.value, scope, row) for row in rows}


def _unpacked(target: ast.expr, item: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: item}
    if not isinstance(target, ast.Tuple):
        raise NotPlain(ast.unparse(target))
    return {name: part for t, i in zip(target.elts, item, strict=True) for name, part in _unpacked(t, i).items()}


def _is_true(test: ast.expr, scope: Scope, names: Mapping[str, Any]) -> bool:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = value(test.left, scope, names), value(test.comparators[0], scope, names)
        if isinstance(test.ops[0], ast.Eq | ast.NotEq):
            return bool((left == right) is isinstance(test.ops[0], ast.Eq))
        if isinstance(test.ops[0], ast.In | ast.NotIn):
            return bool((left in right) is isinstance(test.ops[0], ast.In))
    raise NotPlain(ast.unparse(test))


def _called(node: ast.Call, scope: Scope, names: Mapping[str, Any]) -> Any:
    name = ast.unparse(node.func).rpartition(".")[2]
    if name in ("items", "keys", "values") and isinstance(node.func, ast.Attribute):
        return list(getattr(value(node.func.value, scope, names), name)())
    if name == "get_args" and (words := literals(node.args[0], scope)) is not None:
        return words
    if name in ("list", "tuple", "set", "sorted", "int", "float") and len(node.args) == 1:
        inner = value(node.args[0], scope, names)
        makers: Mapping[str, Callable[[Any], Any]] = {"sorted": sorted, "int": int, "float": float}
        return makers.get(name, list)(inner)
    if name == "cast" and len(node.args) == 2:
        return value(node.args[1], scope, names)
    if name == "get_field" and isinstance(node.args[1], ast.Constant):
        return field_default(scope.class_of(node.args[0]), str(node.args[1].value))
    if name in ("Field", "PydanticField", "field"):
        return _of_field(node, scope)
    raise NotPlain(ast.unparse(node))


def _of_field(node: ast.Call, scope: Scope) -> Any:
    """The default of `Field(default=x)`, `Field(x)` or `field(default_factory=f)`, the last as a text."""
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if (factory := keywords.get("default_factory")) is not None:
        return f"factory:{ast.unparse(factory)}"
    default = keywords.get("default", node.args[0] if node.args else None)
    if default is None:
        raise NotPlain(ast.unparse(node))
    return value(default, scope)


def attribute(node: ast.Attribute, scope: Scope) -> Any:
    """`Class.field`: the field's default; `Enum.MEMBER` and `Enum.MEMBER.value`: the value."""
    inner = node.value
    if node.attr == "value" and isinstance(inner, ast.Attribute):
        return attribute(inner, scope)
    found = scope.class_of(inner)
    if found is not None and isinstance(found.node, ast.ClassDef):
        return field_default(found, node.attr)
    module = scope.module_of(inner)
    named = module.find(node.attr) if module is not None else None
    if named is not None and isinstance(named.node, ast.expr):
        return value(named.node, named.scope)
    raise NotPlain(ast.unparse(node))


def field_default(found: Found | None, name: str) -> Any:
    """The default of a class's field, as its nearest class declares it."""
    for one in linearised(found) if found is not None else ():
        assert isinstance(one.node, ast.ClassDef)
        for statement in one.node.body:
            if (own := _assigned(statement, name)) is not None:
                return value(own, one.scope)
    raise NotPlain(name)


def _assigned(statement: ast.stmt, name: str) -> ast.expr | None:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.target.id == name:
        return statement.value
    if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in statement.targets):
        return statement.value
    return None


def enum_members(found: Found | None) -> dict[str, Any]:
    """The members of an enumeration with their values."""
    members: dict[str, Any] = {}
    if found is None or not isinstance(found.node, ast.ClassDef):
        return members
    for statement in found.node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            members[statement.targets[0].id] = value(statement.value, found.scope)
    return members


def fields(found: Found) -> dict[str, tuple[ast.AnnAssign, Scope]]:
    """The annotated fields of a class and its bases, a nearer one in the place of a farther one."""
    declared: dict[str, tuple[ast.AnnAssign, Scope]] = {}
    for one in reversed(linearised(found)):
        assert isinstance(one.node, ast.ClassDef)
        for statement in statements(one.node.body):
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name)) if "ClassVar" not in ast.unparse(statement.annotation):
                    declared[name] = (statement, one.scope)
    return declared


# Types

WRAPPERS = {"Optional", "Union", "Annotated", "SkipValidation"}


def leaves(node: ast.expr, scope: Scope) -> Iterator[tuple[str, ast.expr, Scope]]:
    """The alternatives of a type, through unions and aliases: (name, expression, where its names are known)."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from leaves(ast.parse(node.value, mode="eval").body, scope)
    elif isinstance(node, ast.Constant) and node.value is None:
        yield "None", node, scope
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from leaves(node.left, scope)
        yield from leaves(node.right, scope)
    elif isinstance(node, ast.Subscript):
        yield from _subscripted(node, scope)
    else:
        found = scope.follow(node) if isinstance(node, ast.Name | ast.Attribute) else None
        if found is not None and isinstance(found.node, ast.expr) and found.node is not node:
            yield from leaves(found.node, found.scope)
        else:
            yield ast.unparse(node).rpartition(".")[2], node, scope


def _subscripted(node: ast.Subscript, scope: Scope) -> Iterator[tuple[str, ast.expr, Scope]]:
    name = ast.unparse(node.value).rpartition(".")[2]
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name not in WRAPPERS:
        yield name, node, scope
        return
    if name == "Optional":
        yield "None", ast.Constant(None), scope
    for part in parts[:1] if name in ("Annotated", "SkipValidation") else parts:
        yield from leaves(part, scope)


def literals(node: ast.expr, scope: Scope) -> list[Any] | None:
    """The words of a type that allows nothing else, None for one that allows more."""
    words: list[Any] = []
    for name, leaf, where in leaves(node, scope):
        if name == "Literal" and isinstance(leaf, ast.Subscript):
            for part in leaf.slice.elts if isinstance(leaf.slice, ast.Tuple) else [leaf.slice]:
                inner = [part.value] if isinstance(part, ast.Constant) else literals(part, where)
                if inner is None:
                    return None
                words += inner
        elif name != "None":
            return None
    return words
