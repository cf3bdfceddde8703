"""Which files of a folder are read, and what is said of those that are not."""

import io
import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from shardlint.findings import Span
from shardlint.front import files
from shardlint.front.failures import CannotRun
from shardlint.front.files import find

PATTERNS = ("*.yaml", "*.sh")
ENGINE = "image: vllm/vllm-openai\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*names: str, text: str = ENGINE) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read(*paths: str) -> list[str]:
    return [source.path for source in find(paths, PATTERNS).sources]


def reasons(*paths: str) -> dict[str, str | None]:
    return {note.path: note.reason for note in find(paths, PATTERNS).notes}


@pytest.mark.usefixtures("tree")
class TestFolders:
    def test_files_below_a_folder_are_read_in_order_by_name(self) -> None:
        write("k8s/b.yaml", "k8s/a.yaml", "k8s/deep/c.sh", "k8s/readme.md")
        assert read("k8s") == ["k8s/a.yaml", "k8s/b.yaml", "k8s/deep/c.sh"]

    def test_paths_are_as_given(self) -> None:
        write("k8s/a.yaml")
        assert read(".") == ["k8s/a.yaml"]
        assert read("./k8s/") == ["./k8s/a.yaml"]
        assert read("k8s/../k8s") == ["k8s/../k8s/a.yaml"]

    def test_what_starts_no_engine_is_passed_over_by_its_bytes(self) -> None:
        write("service.yaml", text="kind: Service\n")
        write("upper.yaml", text="image: registry/VLLM\n")
        assert read(".") == ["upper.yaml"]
        assert reasons(".") == {}

    def test_python_that_calls_no_engine_is_passed_over(self) -> None:
        write("a/client.py", text="import vllm_client\nprint('vllm serve')\n")
        write("a/serve.py", text="from vllm import LLM\nLLM('m')\n")
        assert [source.path for source in find(("a",), ["*.py"]).sources] == ["a/serve.py"]
        assert [source.path for source in find(("a/client.py",), ["*.py"]).sources] == ["a/client.py"]

    def test_folders_of_tools_are_passed_over(self) -> None:
        write("node_modules/a.yaml", ".git/b.yaml", ".venv/c.yaml", ".github/d.yaml")
        assert read(".") == [".github/d.yaml"]

    def test_binary_files_are_passed_over(self) -> None:
        Path("a.yaml").write_bytes(b"vllm\0\1\2")
        assert read(".") == []

    def test_a_file_is_read_once(self) -> None:
        write("k8s/a.yaml")
        assert read("k8s/a.yaml", "k8s", ".") == ["k8s/a.yaml"]

    def test_a_deep_tree_is_no_trouble(self) -> None:
        deep = "/".join(["d"] * 300)
        write(f"{deep}/a.yaml")
        assert read(".") == [f"{deep}/a.yaml"]


@pytest.mark.usefixtures("tree")
class TestIgnored:
    def test_what_git_ignores_is_passed_over(self) -> None:
        write("keep.yaml", "out/a.yaml", "deep/out/b.yaml", "deep/special.yaml", "other/special.yaml")
        write(".gitignore", text="out/\nspecial.yaml\n")
        write("deep/.gitignore", text="!special.yaml\n")
        assert read(".") == ["keep.yaml", "deep/special.yaml"]

    def test_the_files_above_count_up_to_the_top_of_the_repository(self) -> None:
        write("repo/k8s/a.yaml", "repo/k8s/b.yaml", "repo/k8s/c.yaml")
        write(".gitignore", text="a.yaml\n")
        write("repo/.gitignore", text="/k8s/b.yaml\n")
        write("repo/.git/info/exclude", text="c.yaml\n")
        assert read("repo/k8s") == ["repo/k8s/a.yaml"]

    def test_without_a_repository_nothing_above_counts(self) -> None:
        write("k8s/a.yaml")
        write(".gitignore", text="a.yaml\n")
        assert read("k8s") == ["k8s/a.yaml"]

    def test_a_named_file_is_read_all_the_same(self) -> None:
        write("a.yaml")
        write(".gitignore", text="a.yaml\n")
        assert read("a.yaml") == ["a.yaml"]


@pytest.mark.usefixtures("tree")
class TestNamed:
    def test_a_named_file_is_read_whatever_its_name_and_content(self) -> None:
        write("serve", text="nothing of interest\n")
        assert read("serve") == ["serve"]

    def test_a_missing_path_ends_the_run(self) -> None:
        with pytest.raises(CannotRun, match=r"gone\.yaml: no such file or folder"):
            read("gone.yaml")

    def test_a_binary_file_is_noted(self) -> None:
        Path("weights.bin").write_bytes(b"\0\1")
        assert reasons("weights.bin") == {"weights.bin": "a binary file"}

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ENGINE.encode())))
        [source] = find(["-"], PATTERNS).sources
        assert (source.path, source.text) == ("-", ENGINE)


@pytest.mark.usefixtures("tree")
class TestLinks:
    def test_a_loop_of_links_is_no_trouble(self) -> None:
        write("k8s/a.yaml")
        Path("k8s/up").symlink_to("..")
        Path("k8s/again.yaml").symlink_to("a.yaml")
        assert read(".") == ["k8s/a.yaml"]
        assert reasons(".") == {}

    def test_links_out_of_the_folder_are_noted_and_not_followed(self) -> None:
        write("outside/secret.yaml", "k8s/a.yaml")
        Path("k8s/b.yaml").symlink_to("../outside/secret.yaml")
        Path("k8s/c").symlink_to("../outside")
        assert read("k8s") == ["k8s/a.yaml"]
        assert set(reasons("k8s")) == {"k8s/b.yaml", "k8s/c"}

    def test_a_named_link_is_followed(self) -> None:
        write("outside/a.yaml")
        Path("b.yaml").symlink_to("outside/a.yaml")
        assert read("b.yaml") == ["b.yaml"]

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_a_named_pipe_in_a_folder_does_not_hold_up_the_run(self) -> None:
        os.mkfifo("pipe.yaml")
        assert read(".") == []


@pytest.mark.usefixtures("tree")
class TestText:
    def test_too_large_files_are_noted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "MOST_BYTES", 2 * 1024 * 1024)
        write("a.yaml", text=ENGINE + "#" * 2 * 1024 * 1024)
        assert read(".") == []
        assert reasons(".") == {"a.yaml": "larger than 2 MiB"}

    def test_a_file_that_may_not_be_opened_is_a_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused(path: str, mode: str) -> NoReturn:
            raise PermissionError(13, "Permission denied", path)

        write("a.yaml")
        monkeypatch.setattr(files, "open", refused, raising=False)
        found = find(["."], PATTERNS)
        assert [(problem.at.path, problem.message) for problem in found.problems if isinstance(problem.at, Span)] == [
            ("a.yaml", "the file cannot be read: Permission denied")
        ]

    def test_the_byte_that_cannot_be_decoded_is_named_at_its_place(self) -> None:
        Path("a.yaml").write_bytes("\ufeffimage: vllm\nname: né".encode() + b"\xff\n")
        found = find(["."], PATTERNS)
        [problem] = found.problems
        assert problem.at == Span("a.yaml", 2, 9, 2, 10)
        assert "0xff" in problem.message
        assert [note.reason for note in found.notes] == ["not UTF-8 text"]

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    def test_byte_order_marks_are_no_part_of_the_text(self, encoding: str) -> None:
        Path("a.yaml").write_bytes(ENGINE.encode(encoding))
        assert [source.text for source in find(["."], PATTERNS).sources] == [ENGINE]


def test_force_exclude_passes_over_named_files_that_a_search_would(tree: Path) -> None:
    Path(".git").mkdir()
    Path(".gitignore").write_text("rendered/\n*.local.yaml\n")
    named = ["deploy/a.yaml", "deploy/rendered/b.yaml", "deploy/c.local.yaml", "node_modules/d.yaml", "e.yaml"]
    write(*named[:-1])
    write("e.yaml", text="image: nginx\nbroken: [\n")
    Path("f.yaml").write_bytes(b"\0")
    found = find([*named, "f.yaml"], ("*.yaml",), force_exclude=True)
    assert [source.path for source in found.sources] == ["deploy/a.yaml"]
    assert not found.notes and not found.problems
    assert len(find(named, ("*.yaml",)).sources) == len(named)


def test_force_exclude_of_a_file_elsewhere_asks_its_own_folder(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("here/x", "node_modules/there/.git"):
        Path(path).mkdir(parents=True)
    write("node_modules/there/a.yaml", "node_modules/there/b.yaml")
    Path("node_modules/there/.gitignore").write_text("b.yaml\n")
    monkeypatch.chdir("here")
    for folder in ("../node_modules/there", tree / "node_modules/there"):
        found = find([f"{folder}/a.yaml", f"{folder}/b.yaml"], ("*.yaml",), force_exclude=True)
        assert [source.path for source in found.sources] == [f"{folder}/a.yaml"]
