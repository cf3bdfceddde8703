"""[tool.shardlint] in pyproject.toml: found, read, and refused with the place where it is wrong."""

from pathlib import Path

import pytest

from shardlint.front.failures import CannotRun
from shardlint.front.settings import ProjectSettings, project_folder, read_settings

ALL = """\
[tool.shardlint]
select = ["SL1", "world-vs-gpus"]
ignore = ["kv-heads-replicated"]
fail-on = "error"
vllm = "0.8.5"
hardware = "8xH100"
models = "deploy/models"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k8s/deep").mkdir(parents=True)
    Path(".git").mkdir()


def test_every_key_is_read() -> None:
    Path("pyproject.toml").write_text(ALL)
    assert read_settings(["k8s/deep"], "pyproject.toml") == ProjectSettings(
        select=("SL1", "world-vs-gpus"),
        ignore=("kv-heads-replicated",),
        fail_on="error",
        vllm="0.8.5",
        hardware="8xH100",
        models="deploy/models",
    )


def test_the_nearest_file_that_has_the_table_counts(tmp_path: Path) -> None:
    Path("pyproject.toml").write_text(ALL)
    Path("k8s/pyproject.toml").write_text('[project]\nname = "shardlint-user"\n')
    settings = read_settings(["k8s/deep"], None)
    assert settings.vllm == "0.8.5"
    assert settings.models == str(tmp_path / "deploy/models")


def test_nothing_above_the_repository_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pyproject.toml").write_text(ALL)
    Path("k8s/.git").mkdir()
    assert read_settings(["k8s/deep"], None) == ProjectSettings()


def test_without_a_file_nothing_is_set() -> None:
    assert read_settings(["k8s"], None) == ProjectSettings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.shardlint]\n\nmodel = 'x'\n", "pyproject.toml:3: [tool.shardlint] has no key model; there are select,"),
        (
            "[tool.shardlint]\nselect = 'SL1'\n",
            "pyproject.toml:2: [tool.shardlint] select is a list of strings, not 'SL1'",
        ),
        ("[tool.shardlint]\nignore = [1]\n", "ignore is a list of strings, not [1]"),
        ("[tool.shardlint]\nvllm = 0.8\n", "pyproject.toml:2: [tool.shardlint] vllm is a string, not 0.8"),
        ("[tool.shardlint]\nfail-on = 'never'\n", "fail-on is one of error, warning, note, not never"),
        ("[tool]\nshardlint = 3\n", "is not a table"),
        ("[tool.shardlint\n", "pyproject.toml: "),
        ("[tool.shardlint]\nvllm = '\ud800'\n", "pyproject.toml: "),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    Path("pyproject.toml").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(CannotRun) as caught:
        read_settings(["."], "pyproject.toml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_config_file_ends_the_run() -> None:
    with pytest.raises(CannotRun, match=r"gone\.toml: No such file"):
        read_settings(["."], "gone.toml")


def test_the_project_is_the_nearest_folder_with_a_mark(tmp_path: Path) -> None:
    assert project_folder(["k8s/deep", "elsewhere"]) == str(tmp_path)
    Path("k8s/pyproject.toml").write_text("")
    assert project_folder(["k8s/deep/a.yaml"]) == str(tmp_path / "k8s")
    assert project_folder(["-"]) == str(tmp_path)


def test_a_folder_that_keeps_models_is_nearer_than_any_mark(tmp_path: Path) -> None:
    Path("k8s/pyproject.toml").write_text("")
    Path(".shardlint/models").mkdir(parents=True)
    assert project_folder(["k8s/deep"]) == str(tmp_path)
    Path("k8s/deep/.shardlint/models").mkdir(parents=True)
    assert project_folder(["k8s/deep"]) == str(tmp_path / "k8s/deep")


def test_no_models_are_taken_from_beyond_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".shardlint/models").mkdir(parents=True)
    Path("k8s/.git").mkdir()
    monkeypatch.chdir("k8s/deep")
    assert project_folder([]) == str(tmp_path / "k8s")
