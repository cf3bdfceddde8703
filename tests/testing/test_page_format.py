"""Pages that are not in the format are refused, and a rule that does not do what its page says is found out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from shardlint.findings import Located, Problem, Rule
from shardlint.testing import PageError, is_one_token_away, read_page, run_page


def judge(tensor_parallel_size: Located[int]) -> Iterator[Problem]:
    if tensor_parallel_size.value % 2:
        yield Problem(tensor_parallel_size, f"{tensor_parallel_size.value} is odd", sum="3 % 2 = 1", help=("-tp 2",))


ODD = Rule("SL999", "odd-size", "plugin", "warning", "slow", judge)

PAGE = """# odd-size

## Cases

### Flagged: 3

```sh
vllm serve example/model --tensor-parallel-size 3
```

> warning, slow, on `3`
> sum: 3 % 2 = 1
> says: 3 is odd
> help: -tp 2

### Nearest miss: 4

```sh
vllm serve example/model --tensor-parallel-size 4
```
"""


def faults(page: str) -> list[str]:
    return [fault for _, found in run_page(ODD, page) for fault in found]


def test_a_page_that_is_right_has_no_faults() -> None:
    assert faults(PAGE) == []
    assert [case.kind for case in read_page(PAGE)] == ["flagged", "nearest miss"]


@pytest.mark.parametrize(
    ("written", "instead", "fault"),
    [
        ("on `3`", "on `4`", "no finding stands on '4', but on ['3']"),
        ("warning, slow", "error, slow", "the severity is warning, not error"),
        ("warning, slow", "warning, hangs", "the effect is slow, not hangs"),
        ("sum: 3 % 2 = 1", "sum: 3 % 2 = 0", "the sum is '3 % 2 = 1', not '3 % 2 = 0'"),
        ("says: 3 is odd", "says: 3 is even", "the message does not hold '3 is even': 3 is odd"),
        ("help: -tp 2", "help: -tp 8", "no help holds '-tp 8': ('-tp 2',)"),
        ("size 4", "size 5", "not expected: warning on '5': 5 is odd"),
    ],
)
def test_what_a_page_says_wrongly_is_found(written: str, instead: str, fault: str) -> None:
    assert fault in faults(PAGE.replace(written, instead))


@pytest.mark.parametrize(
    ("written", "instead", "why"),
    [
        ("### Flagged: 3", "### Wrong: 3", "a case is headed Flagged, Fine or Nearest miss"),
        ("> warning, slow, on `3`\n", "", "not an expectation: 'sum: 3 % 2 = 1'"),
        ("> sum: ", "> total: ", "not an expectation: 'total: 3 % 2 = 1'"),
        ("### Flagged", "### Fine", "the case '3' is fine and has 1 expectations"),
        ("```sh\nvllm", "- gpus: 8\n\n```sh\nvllm", "what is given is one of hardware, vllm, config, not 'gpus'"),
        ("```sh\nvllm", "- config: {\n\n```sh\nvllm", "not JSON"),
        ("```sh\nvllm", "```toml\nvllm", "a block of 'toml' belongs to no case"),
    ],
)
def test_a_page_that_is_not_in_the_format_is_refused(written: str, instead: str, why: str) -> None:
    with pytest.raises(PageError, match=f"^odd-size, line .*{re.escape(why)}"):
        list(run_page(ODD, PAGE.replace(written, instead)))


def test_hardware_that_is_none_is_refused() -> None:
    with pytest.raises(PageError, match="8 H100"):
        faults(PAGE.replace("```sh", "- hardware: 8 H100\n\n```sh"))


def test_a_nearest_miss_differs_in_one_word_or_number() -> None:
    flagged, miss = read_page(PAGE)
    assert is_one_token_away(miss, flagged)
    assert not is_one_token_away(flagged, flagged)
    (_, far) = read_page(PAGE.replace("serve example/model --tensor-parallel-size 4", "serve other/model -tp 4"))
    assert not is_one_token_away(far, flagged)


def test_a_config_is_the_page_s_own_with_the_case_s_changes() -> None:
    block = '```json config.json\n{"a": 1, "b": 2}\n```\n\n### Flagged: 3\n\n- config: {"b": null, "c": 3}'
    (flagged, miss) = read_page(PAGE.replace("### Flagged: 3", block))
    assert (flagged.config, miss.config) == ({"a": 1, "c": 3}, {"a": 1, "b": 2})
