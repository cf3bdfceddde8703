"""Text that could not be parsed."""

from collections.abc import Iterable

from shardlint.findings import Problem, Rule


def judge(file_problems: tuple[Problem, ...]) -> Iterable[Problem]:
    return file_problems


RULE = Rule("SL001", "unreadable-file", family="file", severity="error", effect=None, judge=judge, subject="file")
