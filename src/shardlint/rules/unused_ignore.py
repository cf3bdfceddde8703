"""A comment that ignores a finding which is not there."""

from collections.abc import Iterator, Sequence

from shardlint.findings import Ignore, Problem, Rule


def judge(unused_ignores: Sequence[Ignore]) -> Iterator[Problem]:
    for ignore in unused_ignores:
        names = ", ".join(ignore.names)
        yield Problem(
            at=ignore.span,
            message=f"this comment ignores {names}, but line {ignore.line} has no such finding",
            help=(
                "delete the comment",
                "or correct the name: a rule's name, code or family, as `shardlint rules` lists them",
            ),
        )


RULE = Rule("SL003", "unused-ignore", family="file", severity="note", effect=None, judge=judge, subject="comments")
