"""The hook of pre-commit: which files it asks for, and a run of the real pre-commit from install to a clean commit."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from shardlint.front.options import Options, parse
from shardlint.manifests import forms

ROOT = Path(__file__).parents[2]
HOOKS = ROOT / ".pre-commit-hooks.yaml"
PACKAGED = ("src", "pyproject.toml", "README.md", "LICENSE", "NOTICE", ".pre-commit-hooks.yaml")

WRONG = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat
spec:
  template:
    spec:
      nodeSelector:
        nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
      containers:
        - image: vllm/vllm-openai:v0.33.0
          args: [--model=meta-llama/Llama-3.1-8B-Instruct, --tensor-parallel-size=3]
          resources:
            limits:
              nvidia.com/gpu: 3
      hostIPC: true
"""
RIGHT = WRONG.replace("size=3", "size=4").replace("gpu: 3", "gpu: 4")


def place_of(words: str) -> str:
    """LINE:COLUMN of some words in the wrong manifest."""
    before = WRONG[: WRONG.index(words)]
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


# what pre-commit asks for

MUST_MATCH = (
    "deployment.yaml",
    "k8s/base/deployment.yml",
    "values.yaml",
    "charts/vllm/values-h100.yaml",
    "lws.json",
    "docker-compose.yml",
    "compose.gpu.yaml",
    "scripts/serve.sh",
    "run.bash",
    "deploy/it is here.yaml",
    "Dockerfile",
    "images/vllm.Dockerfile",
    "Dockerfile.gpu",
    "build/Containerfile",
    "serve.py",
    "infra/main.tf",
    "etc/vllm.service",
    "job.sbatch",
)
MUST_NOT_MATCH = (
    "README.md",
    "yaml",
    "deployment.yaml.bak",
    "deployment.yaml/readme.txt",
    "compose",
    "serve.sh.j2",
    "config.jsonl",
    "dashboard.svg",
    "src/shell.c",
    "dockerfiles/notes.txt",
    ".dockerignore",
)


@pytest.fixture(scope="module")
def hook() -> dict[str, Any]:
    (found,) = yaml.safe_load(HOOKS.read_text())
    return dict(found)


@pytest.fixture(scope="module")
def builder() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "build_hooks.py"))


def test_the_committed_file_is_the_generated_one(builder: dict[str, Any]) -> None:
    assert HOOKS.read_text() == builder["hooks"](), "run scripts/build_hooks.py"


def test_the_hook_runs_one_check_at_a_time(hook: dict[str, Any]) -> None:
    assert hook["id"] == "shardlint"
    assert hook["language"] == "python"
    assert hook["require_serial"] is True
    command, *words = hook["entry"].split()
    assert command == "shardlint"
    assert parse([*words, "a.yaml"]) == Options("check", ("a.yaml",), force_exclude=True)
    assert parse([*words, "--strict", "a.yaml"]) == Options("check", ("a.yaml",), force_exclude=True, strict=True)


@pytest.mark.parametrize("path", MUST_MATCH)
def test_files_that_forms_read_are_asked_for(hook: dict[str, Any], path: str) -> None:
    assert re.search(hook["files"], path)


@pytest.mark.parametrize("path", MUST_NOT_MATCH)
def test_files_that_no_form_reads_are_not_asked_for(hook: dict[str, Any], path: str) -> None:
    assert not re.search(hook["files"], path)


def test_the_hook_asks_for_what_a_search_of_folders_reads(hook: dict[str, Any]) -> None:
    patterns = [pattern for form in forms() for pattern in form.FILES]
    for path in map(Path, (*MUST_MATCH, *MUST_NOT_MATCH, "Dockerfile", ".env", "serve.env", "vllm.service")):
        assert bool(re.search(hook["files"], path.as_posix())) == any(path.match(pattern) for pattern in patterns)


def test_patterns_become_expressions_for_the_last_part_of_a_path(builder: dict[str, Any]) -> None:
    expression = builder["expression"](("Dockerfile*", "values.?aml"))
    for path in ("Dockerfile", "a/Dockerfile.gpu", "values.yaml", "b/values.yaml"):
        assert re.search(expression, path)
    for path in ("MyDockerfile", "Dockerfile.d/a", "values.yml", "valuesxyaml", "my-values.yaml"):
        assert not re.search(expression, path)
    with pytest.raises(ValueError, match=r"\[ab\]\.yaml"):
        builder["expression"](("[ab].yaml",))


# the real pre-commit


class Project(NamedTuple):
    """A scratch repository whose every commit runs the hook."""

    folder: Path
    env: Mapping[str, str]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=self.folder, env=self.env, text=True, capture_output=True, check=False)

    def git(self, *words: str) -> str:
        done = self.run("git", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pre_commit(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "pre_commit", *words, "--color=never")

    def write(self, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all", "--force")


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    identity = {"NAME": "A Tester", "EMAIL": "tester@example.com"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON", "PRE_COMMIT"))}
    return {
        **kept,
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in identity.items()},
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(home),
        "PRE_COMMIT_HOME": str(home / "pre-commit"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
    }


@pytest.fixture(scope="module")
def hook_repository(tmp_path_factory: pytest.TempPathFactory, env: dict[str, str]) -> Project:
    """This working tree as a repository of hooks, with one commit."""
    project = Project(tmp_path_factory.mktemp("shardlint"), env)
    for name in PACKAGED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, project.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, project.folder)
    project.git("init", "--quiet")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "hooks")
    return project


@pytest.fixture
def project(tmp_path: Path, env: dict[str, str], hook_repository: Project) -> Project:
    revision = hook_repository.git("rev-parse", "HEAD").strip()
    found = Project(tmp_path, env)
    found.git("init", "--quiet")
    config = [{"repo": str(hook_repository.folder), "rev": revision, "hooks": [{"id": "shardlint"}]}]
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": config}))
    return found


def test_a_commit_is_stopped_until_its_layout_is_mended(project: Project) -> None:
    installed = project.pre_commit("install")
    assert installed.returncode == 0, installed.stdout + installed.stderr

    project.write({"deploy/chat.yaml": WRONG, "serve.sh": "echo nothing to do with it\n", "broken.yaml": "a: [\n"})
    stopped = project.run("git", "commit", "--message", "chat")
    assert stopped.returncode == 1, stopped.stdout + stopped.stderr
    said = stopped.stdout + stopped.stderr
    assert f"deploy/chat.yaml:{place_of('3]')}: error[SL101 query-heads]: 32 attention heads" in said
    assert "2 errors in 1 deployment of 1 file\n" in said
    assert "broken.yaml" not in said
    assert "serve.sh" not in said

    project.write({"deploy/chat.yaml": RIGHT})
    passed = project.run("git", "commit", "--message", "chat")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert re.search(r"shardlint\.+Passed", passed.stdout + passed.stderr)

    everything = project.pre_commit("run", "--all-files", "--verbose")
    assert everything.returncode == 0, everything.stdout
    assert "nothing found in 1 deployment of 1 file" in everything.stdout


def test_what_the_project_ignores_is_ignored_in_named_files_too(project: Project) -> None:
    own = WRONG.replace("size=3]", "size=3]  # shardlint: ignore[SL101] tried on purpose")
    assert own != WRONG
    project.write(
        {
            "deploy/chat.yaml": WRONG,
            "deploy/own.yaml": own,
            "rendered/chat.yaml": WRONG,
            ".gitignore": "rendered/\n",
            "pyproject.toml": '[tool.shardlint]\nignore = ["kv-heads"]\n',
        }
    )
    failed = project.pre_commit("run", "--all-files")
    assert failed.returncode == 1, failed.stdout
    found = re.findall(r"^(\S+):\d+:\d+: \w+\[(\w+)", failed.stdout, re.MULTILINE)
    assert ("deploy/chat.yaml", "SL101") in found
    assert {path for path, _code in found} == {"deploy/chat.yaml"}
    assert "SL102" not in failed.stdout
