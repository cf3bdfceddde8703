"""The command line as its users call it: exit codes, streams, selections."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from shardlint import __version__, plugins
from shardlint.findings import Problem, Rule
from shardlint.front.main import main
from shardlint.plugins import registry

FAULTY = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat
spec:
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          args:
            - --model=own/model
            - --tensor-parallel-size=3
          resources:
            limits:
              nvidia.com/gpu: 3
      hostIPC: true
"""
CLEAN = FAULTY.replace("size=3", "size=4").replace("gpu: 3", "gpu: 4")
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HF_HUB_CACHE", "HF_HOME", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-cache"))
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()
    Path("bad.yaml").write_text(FAULTY)
    Path("good.yaml").write_text(CLEAN)
    Path("models.json").write_text(json.dumps({"own/model": CONFIG}))
    Path("config.json").write_text(json.dumps(CONFIG))
    return tmp_path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def found(run: Run, *words: str) -> set[str]:
    _code, out, _err = run("check", "--format", "json", "--models", "models.json", *words)
    return {finding["rule"] for finding in json.loads(out)["findings"]}


class TestExitCodes:
    def test_0_where_nothing_is_found(self, run: Run) -> None:
        code, out, err = run("--models", "models.json", "good.yaml")
        assert (code, err) == (0, "")
        assert "nothing found in 1 deployment of 1 file" in out

    def test_1_where_something_reaches_the_threshold(self, run: Run) -> None:
        code, out, err = run("--models", "models.json", "bad.yaml")
        assert (code, err) == (1, "")
        assert out.startswith("bad.yaml:13:38: error[SL101 query-heads]: 32 ")

    def test_the_check_command_may_be_named(self, run: Run) -> None:
        assert run("check", "--models", "models.json", "bad.yaml") == run("--models", "models.json", "bad.yaml")

    def test_a_file_that_cannot_be_parsed_is_a_finding(self, run: Run) -> None:
        Path("broken.yaml").write_text(FAULTY + "  bad: [\n")
        assert "unreadable-file" in found(run, "broken.yaml")

    def test_a_file_that_cannot_be_decoded_is_a_finding(self, run: Run) -> None:
        Path("bytes.yaml").write_bytes(FAULTY.encode() + b"# \xff\n")
        code, out, _err = run("bytes.yaml")
        assert code == 1
        assert "bytes.yaml:18:3: error[SL001 unreadable-file]: byte 0xff is no UTF-8 text" in out
        assert found(run, "--ignore", "file", "bytes.yaml") == set()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ((), "the following arguments are required: PATH"),
            (("gone.yaml",), "gone.yaml: no such file or folder"),
            (("--wrong", "good.yaml"), "unrecognized arguments: --wrong"),
            (("--fail-on", "never", "good.yaml"), "--fail-on: invalid choice"),
            (("--select", "qery-heads", "good.yaml"), "did you mean query-heads"),
            (("--hardware", "many", "good.yaml"), "--hardware many: "),
            (("--vllm", "new", "good.yaml"), "--vllm new: not a release such as 0.33.0"),
            (("--models", "gone", "good.yaml"), "--models gone: no such file or folder"),
            (("--models", "config.json", "good.yaml"), "this is the config.json of one model"),
            (("--config", "gone.toml", "good.yaml"), "gone.toml: No such file"),
            (("explain", "SL999"), "no rule is called SL999"),
            (("explain", "tp-heads"), "tp-heads is the name of a family or group, whose rules are: query-heads\n"),
            (("explain", "sl4"), "expert-parallel-dense"),
            (("inspect",), "the following arguments are required: PATH"),
        ],
    )
    def test_2_and_one_line_where_the_job_cannot_be_done(self, run: Run, words: tuple[str, ...], said: str) -> None:
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert said in err
        assert err.startswith("shardlint: ")
        assert err.count("\n") == 1

    def test_2_and_its_name_where_a_rule_raises(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def judge(deployment: object) -> list[Problem]:
            raise ZeroDivisionError("by hand")

        broken = Rule("SL999", "broken-rule", "plugin", "error", None, judge)
        monkeypatch.setattr(plugins, "built_in", lambda: registry.built_in()._replace(rules=(broken,)))
        code, out, err = run("good.yaml")
        assert (code, out) == (2, "")
        assert "broken-rule" in err
        assert "by hand" in err

    def test_strict_counts_what_could_not_be_checked(self, run: Run) -> None:
        assert run("good.yaml")[0] == 0
        code, out, _err = run("--strict", "good.yaml")
        assert code == 1
        assert "not checked:" in out

    def test_fail_on_sets_the_threshold(self, run: Run) -> None:
        Path("odd.yaml").write_text(CLEAN + "# shardlint: ignore[query-heads] nothing to ignore\n")
        assert found(run, "odd.yaml") == {"unused-ignore"}
        assert run("odd.yaml", "--models", "models.json")[0] == 0
        assert run("odd.yaml", "--models", "models.json", "--fail-on", "note")[0] == 1


class TestSelections:
    @pytest.mark.parametrize("word", ["SL101", "sl101", "query-heads", "tp-heads", "SL10", "SL1"])
    def test_codes_names_groups_and_families(self, run: Run, word: str) -> None:
        assert "query-heads" in found(run, "--select", word, "bad.yaml")
        assert "query-heads" not in found(run, "--ignore", word, "bad.yaml")

    def test_several_words(self, run: Run) -> None:
        assert found(run, "--select", "SL1,SL8", "--ignore", "kv-heads,SL8", "bad.yaml") == {"query-heads"}

    def test_the_project_selects_and_the_option_wins(self, run: Run) -> None:
        Path("pyproject.toml").write_text('[tool.shardlint]\nignore = ["SL1"]\nmodels = "models.json"\n')
        assert run("bad.yaml")[0] == 0
        assert found(run, "--ignore", "SL8", "bad.yaml") == {"query-heads", "kv-heads"}

    def test_a_setting_that_names_no_rule_ends_the_run(self, run: Run) -> None:
        Path("pyproject.toml").write_text('[tool.shardlint]\nselect = ["nothing-such"]\n')
        code, _out, err = run("bad.yaml")
        assert code == 2
        assert "nothing-such" in err


class TestOutput:
    def published(self, name: str) -> Any:
        return json.loads(files("shardlint.report").joinpath(f"schemas/{name}-1.json").read_text())

    def test_json_is_printed_at_0_and_1_alike(self, run: Run) -> None:
        for path, expected in (("good.yaml", 0), ("bad.yaml", 1)):
            code, out, _err = run("check", "--format", "json", "--models", "models.json", path)
            assert code == expected
            jsonschema.validate(json.loads(out), self.published("check"))

    def test_inspect(self, run: Run) -> None:
        code, out, _err = run("inspect", "--format", "json", ".")
        document = json.loads(out)
        jsonschema.validate(document, self.published("inspect"))
        assert code == 0
        assert [row["path"] for row in document["deployments"]] == ["bad.yaml", "good.yaml"]
        assert document["deployments"][0]["tensor_parallel_size"] == 3

    def test_inspect_is_told_of_the_machine(self, run: Run) -> None:
        for words, unknown in ((), True), (("--hardware", "1xH100-SXM5-80GB"), False):
            _code, out, _err = run("inspect", "--models", "models.json", *words, "good.yaml")
            assert ("KV cache: unknown: the manifest does not name the GPU" in out) is unknown

    def test_inspect_for_a_person(self, run: Run) -> None:
        code, out, _err = run("inspect", "bad.yaml")
        assert code == 0
        assert "tensor_parallel_size           3  at 13:38" in out

    def test_a_named_file_from_which_nothing_is_read_is_noted(self, run: Run) -> None:
        Path("service.yaml").write_text("kind: Service\n")
        _code, out, _err = run("service.yaml")
        assert "has none of the forms that are known: service.yaml\n" in out

    def test_standard_input_is_called_by_its_dash(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FAULTY.encode())))
        code, out, _err = run("--models", "models.json", "-")
        assert code == 1
        assert out.startswith("-:13:38: error[")

    @pytest.mark.parametrize("text", [b"", b"\n\n"])
    def test_a_standard_input_without_anything_is_no_clean_run(
        self, text: bytes, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        code, _out, err = run("-")
        assert (code, err) == (2, "shardlint: nothing came through standard input\n")

    def test_no_colours_but_on_a_terminal(self, run: Run) -> None:
        assert "\x1b" not in run("--models", "models.json", "bad.yaml")[1]

    @pytest.mark.parametrize(("variable", "coloured"), [("", True), ("NO_COLOR", False)])
    def test_colours_on_a_terminal(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, coloured: bool
    ) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        if variable:
            monkeypatch.setenv(variable, "1")
        assert ("\x1b" in run("--models", "models.json", "bad.yaml")[1]) is coloured
        assert "\x1b" not in run("--models", "models.json", "--no-color", "bad.yaml")[1]

    def test_the_order_is_the_same_whatever_the_order_of_paths(self, run: Run) -> None:
        Path("more.yaml").write_text(FAULTY)
        for words in (["check"], ["check", "--format", "json"], ["inspect"], ["inspect", "--format", "json"]):
            forth = run(*words, "--models", "models.json", "bad.yaml", "more.yaml")
            assert forth == run(*words, "--models", "models.json", "more.yaml", "bad.yaml"), words


class TestOtherCommands:
    def test_version(self, run: Run) -> None:
        assert run("--version") == (0, f"shardlint {__version__}\n", "")

    @pytest.mark.parametrize("word", ["SL101", "sl101", "query-heads"])
    def test_explain_prints_the_page(self, run: Run, word: str) -> None:
        code, out, _err = run("explain", word)
        assert code == 0
        assert out.startswith("# query-heads") or "query-heads" in out.splitlines()[0]

    def test_rules_lists_rules_and_families(self, run: Run) -> None:
        code, out, _err = run("rules")
        assert code == 0
        assert "SL101  query-heads                     the query heads do not divide" in out
        judged, _, unjudged = out.partition("\nfamilies\n")[2].partition("families without a rule yet: ")
        assert "  tp-heads " in judged
        assert "  tp-heads " not in unjudged

    def test_rules_for_machines(self, run: Run) -> None:
        _code, out, _err = run("rules", "--format", "json")
        document = json.loads(out)
        assert {"SL001", "SL101"} <= {rule["code"] for rule in document["rules"]}
        assert document["families"]["tp-heads"]

    def test_help(self, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as left:
            main(["--help"])
        assert left.value.code == 0
        assert "exit codes: 0" in capsys.readouterr().out


def child(*words: str, **more: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "shardlint", *words], stdout=subprocess.PIPE, **more)


class TestProgram:
    """The process that ends with what it has in memory."""

    def run(self, before: str, *words: str) -> subprocess.CompletedProcess[str]:
        code = f"from shardlint.front.main import program\n{before}\nprogram()"
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    @pytest.mark.parametrize(("words", "code"), [(("bad.yaml",), 1), (("good.yaml",), 0), (("gone.yaml",), 2)])
    def test_it_says_all_that_main_says(self, words: tuple[str, ...], code: int, run: Run) -> None:
        done = self.run("", "--models", "models.json", *words)
        assert (done.returncode, done.stdout, done.stderr) == (code, *run("--models", "models.json", *words)[1:])

    def test_more_than_a_pipe_holds_arrives(self, run: Run) -> None:
        Path("many.yaml").write_text("---\n".join([FAULTY] * 40))
        done = self.run("", "inspect", "--format", "json", "many.yaml")
        assert len(done.stdout) > 2**16
        assert done.stdout == run("inspect", "--format", "json", "many.yaml")[1]

    def test_what_was_registered_for_the_end_is_done(self) -> None:
        assert self.run("import atexit; atexit.register(print, 'the end')", "--version").stdout.endswith("the end\n")

    def test_other_threads_are_waited_for(self) -> None:
        late = "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()"
        assert self.run(late, "--version").stdout.endswith("late\n")


class TestStreams:
    def test_a_reader_that_leaves_early_is_no_failure(self) -> None:
        with child("rules", stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 0

    @pytest.mark.parametrize(("words", "code"), [(("bad.yaml",), 1), (("good.yaml",), 0), (("gone.yaml",), 2)])
    def test_the_exit_code_is_the_same_where_nobody_reads(self, words: tuple[str, ...], code: int) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-m", "shardlint", "--models", "models.json", *words]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
        os.close(writer)
        assert done.returncode == code
        assert b"Traceback" not in done.stderr

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
    def test_2_where_not_even_the_reason_can_be_written(self) -> None:
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run([sys.executable, "-m", "shardlint", "gone.yaml"], stderr=full, check=False)
        assert done.returncode == 2

    def test_a_terminal_that_lacks_characters_shows_their_escapes(self) -> None:
        Path("odd.yaml").write_text(FAULTY.replace("own/model", "模型"))
        environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
        with child("odd.yaml", env=environ) as process:
            out, _err = process.communicate()
        assert process.returncode in (0, 1)
        assert rb"\u6a21\u578b" in out

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
    @pytest.mark.parametrize("words", [("rules",), ("bad.yaml",), ("--version",), ("inspect", "good.yaml")])
    def test_2_and_one_line_where_the_disk_is_full(self, words: tuple[str, ...]) -> None:
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run([sys.executable, "-m", "shardlint", *words], stdout=full, stderr=-1, check=False)
        assert (done.returncode, done.stderr) == (2, b"shardlint: No space left on device\n")

    @pytest.mark.parametrize(
        ("streams", "code"),
        [("bad.yaml >&-", 1), ("good.yaml >&-", 0), ("gone.yaml 2>&-", 2), ("- <&-", 2), ("good.yaml <&- >&- 2>&-", 0)],
    )
    def test_closed_streams_change_no_exit_code(self, streams: str, code: int) -> None:
        line = f'"{sys.executable}" -m shardlint --models models.json {streams}'
        assert subprocess.run(line, shell=True, check=False, capture_output=True).returncode == code

    def test_2_and_its_path_where_the_system_fails(self, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
        def failing(*_arguments: object) -> int:
            raise OSError(5, "Input/output error", "good.yaml")

        monkeypatch.setattr("shardlint.front.commands.run", failing)
        assert run("good.yaml") == (2, "", "shardlint: good.yaml: Input/output error\n")

    def test_no_name_acts_on_the_terminal(self, run: Run) -> None:
        code, out, err = run("gone\x1b[31m\n.yaml")
        assert (code, out, err) == (2, "", "shardlint: gone\\x1b[31m\\n.yaml: no such file or folder\n")

    def test_2_where_the_program_itself_fails(self, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
        def wrong(*_arguments: object) -> int:
            raise ZeroDivisionError("made up")

        monkeypatch.setattr("shardlint.front.commands.run", wrong)
        code, _out, err = run("good.yaml")
        assert code == 2
        assert err.endswith("ZeroDivisionError: made up\n")

    def test_an_interrupted_run_leaves_quietly(self, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
        def interrupted(*_arguments: object) -> int:
            raise KeyboardInterrupt

        monkeypatch.setattr("shardlint.front.commands.run", interrupted)
        assert run("good.yaml") == (130, "", "")
