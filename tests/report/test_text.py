"""What a person reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import HEADS, MISSING, NOTE, REPORT, TEXTS, deployment, span

from shardlint.findings import FileNote, Finding, Located, NotChecked, Related, Report, Span, Unknown
from shardlint.report.excerpt import LONGEST, Excerpts
from shardlint.report.inspection import inspect_text
from shardlint.report.plain import plain
from shardlint.report.text import check_text


def printed(report: Report, texts: dict[str, str] | None = None, colour: bool = False) -> str:
    return "\n".join(check_text(report, texts or TEXTS, colour))


def test_a_report() -> None:
    assert (
        printed(REPORT)
        == """\
a.yaml:3:28: error[SL101 query-heads]: 32 query heads do not divide by tensor_parallel_size 6
3 |   - --tensor-parallel-size=6
  |                            ^
5 |   nvidia.com/gpu: 4
  |                   - 4 GPUs
  = from: catalogue:org/model: num_attention_heads is 32
  = from: b.env:1:1: set here
  = sum: 32 / 6 = 5 remainder 2
  = help: --tensor-parallel-size=4
  = help: --tensor-parallel-size=8
  = effect: the engine refuses to start

a.yaml:2:13: note[SL103 kv-heads-replicated]: each KV head is stored twice (an estimate)
2 |   - --model=org/model
  |             ^^^^^^^^^
  = effect: GPUs or their memory are paid for and not used

nothing read:
  larger than 4 MiB: big.yaml

not checked:
  no config.json of x is here; to settle it: --models
    query-heads, kv-heads on Deployment/a, Deployment/b

1 error, 1 note in 0 deployments of 2 files (1 ignored, 4 checks not made)"""
    )


def test_a_place_in_another_file_is_named_and_shown() -> None:
    texts = {**TEXTS, "b.env": "TP=6\n"}
    assert " --> b.env:1:1\n1 | TP=6\n  | -- set here\n" in printed(Report(findings=(HEADS,)), texts)


def test_advice_on_the_same_words_is_given_once() -> None:
    again = HEADS._replace(code="SL102", rule="kv-heads")
    elsewhere = again._replace(span=span(5, 19, 20))
    assert printed(Report(findings=(HEADS, again))).count("= help: --tensor-parallel-size=4\n") == 1
    assert "= help: as for the one before\n" in printed(Report(findings=(HEADS, again)))
    assert printed(Report(findings=(HEADS, elsewhere))).count("= help: --tensor-parallel-size=4\n") == 2


def test_nothing_found() -> None:
    files = (FileNote("a.yaml", "k8s-deployment", None),)
    assert printed(Report(files=files, deployments=(deployment(),))) == "nothing found in 1 deployment of 1 file"


def test_nothing_to_check_is_not_called_nothing_found() -> None:
    assert printed(Report()) == "no deployment to check in 0 files"


def test_what_stops_many_is_said_once_and_shortly() -> None:
    many = [NotChecked(f"Deployment/{i}", "query-heads", "geometry", "unknown", "--models") for i in range(500)]
    text = printed(Report(not_checked=tuple(many)))
    assert "Deployment/7 and 492 more" in text
    assert len(text) < 500


def test_a_named_script_that_starts_no_engine_is_no_silent_pass() -> None:
    report = Report(files=(FileNote("-", "shell-script", "starts no engine that is known"),))
    assert "  starts no engine that is known: -\n" in printed(report)


def test_colours_are_asked_for() -> None:
    assert "\x1b[" not in printed(REPORT)
    coloured = printed(REPORT, colour=True)
    assert "\x1b[1;31merror[SL101 query-heads]\x1b[0m" in coloured
    assert plain_again(coloured) == printed(REPORT)


def plain_again(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class TestExcerpts:
    def cut(self, line: str, column: int, end_column: int) -> tuple[str, str]:
        cut = Excerpts({"a.yaml": line}).cut(Span("a.yaml", 1, column, 1, end_column), "^")
        assert cut is not None
        return cut.line, cut.indent + cut.mark

    def test_wide_characters_take_two_columns(self) -> None:
        assert self.cut("模型 x", 4, 5) == ("模型 x", "     ^")

    def test_a_tab_takes_one(self) -> None:
        assert self.cut("\tTP=6", 5, 6) == (" TP=6", "    ^")

    def test_a_long_line_is_cut_around_the_mark(self) -> None:
        line, mark = self.cut("a" * 5000 + "X" + "b" * 5000, 5001, 5002)
        assert line[len(mark) - 1] == "X"
        assert len(line) <= LONGEST + 2

    def test_a_long_mark_is_cut_with_its_line(self) -> None:
        line, mark = self.cut("a" * 5000, 1, 5001)
        assert len(mark) <= len(line)

    def test_a_span_over_several_lines_is_marked_on_its_first(self) -> None:
        cut = Excerpts(TEXTS).cut(Span("a.yaml", 2, 5, 3, 4), "^")
        assert cut is not None
        assert cut.indent + cut.mark == "    " + "^" * len("--model=org/model")

    @pytest.mark.parametrize("at", [Span("gone.yaml", 1, 1, 1, 2), Span("a.yaml", 99, 1, 99, 2)])
    def test_what_is_not_at_hand_is_not_shown(self, at: Span) -> None:
        assert Excerpts(TEXTS).cut(at, "^") is None

    @given(st.text(), st.integers(1, 300), st.integers(1, 300))
    def test_any_line_and_span_can_be_shown(self, line: str, column: int, end_column: int) -> None:
        self.cut(line.replace("\n", ""), column, end_column)


HOSTILE = "\x1b]0;owned\x07\r\n\u202e\u2028\x9b31m\udcff"


class TestHostileText:
    @given(st.text(alphabet=st.characters(codec=None)))
    def test_no_character_acts_on_the_terminal(self, text: str) -> None:
        assert all(character.isprintable() for character in plain(text))

    def test_nothing_from_a_manifest_reaches_the_terminal_raw(self) -> None:
        finding = Finding(
            "SL101",
            "query-heads",
            "tp-heads",
            "error",
            None,
            "exact",
            Span(HOSTILE, 1, 1, 1, 5),
            HOSTILE,
            HOSTILE,
            (HOSTILE,),
            related=(),
        )
        missing = NotChecked(HOSTILE, "query-heads", HOSTILE, HOSTILE, HOSTILE)
        report = Report((finding,), (), (missing,), (FileNote(HOSTILE, None, HOSTILE),))
        for line in check_text(report, {HOSTILE: HOSTILE}, False):
            assert line.isprintable(), line

    def test_nor_in_an_inspection(self) -> None:
        item = deployment(
            name=HOSTILE, model=Located(HOSTILE, span(1, 1, 2, HOSTILE)), gpu=Unknown(HOSTILE, spelled=HOSTILE + "x")
        )
        for line in inspect_text(Report(deployments=(item,)), [{}], [None], False):
            assert line.isprintable(), line


def test_what_is_related_and_stands_at_the_same_place_is_said_there() -> None:
    doubled = HEADS._replace(related=(Related(HEADS.span, "6 ranks by TP 6"),))
    lines = list(check_text(Report((doubled,)), TEXTS, False))
    assert lines[1:4] == [
        "3 |   - --tensor-parallel-size=6",
        "  |                            ^ 6 ranks by TP 6",
        "  = sum: 32 / 6 = 5 remainder 2",
    ]


def test_an_inspection() -> None:
    item = deployment(
        model=Located("org/model", span(2, 13, 22)),
        knobs={"tensor_parallel_size": Unknown("templated", span(3, 5, 20), "{{ .Values.tp }}")},
        gpus_per_pod=Located(4, span(5, 19, 20, "other.yaml")),
    )
    effective = {"pipeline_parallel_size": Located(1, origin="default", source="the default of vLLM 0.10.0")}
    report = Report(files=(FileNote("b.yaml", None, "a binary file"),), deployments=(item,))
    assert (
        "\n".join(inspect_text(report, [effective], [None], False))
        == """\
a.yaml:2:5: Deployment/chat (vllm, read as k8s-deployment)
  engine_version                 0.10.0  at 1:1
  model                          org/model  at 2:13
  tensor_parallel_size           unknown: templated ({{ .Values.tp }})
  pipeline_parallel_size         1  the default of vLLM 0.10.0
  gpus_per_pod                   4  at other.yaml:5:19
  gpu                            unknown: no kind of GPU is written

not read: b.yaml: a binary file"""
    )


def test_both_findings_of_a_line_are_printed() -> None:
    assert printed(Report(findings=(NOTE, NOTE), not_checked=MISSING)).count("note[SL103") == 2
