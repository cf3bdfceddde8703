"""The rules of .gitignore, by the table of git's own documentation and by asking git."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardlint.front.gitignore import parse

IGNORED, KEPT, SILENT = True, False, None


@pytest.mark.parametrize(
    ("lines", "path", "is_folder", "verdict"),
    [
        ("build", "build", True, IGNORED),
        ("build", "deep/down/build", False, IGNORED),
        ("build", "builds", False, SILENT),
        ("build/", "build", True, IGNORED),
        ("build/", "build", False, SILENT),
        ("/build", "deep/build", False, SILENT),
        ("/build", "build", False, IGNORED),
        ("deep/build", "deep/build", False, IGNORED),
        ("deep/build", "more/deep/build", False, SILENT),
        ("*.yaml", "a.yaml", False, IGNORED),
        ("*.yaml", "deep/a.yaml", False, IGNORED),
        ("a*c*e", "abcde", False, IGNORED),
        ("a*c*e", "abcdef", False, SILENT),
        ("a*c", "a/c", False, SILENT),
        ("a?c", "abc", False, IGNORED),
        ("a?c", "a/c", False, SILENT),
        ("**/logs", "a/b/logs", True, IGNORED),
        ("**/logs", "logs", True, IGNORED),
        ("logs/**", "logs", True, SILENT),
        ("logs/**", "logs/a/b", False, IGNORED),
        ("a/**/b", "a/b", False, IGNORED),
        ("a/**/b", "a/x/y/b", False, IGNORED),
        ("a/**/b", "c/a/x/b", False, SILENT),
        ("**/a/**/b/c*", "x/a/y/a/z/b/b/cc", False, IGNORED),
        ("[a-c].yml", "b.yml", False, IGNORED),
        ("[!a-c].yml", "b.yml", False, SILENT),
        ("[^a-c].yml", "d.yml", False, IGNORED),
        ("[]x].yml", "].yml", False, IGNORED),
        ("[[:digit:]].yml", "7.yml", False, IGNORED),
        ("[z-a].yml", "b.yml", False, SILENT),
        ("[a", "[a", False, SILENT),
        ("# note", "# note", False, SILENT),
        (r"\# note", "# note", False, IGNORED),
        (r"\!important", "!important", False, IGNORED),
        ("trailing  ", "trailing", False, IGNORED),
        ("trailing\\ ", "trailing ", False, IGNORED),
        ("odd\\", "odd", False, SILENT),
        ("*.log\n!keep.log", "keep.log", False, KEPT),
        ("!keep.log\n*.log", "keep.log", False, IGNORED),
        ("dos\r\n", "dos", False, IGNORED),
        ("\ufeffmark", "mark", False, IGNORED),
        ("", "anything", False, SILENT),
        ("/", "anything", True, SILENT),
        ("caf?", "café", False, SILENT),  # git's ? is one byte, and é has two
        ("café*", "café.yaml", False, IGNORED),
    ],
)
def test_verdicts(lines: str, path: str, is_folder: bool, verdict: bool | None) -> None:
    assert parse(lines).verdict(path, is_folder) is verdict


def test_a_hostile_pattern_costs_no_more_than_an_honest_one() -> None:
    ignores = parse("a*" * 60 + "b\n" + "/".join(["**", "a"] * 20) + "/b")
    start = time.process_time()
    ignores.verdict("a" * 250, False)
    ignores.verdict("/".join(["a"] * 120), False)
    assert time.process_time() - start < 1


PIECES = ("a", "b", "é", ".", "*", "?", "/", "/**/", "[ab]", "[!a]", "[a-b]", "\\*", "!", " ", "#")
# `a**/b` is left out: git's matcher takes its stars for `**/` after it has cut off the `a`, against its documentation
LINES = (
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5)
    .map("".join)
    .filter(lambda line: "**" not in line.replace("/**/", "//"))
)
PARTS = st.text(alphabet="abé.", min_size=1, max_size=3).filter(lambda part: part not in (".", ".."))


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_says_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    repository = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(repository)], check=True)

    @settings(max_examples=60, deadline=None)
    @given(
        lines=st.lists(LINES, min_size=1, max_size=3),
        paths=st.lists(st.lists(PARTS, min_size=1, max_size=4).map("/".join), min_size=1, max_size=20, unique=True),
    )
    def compare(lines: list[str], paths: list[str]) -> None:
        text = "\n".join(lines)
        assert _ours(text, paths) == _of_git(repository, text, paths), text

    compare()


def _ours(text: str, paths: list[str]) -> dict[str, bool]:
    ignores = parse(text)
    answer = {}
    for path in paths:
        parts = path.split("/")
        parents = ["/".join(parts[:count]) for count in range(1, len(parts))]
        answer[path] = any(ignores.verdict(parent, True) for parent in parents) or bool(ignores.verdict(path, False))
    return answer


def _of_git(repository: Path, text: str, paths: list[str]) -> dict[str, bool]:
    (repository / ".gitignore").write_text(text)
    asked = "".join(path + "\0" for path in paths)
    command = ["git", "-C", str(repository), "check-ignore", "--no-index", "--stdin", "-z"]
    told = subprocess.run(command, input=asked, capture_output=True, text=True, check=False).stdout.split("\0")
    return {path: path in told for path in paths}
