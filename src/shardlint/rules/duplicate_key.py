"""A key that one mapping has twice."""

from collections.abc import Iterator

from shardlint.findings import Duplicate, Problem, Rule


def judge(duplicate_keys: tuple[Duplicate, ...]) -> Iterator[Problem]:
    for duplicate in duplicate_keys:
        yield Problem(
            at=duplicate.again,
            message=f"the key {duplicate.key!r} stands twice in one mapping: most readers drop the first without a "
            f"word, strict ones refuse the file",
            help=("merge the two into one",),
            related=((duplicate.first, "the first one, which is lost"),),
        )


RULE = Rule("SL002", "duplicate-key", family="file", severity="warning", effect=None, judge=judge, subject="file")
