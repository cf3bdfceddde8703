"""For tests: one layout checked in a test of one's own, and a rule checked by the cases of its page.

from shardlint.testing import assert_layout, run_page

def test_serving_command():
    assert_layout("vllm serve Qwen/Qwen3-8B -tp 2", hardware="2xH100")

@pytest.mark.parametrize("case, faults", run_page(RULE, PAGE_TEXT))
def test_page(case, faults):
    assert not faults
"""

from shardlint.testing.layouts import LayoutChecker, assert_layout
from shardlint.testing.pages import Case, Expectation, PageError, is_one_token_away, read_page
from shardlint.testing.running import faults_of, findings_of, run_page

__all__ = [
    "Case",
    "Expectation",
    "LayoutChecker",
    "PageError",
    "assert_layout",
    "faults_of",
    "findings_of",
    "is_one_token_away",
    "read_page",
    "run_page",
]
