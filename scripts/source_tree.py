"""Python packages read without being imported: where a name comes from, and the bases of a class."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

PLATFORMS = {"is_cuda": True, "is_cuda_alike": True}
"""What a question about the platform (`current_platform.is_rocm()`) is answered on one with CUDA; False for others."""

Definition = ast.ClassDef | ast.FunctionDef | ast.expr


@dataclass(eq=False)
class Scope:
    """The names of a module, or of a function called with arguments, inside the module around it."""

    tree: Tree
    path: str
    """Dotted name of the module."""
    is_package: bool
    body: Sequence[ast.stmt]
    given: dict[str, Found] = field(default_factory=dict)
    outer: Scope | None = None

    @cached_property
    def names(self) -> dict[str, ast.stmt]:
        """The statement that gives each name its value: the last one, on the branch of CUDA."""
        found: dict[str, ast.stmt] = {}
        for statement in statements(self.body):
            for name in _bound(statement):
                found[name] = statement
        return found

    def find(self, name: str) -> Found | None:
        """What a name stands for, through imports and plain assignments."""
        if name in self.given:
            return self.given[name]
        statement = self.names.get(name)
        if statement is None:
            return self.outer.find(name) if self.outer else self._starred(name) or self._lazy(name)
        if isinstance(statement, ast.ImportFrom):
            return self._imported(statement, name)
        if isinstance(statement, ast.Import):
            return None
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            return Found(statement, self)
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        return None if value is None else self.follow(value)

    def follow(self, node: ast.expr) -> Found | None:
        """An expression as what it stands for: a name or a module's attribute as its definition, else itself."""
        if isinstance(node, ast.Name):
            return self.find(node.id)
        if isinstance(node, ast.Attribute) and (module := self.module_of(node.value)) is not None:
            return module.find(node.attr)
        return Found(node, self)

    def module_of(self, node: ast.expr) -> Scope | None:
        """The module of the package that an expression names, if it names one."""
        if not isinstance(node, ast.Name):
            return None
        statement = self.names.get(node.id)
        if isinstance(statement, ast.ImportFrom):
            original = next(a.name for a in statement.names if (a.asname or a.name) == node.id)
            return self.tree.module(f"{self.absolute(statement)}.{original}")
        if isinstance(statement, ast.Import):
            original = next(a.name for a in statement.names if (a.asname or a.name) == node.id)
            return self.tree.module(original)
        return self.outer.module_of(node) if self.outer else None

    def absolute(self, statement: ast.ImportFrom) -> str:
        """The dotted name of the module that an import takes from."""
        if not statement.level:
            return statement.module or ""
        parts = self.path.split(".")
        kept = parts[: len(parts) - statement.level + self.is_package]
        return ".".join([*kept, *([statement.module] if statement.module else [])])

    def _imported(self, statement: ast.ImportFrom, name: str) -> Found | None:
        module = self.tree.module(self.absolute(statement))
        original = next(a.name for a in statement.names if (a.asname or a.name) == name)
        return module.find(original) if module is not None else None

    def _starred(self, name: str) -> Found | None:
        star = self.names.get("*")
        module = self.tree.module(self.absolute(star)) if isinstance(star, ast.ImportFrom) else None
        return module.find(name) if module is not None else None

    def _lazy(self, name: str) -> Found | None:
        """A name that a module's `__getattr__` imports: by a table of names, or the module that its text names."""
        lazy = self.names.get("__getattr__")
        if not isinstance(lazy, ast.FunctionDef):
            return None
        return next(self._lazily(name, lazy), None)

    def _lazily(self, name: str, lazy: ast.FunctionDef) -> Iterator[Found]:
        for node in [*ast.walk(lazy), *(part for statement in self.body for part in ast.walk(statement))]:
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == name:
                        yield from (one for module in self._named_modules(value) if (one := module.find(name)))
            elif isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
                found = self._imported(node, name)
                yield from () if found is None else (found,)

    def _named_modules(self, node: ast.expr) -> Iterator[Scope]:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                names = [part.value.lstrip("."), f"{self.path}.{part.value.lstrip('.')}"]
                yield from (module for name in names if (module := self.tree.module(name)) is not None)

    # Classes

    def bases(self, node: ast.ClassDef) -> list[Found]:
        """The bases that lie in the package, subscripts (`Base[T]`) without their parameters."""
        found = []
        for base in node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            if (followed := self.class_of(plain)) is not None:
                found.append(followed)
        return found

    def class_of(self, node: ast.expr) -> Found | None:
        """The class that an expression stands for, also one that a function makes (`as_embedding_model(Base)`)."""
        found = self.follow(node)
        seen = 0
        while found is not None and not isinstance(found.node, ast.ClassDef) and seen < DEEPEST:
            seen += 1
            if isinstance(found.node, ast.Call):
                found = found.scope.made_by(found.node)
            elif isinstance(found.node, ast.IfExp):
                chosen = found.node.body if holds(found.node.test) is not False else found.node.orelse
                found = found.scope.follow(chosen)
            else:
                return None
        return found

    def made_by(self, call: ast.Call) -> Found | None:
        """What a function of the package returns, called with these arguments."""
        function = self.follow(call.func)
        if function is None or not isinstance(function.node, ast.FunctionDef):
            return None
        given = {
            parameter.arg: value
            for parameter, argument in zip(function.node.args.args, call.args, strict=False)
            if (value := self.class_of(argument)) is not None
        }
        inner = Scope(self.tree, self.path, self.is_package, function.node.body, given, function.scope)
        returned = [s for s in statements(function.node.body) if isinstance(s, ast.Return) and s.value is not None]
        return inner.follow(returned[-1].value) if returned and returned[-1].value is not None else None


DEEPEST = 20


@dataclass(frozen=True, eq=False)
class Found:
    """A definition, and the scope in which its own names are to be looked up."""

    node: Definition
    scope: Scope


class Tree:
    """One package, unpacked in `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[str, Scope | None] = {}
        self.orders: dict[tuple[ast.ClassDef, Scope], list[Found]] = {}

    def module(self, name: str) -> Scope | None:
        if name not in self._modules:
            self._modules[name] = self._read(name)
        return self._modules[name]

    def _read(self, name: str) -> Scope | None:
        folder = self.root.joinpath(*name.split("."))
        for path in (folder.with_suffix(".py"), folder / "__init__.py"):
            if path.is_file():
                body = ast.parse(path.read_text(encoding="utf-8")).body
                return Scope(self, name, path.name == "__init__.py", body)
        return None


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements that may run on CUDA, inside ifs and tries too; those for type checkers alone come first."""
    later: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.If) and _is_for_checkers(statement.test):
            yield from statements(statement.body)
            later += statements(statement.orelse)
        else:
            later.append(statement)
    for statement in later:
        if isinstance(statement, ast.If):
            truth = holds(statement.test)
            yield from () if truth is True else statements(statement.orelse)
            yield from () if truth is False else statements(statement.body)
        elif isinstance(statement, ast.Try):
            for handler in statement.handlers:
                yield from statements(handler.body)
            yield from statements([*statement.body, *statement.orelse, *statement.finalbody])
        elif isinstance(statement, ast.With | ast.For):
            yield from statements(statement.body)
        else:
            yield statement


def holds(test: ast.expr) -> bool | None:
    """Whether a condition holds on CUDA, None where that is not known."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = holds(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [holds(part) for part in test.values]
        decides = isinstance(test.op, ast.Or)
        return decides if decides in parts else None if None in parts else not decides
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and not test.args:
        whose = test.func.value
        if isinstance(whose, ast.Name) and whose.id == "current_platform" and test.func.attr.startswith("is_"):
            return PLATFORMS.get(test.func.attr, False)
    return None


def linearised(found: Found) -> list[Found]:
    """A class and its bases in the order in which attributes are looked up (C3); bases outside the package left out."""
    assert isinstance(found.node, ast.ClassDef)
    known = found.scope.tree.orders
    key = (found.node, found.scope)
    if key not in known:
        known[key] = _ordered(found, found.scope.bases(found.node))
    return known[key]


def _ordered(found: Found, bases: list[Found]) -> list[Found]:
    rows = [linearised(base) for base in bases] + [list(bases)]
    order = [found]
    while rows := [row for row in rows if row]:
        head = next((row[0] for row in rows if not any(_holds(other[1:], row[0]) for other in rows)), rows[0][0])
        order.append(head)
        rows = [row[1:] if row[0].node is head.node else row for row in rows]
    return order


def _holds(row: Sequence[Found], found: Found) -> bool:
    return any(other.node is found.node for other in row)


def _is_for_checkers(test: ast.expr) -> bool:
    return ast.unparse(test).rpartition(".")[2] == "TYPE_CHECKING"


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in statement.names)
    elif isinstance(statement, ast.Assign):
        yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        yield statement.target.id
