"""Read what every release of vLLM takes and has from its unpacked source, without running any of it.

Usage: python scripts/read_releases.py SOURCES > scripts/vllm_releases.jsonl; then run scripts/build_engine_tables.py.

SOURCES holds a folder for each release, named by its number, with the `vllm` package of its wheel in it:

    pip download vllm==0.8.3 --no-deps --only-binary=:all: --platform manylinux1_x86_64 -d wheel
    unzip -q wheel/vllm-*.whl 'vllm/*.py' -d SOURCES/0.8.3

Recorded are the flags of `vllm serve` (spellings, kind, default, closed list of values), the model classes of the
registry with the registry's own question whether they have pipeline parallelism, and the quantisation methods. Where
the platform matters, the branch of CUDA is taken. `since` and `until` of what is written are releases that were read.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from source_tree import Found, Scope, Tree, linearised, statements
from source_values import NotPlain, fields, leaves, literals, value

from shardlint.engines.versions import Version

SERVE = ("vllm.entrypoints.cli.serve", "vllm.scripts")
REGISTRY = "vllm.model_executor.models.registry"
MODELS = "vllm.model_executor.models"
QUANTISATION = "vllm.model_executor.layers.quantization"
UNKNOWN = object()


# Flags


@dataclass
class Options:
    """The keyword arguments of one `add_argument`, partly from a field of a config class."""

    given: dict[str, ast.expr]
    declared: tuple[ast.AnnAssign, Scope] | None = None
    owner: str | None = None
    """The class of the field."""
    less: set[str] = field(default_factory=set)
    """What is taken away of it."""


class Parser:
    """What the parser of `vllm serve` is given, in order."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.flags: dict[str, dict[str, Any]] = {}
        self.shorter: dict[str, ast.expr] = {}
        """Variables for a field's part of a table: `backend = kernel_kwargs["moe_backend"]`."""
        serve = next(module for name in SERVE if (module := tree.module(name)) is not None)
        for call in (node for statement in serve.body for node in ast.walk(statement)):
            if isinstance(call, ast.Call) and _called(call) == "add_argument" and _receiver(call) == "serve_parser":
                self.add(call, serve, {}, {})
        make = serve.find("make_arg_parser")
        assert make is not None
        self.run(make, None)

    def run(self, function: Found, owner: Found | None) -> None:
        """Follow one function that fills the parser; `owner` is the class that it is called of."""
        assert isinstance(function.node, ast.FunctionDef)
        tables: dict[str, Found] = {}
        changes: dict[tuple[str, str], Options] = {}
        scope = Scope(self.tree, function.scope.path, function.scope.is_package, function.node.body, {}, function.scope)
        if owner is not None:
            scope.given["cls"] = owner
            for one in reversed(linearised(owner)):
                self.note_changes(_method(one, "_customize_cli_kwargs"), changes)
        for statement in statements(function.node.body):
            self.note(statement, scope, tables, changes)
            for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
                if _called(call) == "add_argument":
                    self.add(call, scope, tables, changes)
                elif _called(call) == "add_cli_args" and isinstance(call.func, ast.Attribute):
                    self.of_class(scope.class_of(call.func.value))

    def of_class(self, found: Found | None) -> None:
        for one in linearised(found) if found is not None else ():
            if (method := _method(one, "add_cli_args")) is not None:
                self.run(method, found)
                return

    def note(
        self, statement: ast.stmt, scope: Scope, tables: dict[str, Found], changes: dict[tuple[str, str], Options]
    ) -> None:
        """`x_kwargs = get_kwargs(XConfig)`, and what is changed of it afterwards."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if _called(call) == "get_kwargs":
                found = scope.class_of(call.args[0])
                if found is not None:
                    tables[name] = found
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() as part):
                self.shorter[name] = part
            case ast.Assign(targets=[ast.Subscript() as target]):
                if (keys := self.keys(target)) is not None:
                    changes.setdefault(keys[:2], Options({})).given[keys[2]] = statement.value
            case ast.Delete(targets=[ast.Subscript() as target]):
                if (keys := self.keys(target)) is not None:
                    changes.setdefault(keys[:2], Options({})).less.add(keys[2])

    def keys(self, node: ast.Subscript) -> tuple[str, str, str] | None:
        """`x_kwargs["field"]["keyword"]` as its three names, also where a variable stands for the first two."""
        whole = self.shorter.get(node.value.id, node.value) if isinstance(node.value, ast.Name) else node.value
        match whole, node.slice:
            case ast.Subscript(value=ast.Name(id=table), slice=ast.Constant(value=str(name))), ast.Constant():
                return table, name, str(node.slice.value)
        return None

    def note_changes(self, method: Found | None, changes: dict[tuple[str, str], Options]) -> None:
        if method is not None and isinstance(method.node, ast.FunctionDef):
            for statement in statements(method.node.body):
                self.note(statement, method.scope, {}, changes)

    def add(
        self, call: ast.Call, scope: Scope, tables: Mapping[str, Found], changes: Mapping[tuple[str, str], Options]
    ) -> None:
        names = [str(a.value) for a in call.args if isinstance(a, ast.Constant) and str(a.value).startswith("-")]
        given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        if names:
            spread = next((keyword.value for keyword in call.keywords if keyword.arg is None), None)
            self.keep(names, self.options(given, spread, tables, changes), scope)
        elif any(isinstance(argument, ast.JoinedStr) for argument in call.args):
            for table, found in tables.items():
                for name in fields(found):
                    options = self.of_field(given, table, name, tables, changes)
                    self.keep(["--" + name.replace("_", "-")], options, scope)

    def options(
        self,
        given: dict[str, ast.expr],
        spread: ast.expr | None,
        tables: Mapping[str, Found],
        changes: Mapping[tuple[str, str], Options],
    ) -> Options:
        if isinstance(spread, ast.Name):
            spread = self.shorter.get(spread.id)
        match spread:
            case ast.Dict(keys=[None, *keys], values=[inner, *values]):  # {**x_kwargs["field"], "default": None}
                own = {
                    str(key.value): part
                    for key, part in zip(keys, values, strict=True)
                    if isinstance(key, ast.Constant)
                }
                return self.options(own | given, inner, tables, changes)
            case ast.Subscript(value=ast.Name(id=table), slice=ast.Constant(value=str(name))) if table in tables:
                return self.of_field(given, table, name, tables, changes)
        return Options(given)

    def of_field(
        self,
        given: dict[str, ast.expr],
        table: str,
        name: str,
        tables: Mapping[str, Found],
        changes: Mapping[tuple[str, str], Options],
    ) -> Options:
        found = tables[table]
        assert isinstance(found.node, ast.ClassDef)
        changed = changes.get((table, name), Options({}))
        return Options(changed.given | given, fields(found).get(name), found.node.name, changed.less)

    def keep(self, names: Sequence[str], options: Options, scope: Scope) -> None:
        name = max(names, key=lambda text: (text.startswith("--"), text == names[0]))
        self.flags[name] = described(name, options, scope) | {"names": sorted(names)}


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _receiver(call: ast.Call) -> str:
    return ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _method(found: Found, name: str) -> Found | None:
    assert isinstance(found.node, ast.ClassDef)
    for statement in found.node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return Found(statement, found.scope)
    return None


def described(name: str, options: Options, scope: Scope) -> dict[str, Any]:
    """One flag: kind, default, whether "none" is a value, the list of values, and the class of its field.

    `choices` are all that argparse takes; of the others it takes any, and `known` are those that the type names.
    """
    hints = list(leaves(options.declared[0].annotation, options.declared[1])) if options.declared else []
    converter = ast.unparse(options.given["type"]) if "type" in options.given else ""
    row: dict[str, Any] = {"kind": kind(name, options, hints, converter), "default": default(options, scope)}
    is_bool = row["kind"] in ("bool", "switch", "stated")
    if any(hint[0] == "None" for hint in hints) or converter.startswith(("nullable", "optional")):
        row["nullable"] = True
    if not is_bool and (words := closed(options, hints, scope)) is not None:
        is_open = "choices" not in options.given and any(hint[0] == "str" for hint in hints)
        row["known" if is_open else "choices"] = sorted(words, key=str)
    if options.owner is not None:
        row["owner"] = options.owner
    return row


def default(options: Options, scope: Scope) -> Any:
    node, where = options.given.get("default"), scope
    if node is None and options.declared is not None:
        node, where = options.declared[0].value, options.declared[1]
    if node is None:
        return False if "store_true" in ast.unparse(options.given.get("action", ast.Constant(""))) else None
    try:
        return value(node, where)
    except NotPlain:
        return ast.unparse(node)


def closed(options: Options, hints: Sequence[tuple[str, ast.expr, Scope]], scope: Scope) -> list[Any] | None:
    """The values that a flag's declaration lists, None where it lists none."""
    if (node := options.given.get("choices")) is not None:
        try:
            return [word for word in value(node, scope) if word is not None]
        except NotPlain:
            return None
    if not any(hint[0] == "Literal" for hint in hints):
        return None
    found = [words for hint, node, where in hints if hint == "Literal" and (words := literals(node, where))]
    return [word for words in found for word in words]


def kind(name: str, options: Options, hints: Sequence[tuple[str, ast.expr, Scope]], converter: str) -> str:
    """How many words a flag takes and how they are read (`shardlint.engines.tables.Kind`).

    stated: a boolean with a word after it or none (`--x False`), as some were before they had a --no- form.
    """
    action = ast.unparse(options.given.get("action", ast.Constant("")))
    words = ast.unparse(options.given.get("nargs", ast.Constant("")))
    types = {hint[0] for hint in hints}
    if "store_true" in action or "store_false" in action:
        return "switch"
    if "StoreBoolean" in action:
        return "stated"
    if "BooleanOptionalAction" in action:
        return "bool"
    if types == {"bool", "str", "None"}:
        return "optional"
    if "bool" in types and "type" not in options.given:
        return "bool"
    if "append" in action:
        return "str"
    if words in ("'+'", "'*'"):
        return "list"
    if types & {"list", "set", "tuple"} and "nargs" not in options.less and "Literal" not in types:
        return "list"
    return scalar(name, types, hints, converter)


def scalar(name: str, types: set[str], hints: Sequence[tuple[str, ast.expr, Scope]], converter: str) -> str:
    if "human_readable_int_or_auto" in converter or (name == "--max-model-len" and not converter):
        return "length"
    if "human_readable_int" in converter or (name in SIZES and not converter):
        return "size"
    classes = [where.class_of(node) for hint, node, where in hints if hint not in ("None", "dict", "Literal")]
    is_object = bool(classes) and all(one is not None and _is_dataclass(one) for one in classes)
    if "json.loads" in converter:
        return "object" if is_object else "json"
    for plain in ("int", "float"):
        if converter in (plain, f"optional_type({plain})", f"nullable_{plain}"):
            return plain
    if converter:
        return "str"
    if "Literal" in types and "str" not in types:
        words = [word for _, node, where in hints if node is not None for word in literals(node, where) or ()]
        return "int" if words and all(isinstance(word, int) for word in words) else "str"
    for plain in ("int", "float"):
        if plain in types:
            return plain
    if types - {"None"} == {"dict"} or types - {"None"} == {"Dict"}:
        return "json"
    return "object" if is_object and not types & {"dict", "Literal"} else "str"


SIZES = {  # `human_readable_int_args` in the source
    "--max-num-batched-tokens", "--max-num-scheduled-tokens", "--kv-cache-memory-bytes",
    "--safetensors-prefetch-block-size", "--max-num-queued-tokens",
}  # fmt: skip


def _is_dataclass(found: Found) -> bool:
    return isinstance(found.node, ast.ClassDef) and any(
        ast.unparse(decorator).startswith(("dataclass", "config")) for decorator in found.node.decorator_list
    )


# Model classes


def architectures(tree: Tree) -> dict[str, bool]:
    """Each class name of the registry with its answer to `supports_pp`."""
    registry = tree.module(REGISTRY)
    assert registry is not None
    table = registry.find("_VLLM_MODELS") or registry.find("_MODELS")
    assert table is not None and isinstance(table.node, ast.expr)
    found = {}
    for name, (module_name, class_name) in value(table.node, table.scope).items():
        module = tree.module(module_name if module_name.startswith("vllm.") else f"{MODELS}.{module_name}")
        one = module.class_of(ast.Name(class_name)) if module is not None else None
        if one is None:
            raise LookupError(f"{name}: {module_name}.{class_name} is not in {tree.root}")
        found[name] = supports_pp(one)
    return found


def supports_pp(found: Found) -> bool:
    """The question of `interfaces.supports_pp`: SupportsPP among the bases, and a forward that takes the tensors."""
    order = linearised(found)
    if not any(isinstance(one.node, ast.ClassDef) and one.node.name == "SupportsPP" for one in order):
        return False
    forward = next((method for one in order if (method := _attribute(one, "forward")) is not None), None)
    if forward is None or not isinstance(forward, ast.FunctionDef):
        return False
    named = [*forward.args.posonlyargs, *forward.args.args, *forward.args.kwonlyargs]
    return any(argument.arg == TENSORS for argument in named) or forward.args.kwarg is not None


TENSORS = "intermediate_tensors"


def _attribute(found: Found, name: str) -> ast.stmt | None:
    """What a class itself has under a name."""
    assert isinstance(found.node, ast.ClassDef)
    own = [s for s in statements(found.node.body) if isinstance(s, ast.FunctionDef) and s.name == name]
    return own[-1] if own else None


# Quantisation


def quantisation(tree: Tree) -> tuple[list[str], list[str]]:
    """The methods of a release, and those that it takes only with a flag."""
    module = tree.module(QUANTISATION)
    assert module is not None
    methods = module.find("QuantizationMethods")
    words = (
        literals(methods.node, methods.scope) if methods is not None and isinstance(methods.node, ast.expr) else None
    )
    if words is None:
        table = module.find("QUANTIZATION_METHODS")
        assert table is not None and isinstance(table.node, ast.expr)
        keys = table.node.keys if isinstance(table.node, ast.Dict) else None
        words = [value(key, table.scope) for key in keys if key is not None] if keys else value(*_of(table))
    refused = module.find("DEPRECATED_QUANTIZATION_METHODS")
    return sorted(words), sorted(value(*_of(refused))) if refused is not None else []


def _of(found: Found) -> tuple[ast.expr, Scope]:
    assert isinstance(found.node, ast.expr)
    return found.node, found.scope


# All releases


def read(root: Path) -> dict[str, Any]:
    tree = Tree(root)
    methods, refused = quantisation(tree)
    return {
        "flags": Parser(tree).flags,
        "architectures": architectures(tree),
        "quantisation": dict.fromkeys(methods, True),
        "deprecated": dict.fromkeys(refused, True),
    }


def spans(versions: Sequence[str], facts: Mapping[str, Any]) -> list[list[Any]]:
    """[since, until or null, fact] for every run of releases with the same fact; releases without one are left out."""
    found: list[list[Any]] = []
    for place, version in enumerate(versions):
        if version not in facts:
            continue
        previous = found[-1] if found else None
        if previous and previous[1] == versions[place - 1] and previous[2] == facts[version]:
            previous[1] = version
        else:
            found.append([version, version, facts[version]])
    return [[since, None if until == versions[-1] else until, fact] for since, until, fact in found]


def merged(versions: Sequence[str], read_of: Mapping[str, Mapping[str, Any]], part: str) -> dict[str, list[list[Any]]]:
    names = sorted({name for version in versions for name in read_of[version][part]})
    return {
        name: spans(versions, {v: read_of[v][part][name] for v in versions if name in read_of[v][part]})
        for name in names
    }


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folders = {folder.name: folder for folder in Path(sys.argv[1]).iterdir() if (folder / "vllm").is_dir()}
    versions = sorted(folders, key=Version.of)
    read_of = {version: read(folders[version]) for version in versions}
    rows = [json.dumps({"versions": versions})]
    for part in PARTS:
        found = merged(versions, read_of, part)
        rows += [json.dumps({part: name, "is": facts}, separators=(",", ":")) for name, facts in found.items()]
    print("\n".join(rows))


PARTS = ("flags", "architectures", "quantisation", "deprecated")

if __name__ == "__main__":
    main()
