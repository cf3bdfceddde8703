"""`scripts/read_releases.py` reads source without running it: two small releases, an old and a new one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "read_releases.py"

INTERFACES = """
raise RuntimeError("run")
class SupportsPP: ...
"""
COMMON = {
    "model_executor/models/interfaces.py": INTERFACES,
    "model_executor/models/llama.py": """
from .interfaces import SupportsPP
class Base:
    def forward(self, input_ids, intermediate_tensors=None): ...
class LlamaForCausalLM(Base, SupportsPP): ...
class Draft(LlamaForCausalLM):
    def forward(self, input_ids): ...
""",
    "model_executor/layers/quantization/__init__.py": """
from typing import Literal
QuantizationMethods = Literal["awq", "fp8"]
DEPRECATED_QUANTIZATION_METHODS = ["awq"]
""",
}
OLD = COMMON | {
    "scripts.py": """
from vllm.entrypoints.openai.cli_args import make_arg_parser
def main():
    serve_parser.add_argument("--config", type=str)
""",
    "entrypoints/openai/cli_args.py": """
from vllm.engine.arg_utils import AsyncEngineArgs
def make_arg_parser(parser):
    parser.add_argument("--port", type=int, default=8000)
    return AsyncEngineArgs.add_cli_args(parser)
""",
    "engine/arg_utils.py": """
class EngineArgs:
    share: float = 0.9
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--share", type=float, default=EngineArgs.share)
        parser.add_argument("--eager", action="store_true")
        parser.add_argument("--chunked", action=StoreBoolean, nargs="?", const="True")
        parser.add_argument("--names", nargs="+", type=nullable_str)
class AsyncEngineArgs(EngineArgs):
    @staticmethod
    def add_cli_args(parser):
        return EngineArgs.add_cli_args(parser)
""",
    "model_executor/models/registry.py": """
_TEXT = {"LlamaForCausalLM": ("llama", "LlamaForCausalLM"), "DraftModel": ("llama", "Draft")}
_VLLM_MODELS = {**_TEXT, **{k: (m, c) for k, (m, c) in _TEXT.items() if c == "Draft"}}
""",
}
NEW = COMMON | {
    "entrypoints/cli/serve.py": "from vllm.entrypoints.cli_args import make_arg_parser\n",
    "entrypoints/cli_args.py": """
from vllm.config import config
from vllm.engine.arg_utils import EngineArgs, get_kwargs
@config
class FrontendArgs:
    port: int = 8000
    origins: list[str] = field(default_factory=list)
    @classmethod
    def _customize_cli_kwargs(cls, kwargs):
        kwargs["origins"]["type"] = json.loads
        del kwargs["origins"]["nargs"]
    @classmethod
    def add_cli_args(cls, parser):
        kwargs = get_kwargs(cls)
        for key, value in kwargs.items():
            parser.add_argument(f"--{key}", **value)
def make_arg_parser(parser):
    FrontendArgs.add_cli_args(parser)
    return EngineArgs.add_cli_args(parser)
""",
    "config/__init__.py": """
from .cache import CacheConfig, Precision, EPLBConfig
""",
    "config/cache.py": """
Precision = Literal["auto", "fp8"]
@config
class EPLBConfig: ...
@config
class CacheConfig:
    share: float = Field(default=0.92, gt=0)
    precision: Precision = "auto"
    eager: bool = False
    names: list[str] | None = None
    eplb: EPLBConfig = Field(default_factory=EPLBConfig)
    chunked: bool = True
""",
    "engine/arg_utils.py": """
from vllm.config import CacheConfig
class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        cache_kwargs = get_kwargs(CacheConfig)
        group = parser.add_argument_group()
        group.add_argument("--share", "--device-share", **cache_kwargs["share"])
        short = cache_kwargs["precision"]
        short["type"] = lambda s: s.lower()
        group.add_argument("--precision", **short)
        group.add_argument("--eager", **cache_kwargs["eager"])
        group.add_argument("--names", **cache_kwargs["names"])
        group.add_argument("--eplb", **cache_kwargs["eplb"])
        group.add_argument("--chunked", **{**cache_kwargs["chunked"], "default": None})
""",
    "model_executor/models/registry.py": """
_VLLM_MODELS = {
    "LlamaForCausalLM": ("llama", "LlamaForCausalLM"),
    "LlamaModel": ("pooled", "LlamaModel"),
    "NewForCausalLM": ("vllm.models.new", "NewForCausalLM"),
    "LazyForCausalLM": ("lazy", "LazyForCausalLM"),
}
""",
    "model_executor/models/pooled.py": """
from .adapters import as_pooling
from .llama import LlamaForCausalLM
LlamaModel = as_pooling(LlamaForCausalLM)
""",
    "model_executor/models/adapters.py": """
def _made(inner):
    class Pooled(inner): ...
    return Pooled
def as_pooling(cls):
    class ForPooling(_made(cls)): ...
    return ForPooling
""",
    "model_executor/models/lazy/__init__.py": """
def __getattr__(name):
    if name == "LazyForCausalLM":
        from vllm.model_executor.models.llama import LlamaForCausalLM as LazyForCausalLM
        return LazyForCausalLM
""",
    "models/new/__init__.py": """
from vllm.platforms import current_platform
if current_platform.is_rocm():
    from .amd import NewForCausalLM
else:
    from .nvidia import NewForCausalLM
""",
    "models/new/amd.py": "class NewForCausalLM: ...\n",
    "models/new/nvidia.py": """
from vllm.model_executor.models.interfaces import SupportsPP
class NewForCausalLM(SupportsPP):
    def forward(self, **kwargs): ...
""",
}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    root = tmp_path_factory.mktemp("sources")
    for release, files in (("0.1.0", OLD), ("0.2.0", NEW), ("0.10.0", NEW)):
        for name, text in files.items():
            path = root / release / "vllm" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=True)
    head, *rows = map(json.loads, done.stdout.splitlines())
    assert head == {"versions": ["0.1.0", "0.2.0", "0.10.0"]}
    return {(part, row[part]): row["is"] for row in rows for part in row if part != "is"}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("--share", {"kind": "float", "default": 0.9}, {"kind": "float", "default": 0.92, "owner": "CacheConfig"}),
        ("--eager", {"kind": "switch", "default": False}, {"kind": "bool", "default": False}),
        ("--chunked", {"kind": "stated", "default": None}, {"kind": "bool", "default": None}),
        ("--names", {"kind": "list", "nullable": True}, {"kind": "list", "nullable": True}),
        ("--port", {"kind": "int", "default": 8000}, {"kind": "int", "default": 8000, "owner": "FrontendArgs"}),
        ("--config", {"kind": "str"}, None),
        ("--precision", None, {"kind": "str", "default": "auto", "choices": ["auto", "fp8"]}),
        ("--origins", None, {"kind": "json", "default": "factory:list"}),
        ("--eplb", None, {"kind": "object", "default": "factory:EPLBConfig"}),
    ],
)
def test_a_flag_of_both(
    facts: dict[tuple[str, str], Any], name: str, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> None:
    spans = facts["flags", name]
    assert [span[:2] for span in spans] == [
        *([["0.1.0", "0.1.0"]] if old is not None else ()),
        *([["0.2.0", None]] if new is not None else ()),
    ]
    for (_, _, found), expected in zip(spans, [part for part in (old, new) if part is not None], strict=True):
        assert found | expected == found


def test_spellings(facts: dict[tuple[str, str], Any]) -> None:
    assert [span[2]["names"] for span in facts["flags", "--share"]] == [["--share"], ["--device-share", "--share"]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LlamaForCausalLM", [["0.1.0", None, True]]),
        ("DraftModel", [["0.1.0", "0.1.0", False]]),  # its own forward takes no tensors of another stage
        ("LlamaModel", [["0.2.0", None, True]]),
        ("NewForCausalLM", [["0.2.0", None, True]]),
        ("LazyForCausalLM", [["0.2.0", None, True]]),
    ],
)
def test_a_class(facts: dict[tuple[str, str], Any], name: str, expected: list[list[Any]]) -> None:
    assert facts["architectures", name] == expected


def test_quantisation(facts: dict[tuple[str, str], Any]) -> None:
    assert facts["quantisation", "fp8"] == facts["deprecated", "awq"] == [["0.1.0", None, True]]
