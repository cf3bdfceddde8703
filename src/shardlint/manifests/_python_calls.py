"""Calls in a Python file that make an engine, and their arguments: literals, and names that are set once to one."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from shardlint.deployment import ConfigEntry, Launch
from shardlint.findings import Located, Maybe, Problem, Unknown
from shardlint.manifests import _devices, _stated
from shardlint.text.source import Source

_ENGINES = {
    "LLM": "vllm", "EngineArgs": "vllm", "AsyncEngineArgs": "vllm", "Engine": "sglang", "ServerArgs": "sglang",
}  # fmt: skip
_PACKAGES = {"vllm": "vllm", "sglang": "sglang", "sgl": "sglang"}
_MODEL_FLAGS = {"vllm": "model", "sglang": "model-path"}
_COMMANDS = {"vllm": _stated.VLLM, "sglang": _stated.SGLANG}
_NOT_LITERAL = object()
_LINE_END = re.compile(r"\r\n?|\n")
"""As Python counts lines: a form feed ends none."""
_UNPARSED = (SyntaxError, ValueError, RecursionError, MemoryError)


def launches_of(source: Source, form: str) -> Iterator[Launch | Problem]:
    """One launch for each call that states anything; a problem where the file is no Python that this release reads."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in strings, which are not ours to judge
            tree = ast.parse(source.text)
    except SyntaxError as failure:
        yield _unparsed(source, failure.lineno or 1, failure.msg)
        return
    except _UNPARSED:
        yield _unparsed(source, 1, "it is nested too deeply or holds what no Python text does")
        return
    reader = _File(source, tree)
    if not reader.engines:
        return
    env = reader.environment()
    for call in reader.calls():
        engine = reader.engine_of(call)
        launch = None if engine is None else _launch(reader, call, engine, form, env)
        if launch is not None and any(isinstance(entry.value, Located) for entry in launch.settings):
            yield launch


def _unparsed(source: Source, line: int, why: str) -> Problem:
    """A note: a file of another release of Python, or a template of one, is no fault of the deployment."""
    start = source.offset(line, 1)
    end = source.text.find("\n", start)
    place = source.span(start, len(source.text) if end < 0 else end)
    return Problem(place, f"This cannot be read as Python: {why}.", severity="note")


def _launch(reader: _File, call: ast.Call, engine: str, form: str, env: Mapping[str, Maybe[str]]) -> Launch:
    name = reader.source.path.replace("\\", "/").rpartition("/")[2]
    at = reader.span(call.func)
    settings = list(reader.arguments(call, _MODEL_FLAGS[engine]))
    command = _COMMANDS[engine]
    names_model = any(entry.key.value == _MODEL_FLAGS[engine] for entry in settings)
    argv = _stated.command(command, at)
    if any(keyword.arg is None for keyword in call.keywords):
        unpacked = next(keyword for keyword in call.keywords if keyword.arg is None)
        argv = (
            *argv,
            Unknown("further arguments are unpacked here", reader.span(unpacked.value), reader.text(unpacked)),
        )
    elif not names_model and engine == "vllm":
        argv = (*argv, Unknown("the call names no model", at, reader.text(call.func)))
    return Launch(
        name, "call", form, at, argv=argv, settings=tuple(settings), env=env, gpus_per_pod=_devices.usable(None, env),
        unit=f"{name}:{call.lineno}:{call.col_offset}",
    )  # fmt: skip


class _File:
    """A parsed file: what it imports, and which names it sets once."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self._lines = [0]
        self._lines += [end.end() for end in _LINE_END.finditer(source.text)]
        self._nodes = list(ast.walk(tree))
        self.engines = dict(self._imported())
        self._names = self._set_once()

    def _imported(self) -> Iterator[tuple[str, str]]:
        """Names of the file that stand for an engine's class or package, and the engine."""
        for node in self._nodes:
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                engine = _PACKAGES.get(node.module.partition(".")[0])
                for alias in node.names if engine is not None else ():
                    if _ENGINES.get(alias.name) == engine and engine is not None:
                        yield alias.asname or alias.name, engine
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    engine = _PACKAGES.get(alias.name.partition(".")[0])
                    if engine is not None:
                        yield (alias.asname or alias.name).partition(".")[0], engine

    def _set_once(self) -> dict[str, ast.expr]:
        """Names that one assignment alone sets, in the whole file."""
        counts: Counter[str] = Counter(
            node.id for node in self._nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        counts.update(node.arg for node in self._nodes if isinstance(node, ast.arg))
        found: dict[str, ast.expr] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                found[node.target.id] = node.value
        return {name: value for name, value in found.items() if counts[name] == 1}

    def calls(self) -> Iterator[ast.Call]:
        calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        yield from sorted(calls, key=lambda call: (call.lineno, call.col_offset))

    def engine_of(self, call: ast.Call) -> str | None:
        """The engine whose class is called, by its name or behind its package."""
        function = call.func
        if isinstance(function, ast.Name):
            return self.engines.get(function.id) if function.id not in _PACKAGES else None
        if not isinstance(function, ast.Attribute) or function.attr not in _ENGINES:
            return None
        root: ast.expr = function.value
        while isinstance(root, ast.Attribute):
            root = root.value
        engine = self.engines.get(root.id) if isinstance(root, ast.Name) else None
        return engine if engine == _ENGINES[function.attr] else None

    def arguments(self, call: ast.Call, model_flag: str) -> Iterator[ConfigEntry]:
        """The arguments as flags; the first that stands alone is the model."""
        if call.args and not isinstance(call.args[0], ast.Starred):
            first = call.args[0]
            yield ConfigEntry(Located(model_flag, self.span(first), self.text(first), "derived"), self.value(first))
        for keyword in call.keywords:
            if keyword.arg is None:
                yield from self._unpacked(keyword.value)
            elif not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None):
                flag = model_flag if keyword.arg in ("model", "model_path") else keyword.arg.replace("_", "-")
                place = self.span(keyword)
                yield ConfigEntry(Located(flag, place, f"{keyword.arg}="), self.value(keyword.value))

    def _unpacked(self, node: ast.expr) -> Iterator[ConfigEntry]:
        """`**{"a": 1}`, or a name that is set to such a mapping."""
        held = self._names.get(node.id, node) if isinstance(node, ast.Name) else node
        if isinstance(held, ast.Dict):
            for key, value in zip(held.keys, held.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    name = key.value.replace("_", "-")
                    yield ConfigEntry(Located(name, self.span(key), key.value), self.value(value))

    def environment(self) -> dict[str, Maybe[str]]:
        """`os.environ["X"] = "y"` at any place of the file; two different values are none."""
        found: dict[str, Maybe[str]] = {}
        for node in self._nodes:
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            if not isinstance(node, ast.Assign) or not isinstance(target, ast.Subscript):
                continue
            if self.text(target.value) not in ("os.environ", "environ") or not isinstance(target.slice, ast.Constant):
                continue
            name, value = str(target.slice.value), self.value(node.value)
            known = isinstance(value, Located) and isinstance(value.value, str) and name not in found
            unclear = Unknown(f"{name} is set where the file runs", value.span, value.spelled)
            found[name] = value if known else unclear
        return found

    def value(self, node: ast.expr) -> Maybe[Any]:
        """A literal where it stands; a name's value where that was set."""
        literal = self._literal(node)
        if literal is not _NOT_LITERAL:
            return Located(literal, self.span(node), self.text(node))
        set_to = self._names.get(node.id) if isinstance(node, ast.Name) else None
        if set_to is not None and (literal := self._literal(set_to)) is not _NOT_LITERAL:
            return Located(literal, self.span(set_to), self.text(set_to))
        return Unknown(f"Python works it out: {self.text(node)[:80]}", self.span(node), self.text(node))

    @staticmethod
    def _literal(node: ast.expr) -> Any:
        try:
            value = ast.literal_eval(node)
        except (*_UNPARSED, TypeError):
            return _NOT_LITERAL
        return value if isinstance(value, str | int | float | bool | list | dict | None) else _NOT_LITERAL

    def _range(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno or 0, node.end_col_offset or 0)

    def _offset(self, line: int, column: int) -> int:
        """Python counts the bytes of a line in UTF-8."""
        start = self._lines[min(line, len(self._lines)) - 1]
        end = self._lines[line] if line < len(self._lines) else len(self.source.text)
        return start + len(self.source.text[start:end].encode("utf-8", "replace")[:column].decode("utf-8", "ignore"))

    def span(self, node: ast.expr | ast.keyword) -> Any:
        return self.source.span(*self._range(node))

    def text(self, node: ast.expr | ast.keyword) -> str:
        start, end = self._range(node)
        return self.source.text[start:end]
