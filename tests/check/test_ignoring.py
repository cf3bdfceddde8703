"""Which findings a comment covers."""

from shardlint.check.ignoring import split
from shardlint.findings import Finding, Ignore, Span

COMMENT = Span("a.yaml", 4, 1, 4, 30)


def finding(line: int, end_line: int | None = None) -> Finding:
    span = Span("a.yaml", line, 1, end_line or line, 5)
    return Finding("SL101", "query-heads", "tp-heads", "error", None, "exact", span, "message")


def test_names_codes_and_families_are_all_accepted() -> None:
    for name in ("query-heads", "SL101", "tp-heads"):
        shown, covered, unused = split([finding(4)], [Ignore((name,), "", COMMENT, 4)])
        assert (shown, covered, unused) == ([], [finding(4)], [])


def test_another_line_or_name_covers_nothing() -> None:
    for ignore in (Ignore(("query-heads",), "", COMMENT, 5), Ignore(("kv-heads",), "", COMMENT, 4)):
        shown, covered, unused = split([finding(4)], [ignore])
        assert (shown, covered, unused) == ([finding(4)], [], [ignore])


def test_a_comment_inside_a_finding_of_several_lines_covers_it() -> None:
    assert split([finding(3, 6)], [Ignore(("SL101",), "", COMMENT, 5)])[1] == [finding(3, 6)]


def test_the_beginning_of_a_code_covers_its_group() -> None:
    shown, covered, unused = split([finding(4)], [Ignore(("SL1",), "", COMMENT, 4)])
    assert (shown, covered, unused) == ([], [finding(4)], [])
