"""The pytest plugin, by the real pytest in a process of its own: 8 and the installed one, with and without xdist."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
spec:
  template:
    spec:
      nodeSelector:
        nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
      containers:
        - image: vllm/vllm-openai:v0.33.0
          args: [--model={model}, --tensor-parallel-size={size}]
          resources:
            limits:
              nvidia.com/gpu: {gpus}
      hostIPC: true
"""
TGI = "docker run ghcr.io/huggingface/text-generation-inference:3.3.5 --model-id meta-llama/Llama-3.1-8B-Instruct\n"
UNKNOWN = "vllm serve own/model --tensor-parallel-size 2\n"
UNRELATED = "apiVersion: v1\nkind: ConfigMap\ndata: [\n"
OTHERS = ("anyio", "hypothesispytest", "platformdirs")  # plugins that tools of ours bring; a third of the time
INERT = """\
import sys

def test_nothing_of_ours_is_loaded():
    ours = {name for name in sys.modules if name.partition(".")[0] == "shardlint"}
    assert ours == {"shardlint", "shardlint._version", "shardlint.front", "shardlint.front.pytest_plugin"}
"""


def manifest(size: int, name: str = "chat", gpus: int = 0, model: str = "meta-llama/Llama-3.1-8B-Instruct") -> str:
    return MANIFEST.format(name=name, size=size, gpus=gpus or size, model=model)


class Run(NamedTuple):
    code: int
    out: str
    err: str

    def items(self) -> dict[str, str]:
        """The outcome of each item, by its id."""
        found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED)(?: \[1\])? ([^\s]+?)(?=: | - |$)", self.out, re.MULTILINE)
        return {item: outcome for outcome, item in found}


class Project:
    """A folder with tests and manifests, and the pytest that runs there."""

    def __init__(self, folder: Path, pytest_folder: str = "", version: str = pytest.__version__) -> None:
        self.folder = folder
        self.version = version
        not_kept = ("PYTEST", "PYTHON", "HF_", "CI", "BUILD_NUMBER")  # under CI pytest repeats messages in its summary
        kept = {name: value for name, value in os.environ.items() if not name.startswith(not_kept)}
        self.env = {
            **kept,
            "HOME": str(folder),
            "HF_HOME": str(folder / "none"),
            "PYTHONPATH": pytest_folder,
            "PYTEST_ADDOPTS": " ".join(f"-p no:{plugin}" for plugin in OTHERS),
        }
        self.write({"pytest.ini": "[pytest]\n"})

    def write(self, texts: dict[str, str]) -> None:
        for name, text in texts.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def run(self, *words: str) -> Run:
        done = self.command("pytest", "-p", "no:cacheprovider", "-rA", *words)
        assert done.err or f", pytest-{self.version}" in done.out
        return done

    def command(self, module: str, *words: str) -> Run:
        done = subprocess.run(
            [sys.executable, "-m", module, *words], cwd=self.folder, env=self.env, capture_output=True, text=True
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def collected(self, *words: str) -> list[str]:
        done = self.command("pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *words)
        return [line for line in done.out.splitlines() if "::" in line]

    def checked(self, path: str) -> str:
        """What the command says of a file."""
        return self.command("shardlint", path).out.rstrip("\n")


@pytest.fixture(scope="module")
def pytest_8(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("pytest-8"))
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder, "pytest==8.*")
    subprocess.run([sys.executable, *install], check=True, capture_output=True)
    return folder


@pytest.fixture(params=["8", "installed"])
def each_pytest(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    folder = request.getfixturevalue("pytest_8") if request.param == "8" else ""
    return Project(tmp_path, folder, version="8." if folder else pytest.__version__)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# every pytest, with and without xdist


def test_until_it_is_asked_nothing_is_collected_and_nothing_imported(each_pytest: Project) -> None:
    each_pytest.write({"test_own.py": INERT, "deploy/chat.yaml": manifest(3)})
    done = each_pytest.run()
    assert done.items() == {"test_own.py::test_nothing_of_ours_is_loaded": "PASSED"}, done.out


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_every_deployment_is_an_item_whose_failure_is_the_report(each_pytest: Project, workers: Iterable[str]) -> None:
    each_pytest.write(
        {
            "test_own.py": "def test_own():\n    pass\n",
            "deploy/wrong.yaml": manifest(3) + "---\n" + manifest(4, name="fine"),
            "deploy/tgi.sh": TGI,
            "deploy/unrelated.yaml": UNRELATED,
            "deploy/bytes.yaml": "",
        }
    )
    (each_pytest.folder / "deploy/bytes.yaml").write_bytes(b"name: vllm\nword: \xff\n")
    done = each_pytest.run("--shardlint", "--junitxml=report.xml", *workers)
    assert done.code == 1
    assert done.items() == {
        "test_own.py::test_own": "PASSED",
        "deploy/wrong.yaml::Deployment/chat": "FAILED",
        "deploy/wrong.yaml::Deployment/fine": "PASSED",
        "deploy/bytes.yaml::file": "FAILED",
        "deploy/tgi.sh": "SKIPPED",
    }
    assert "deploy/tgi.sh: TGI is read and not judged" in done.out
    assert not re.search(r"Traceback|\.py:\d", done.out)

    report = ElementTree.parse(each_pytest.folder / "report.xml")
    cases = {f"{case.get('classname')}::{case.get('name')}": case for case in report.iter("testcase")}
    texts = {name: case.findtext("failure") for name, case in cases.items()}
    alone = each_pytest.checked("deploy/wrong.yaml").replace("in 2 deployments", "in 1 deployment")
    assert texts["deploy.wrong.yaml::Deployment/chat"] == alone
    assert alone in done.out
    assert texts["deploy.bytes.yaml::file"] == each_pytest.checked("deploy/bytes.yaml")
    properties = [(p.get("name"), p.get("value")) for p in cases["deploy.wrong.yaml::Deployment/chat"].iter("property")]
    assert properties == [
        ("shardlint_code", "SL101"),
        ("shardlint_family", "tp-heads"),
        ("shardlint_code", "SL102"),
        ("shardlint_family", "tp-kv-heads"),
    ]
    assert not list(cases["deploy.wrong.yaml::Deployment/fine"].iter("property"))


def test_a_finding_in_another_file_fails_the_deployment_that_it_is_about(project: Project) -> None:
    project.write(
        {
            "deploy/serve.sh": "vllm serve --config flags.yaml\n",
            "deploy/flags.yaml": "model: Qwen/Qwen3-8B\ntensor-parallel-size: 3\n",
        }
    )
    done = project.run("--shardlint")
    assert done.items() == {"deploy/serve.sh::serve.sh": "FAILED"}, done.out
    assert project.checked("deploy").replace("of 2 files", "of 1 file") in done.out


def test_what_an_overlay_changes_is_one_item(project: Project) -> None:
    patch = "[{op: replace, path: /spec/template/spec/containers/0/args/1, value: --tensor-parallel-size=1}]"
    project.write(
        {
            "base/kustomization.yaml": "resources: [chat.yaml]\n",
            "base/chat.yaml": manifest(2),
            "over/kustomization.yaml": f"resources: [../base]\npatches: [{{target: {{kind: Deployment}}, patch: '{patch}'}}]\n",
        }
    )
    done = project.run("--shardlint")
    assert done.items() == {"over/kustomization.yaml::Deployment/chat": "FAILED"}, done.out
    assert "base/chat.yaml:15:31: warning[SL802 idle-gpus]" in done.out


def test_the_fixture_checks_one_layout_without_the_switch(each_pytest: Project) -> None:
    each_pytest.write(
        {
            "test_own.py": """\
def test_wrong(shardlint):
    shardlint.assert_layout("vllm serve Qwen/Qwen3-8B -tp 3", hardware="8xH100")

def test_right(shardlint):
    report = shardlint.assert_layout(["vllm", "serve", "own/model", "-tp", "4"])
    assert not report.findings and not report.not_checked
""",
            "models/own--model.json": (Path(__file__).parent / "own_model.json").read_text(),
            "pyproject.toml": "[tool.shardlint]\nmodels = 'models'\nhardware = '4xH100'\n",
        }
    )
    done = each_pytest.run()
    assert done.items() == {"test_own.py::test_wrong": "FAILED", "test_own.py::test_right": "PASSED"}, done.out
    assert "E       <command>:1:30: error[SL101 query-heads]: 32 attention heads do not divide" in done.out
    assert re.findall(r"^\S+\.py:\d+: ", done.out, re.MULTILINE) == ["test_own.py:2: "]


# the installed one


def count_passes(project: Project) -> None:
    """Have every pass of the judge written down: how many files, in which process."""
    project.write(
        {
            "conftest.py": """\
import os
from pathlib import Path
from shardlint.front import pytest_session

judge_each = pytest_session.judge_each

def counting(readings, *rest):
    with (Path(__file__).parent / "passes").open("a") as passes:
        passes.write(f"{os.getpid()} {len(readings)}\\n")
    return judge_each(readings, *rest)

pytest_session.judge_each = counting
""",
        }
    )


def passes(project: Project) -> list[tuple[str, int]]:
    lines = [line.split() for line in (project.folder / "passes").read_text().splitlines()]
    (project.folder / "passes").unlink()
    return [(process, int(files)) for process, files in lines]


def test_all_files_are_judged_in_one_pass(project: Project) -> None:
    count_passes(project)
    project.write({f"deploy/{n}.yaml": manifest(4, name=f"chat-{n}") for n in range(5)})
    assert project.run("--shardlint").code == 0
    assert [files for _, files in passes(project)] == [5]
    assert project.run("--shardlint", "deploy/3.yaml::Deployment/chat-3").items().keys() == {
        "deploy/3.yaml::Deployment/chat-3"
    }
    assert [files for _, files in passes(project)] == [1]
    assert project.run("--shardlint", "-n", "2").code == 0
    processes = [process for process, _ in passes(project)]
    assert len(set(processes)) == len(processes) <= 2


@pytest.mark.parametrize(
    "settings",
    [
        {"pytest.ini": "[pytest]\nshardlint = true\n"},
        {"pyproject.toml": "[tool.pytest.ini_options]\nshardlint = true\n"},
    ],
)
def test_the_ini_option_switches_it_on(project: Project, settings: dict[str, str]) -> None:
    project.write({"deploy/chat.yaml": manifest(4)})
    (project.folder / "pytest.ini").unlink()
    project.write(settings)
    assert project.collected() == ["deploy/chat.yaml::Deployment/chat"]
    assert project.collected("-m", "not shardlint") == []


def test_deployments_of_one_name_are_told_apart(project: Project) -> None:
    project.write({"chat.yaml": "---\n".join(manifest(size) for size in (4, 3, 2)), "other.yaml": manifest(3)})
    assert project.run("--shardlint", "chat.yaml").items() == {
        "chat.yaml::Deployment/chat": "PASSED",
        "chat.yaml::Deployment/chat[2]": "FAILED",
        "chat.yaml::Deployment/chat[3]": "PASSED",
    }


def test_what_git_ignores_is_collected_only_when_named(project: Project) -> None:
    project.write({".git/HEAD": "", ".gitignore": "rendered/\n", "rendered/chat.yaml": manifest(4)})
    assert project.collected("--shardlint") == []
    assert project.collected("--shardlint", "rendered/chat.yaml") == ["rendered/chat.yaml::Deployment/chat"]


def test_a_named_file_that_cannot_be_read_is_skipped_with_the_reason(project: Project) -> None:
    (project.folder / "chat.yaml").write_bytes(b"vllm\0")
    assert project.collected("--shardlint") == []
    assert "not read: a binary file" in project.run("--shardlint", "chat.yaml").out


def test_a_note_passes_and_is_shown_on_request_until_the_threshold_is_lowered(project: Project) -> None:
    project.write({"chat.yaml": manifest(8, model="Qwen/Qwen3-30B-A3B")})
    passed = project.run("--shardlint")
    assert passed.items() == {"chat.yaml::Deployment/chat": "PASSED"}
    assert "Captured shardlint call" in passed.out
    assert "note[SL103 kv-heads-replicated]" in passed.out
    project.write({"pyproject.toml": "[tool.shardlint]\nfail-on = 'note'\n"})
    assert project.run("--shardlint").code == 1
    project.write({"pyproject.toml": "[tool.shardlint]\nignore = ['SL103']\n"})
    assert project.run("--shardlint", "--shardlint-fail-on=note").code == 0


def test_an_inline_comment_counts_and_an_unused_one_belongs_to_the_file(project: Project) -> None:
    text = manifest(3).replace("size=3]", "size=3]  # shardlint: ignore[SL101, SL102] on purpose")
    project.write({"chat.yaml": text})
    done = project.run("--shardlint")
    assert done.items() == {"chat.yaml::file": "PASSED", "chat.yaml::Deployment/chat": "PASSED"}
    project.write({"chat.yaml": text.replace("size=3", "size=4").replace("gpu: 3", "gpu: 4")})
    done = project.run("--shardlint", "--shardlint-fail-on=note")
    assert done.items() == {"chat.yaml::file": "FAILED", "chat.yaml::Deployment/chat": "PASSED"}


def test_what_could_not_be_checked_is_said_and_fails_on_request(project: Project) -> None:
    project.write({"serve.sh": UNKNOWN})
    said = r"^shardlint: \d+ rules could not be checked on 1 deployment; -rP says what is missing$"
    for workers in ((), ("-n", "1")):
        done = project.run("--shardlint", *workers)
        assert done.items() == {"serve.sh::serve.sh": "PASSED"}
        assert re.search(said, done.out, re.MULTILINE), done.out
    assert project.run("--shardlint", "--shardlint-strict").code == 1


def test_models_and_hardware_are_given_by_options(project: Project) -> None:
    project.write(
        {"serve.sh": UNKNOWN, "models/own--model.json": (Path(__file__).parent / "own_model.json").read_text()}
    )
    given = ("--shardlint-models=models", "--shardlint-hardware=2xH100")
    assert project.run("--shardlint", "--shardlint-strict", *given).code == 0
    one = project.run("--shardlint", given[0], "--shardlint-hardware=1xH100")
    assert "error[SL801 world-size]" in one.out


@pytest.mark.parametrize(
    ("words", "toml", "said"),
    [
        (("--shardlint-hardware=9xPotato,",), "", "ERROR: shardlint: --hardware 9xPotato,: "),
        (("--shardlint-models=gone",), "", "gone: no such file or folder"),
        ((), "[tool.shardlint]\nignore = ['query-head']\n", "did you mean query-heads"),
        ((), "[tool.shardlint]\nmodell = 'x'\n", "pyproject.toml:2: [tool.shardlint] has no key modell"),
    ],
)
def test_settings_that_make_no_sense_end_the_run(project: Project, words: Iterable[str], toml: str, said: str) -> None:
    project.write({"test_own.py": INERT, "pyproject.toml": toml})
    done = project.run("--shardlint", *words)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_rule_that_raises_fails_every_deployment_and_is_asked_once(project: Project) -> None:
    count_passes(project)
    with (project.folder / "conftest.py").open("a") as conftest:
        conftest.write(
            """
from shardlint import plugins

def judge(tensor_parallel_size):
    raise ZeroDivisionError("by 0")

def broken(rule):
    return rule._replace(judge=judge) if rule.name == "query-heads" else rule

OWN = plugins.built_in()
plugins.built_in = lambda: OWN._replace(rules=tuple(map(broken, OWN.rules)))
"""
        )
    project.write({f"{n}.yaml": manifest(4) for n in range(3)})
    done = project.run("--shardlint")
    assert set(done.items().values()) == {"FAILED"}
    assert done.out.count("shardlint: the rule query-heads failed: ZeroDivisionError: by 0") == 3
    assert "Traceback" not in done.out
    assert [files for _, files in passes(project)] == [3]
