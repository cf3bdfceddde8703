"""For authors of rules, ours and a plugin's: a rule's page holds its test cases, and these functions run them.

from shardlint.testing import run_page

@pytest.mark.parametrize("case, faults", run_page(RULE, PAGE_TEXT))
def test_page(case, faults):
    assert not faults
"""

from shardlint.testing.pages import Case, Expectation, PageError, is_one_token_away, read_page
from shardlint.testing.running import faults_of, findings_of, run_page

__all__ = [
    "Case",
    "Expectation",
    "PageError",
    "faults_of",
    "findings_of",
    "is_one_token_away",
    "read_page",
    "run_page",
]
