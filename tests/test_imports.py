"""What each command may load: start-up time is a feature, and it is lost one import at a time."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
DEPLOYMENT, SCRIPT = "idle-gpus.yaml", "query-heads-docker.sh"

REPORTING = """\
import io, json, sys
before = set(sys.modules)
from shardlint.front.main import main
sys.stdout = io.StringIO()
code = main(sys.argv[1:])
print(json.dumps([code, sorted(set(sys.modules) - before)]), file=sys.__stdout__)
"""

NEVER = {"torch", "huggingface_hub", "importlib.metadata", "httpx2", "requests", "subprocess", "asyncio", "logging"}
HEAVY = {
    "pydantic",
    "pydantic_core",
    "tree_sitter",
    "tree_sitter_bash",
    "tomllib",
    "pathlib",
    "jsonschema",
    "unicodedata",
    "difflib",
    "dataclasses",  # 0.5 ms for each class that they make
    "inspect",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Manifests outside of any project."""
    for name in (DEPLOYMENT, SCRIPT):
        shutil.copy(EXAMPLES / "mended" / name, tmp_path)
    return tmp_path


def loaded(*words: str, folder: Path) -> set[str]:
    """The modules that a command loads in a fresh interpreter."""
    command = [sys.executable, "-c", REPORTING, *words]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    code, modules = json.loads(run.stdout)
    assert code in (0, 1), run.stderr
    return set(modules)


def roots(modules: set[str]) -> set[str]:
    return {module.split(".")[0] for module in modules} | modules


def test_the_version_costs_nothing(folder: Path) -> None:
    ours = {"shardlint", "shardlint._version", "shardlint.front", "shardlint.front.main"}
    modules = loaded("--version", folder=folder)
    assert {module for module in modules if module.startswith("shardlint")} == ours
    assert not modules & {"argparse", "re", "dataclasses", "json", "yaml", "enum"}


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_a_manifest_whose_model_is_in_the_catalogue(command: str, folder: Path) -> None:
    modules = roots(loaded(command, DEPLOYMENT, folder=folder))
    assert not modules & (NEVER | HEAVY | {"argparse", "shardlint.text.json_text", "shardlint.text.shell"})


def test_a_script_loads_the_grammar_and_nothing_else_that_is_heavy(folder: Path) -> None:
    modules = roots(loaded(SCRIPT, folder=folder))
    grammar = {"tree_sitter", "tree_sitter_bash", "pathlib"}  # the grammar's package finds its files with pathlib
    assert "tree_sitter" in modules
    assert not modules & (NEVER | HEAVY - grammar)


def test_options_load_argparse(folder: Path) -> None:
    modules = roots(loaded("--format", "json", DEPLOYMENT, folder=folder))
    assert "argparse" in modules
    assert not modules & (NEVER | HEAVY)


def test_the_settings_of_a_project_load_tomllib_only_where_there_are_some(folder: Path) -> None:
    (folder / "a.yaml").write_text("image: vllm/vllm-openai\n")
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert "tomllib" not in loaded("a.yaml", folder=folder)
    (folder / "pyproject.toml").write_text("[tool.shardlint]\nfail-on = 'error'\n")
    assert "tomllib" in loaded("a.yaml", folder=folder)


def test_the_public_package_loads_nothing_of_its_own(folder: Path) -> None:
    program = "import sys, shardlint; print([m for m in sys.modules if m.startswith('shardlint')])"
    run = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['shardlint._version', 'shardlint']"
