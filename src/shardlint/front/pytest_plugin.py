"""The door of pytest, closed: options, a fixture, and nothing else until somebody asks.

pytest loads this module in every run of every project where shardlint is installed, so it imports nothing of ours;
a test holds it to that, and `benchmarks/pytest_inert.py` says what it costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from shardlint.testing import LayoutChecker

SWITCH = "shardlint"
SEVERITIES = ("error", "warning", "note")  # as in `findings`, which is not imported here


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup(SWITCH, "shardlint: GPU layouts in the manifests of LLM servers")
    group.addoption("--shardlint", action="store_true", default=None, help="check the manifests below the test paths")
    group.addoption("--shardlint-models", metavar="PATH", help="as `shardlint --models`")
    group.addoption("--shardlint-hardware", metavar="SPEC", help="as `shardlint --hardware`")
    group.addoption("--shardlint-fail-on", choices=SEVERITIES, help="the least severity that fails (default: warning)")
    group.addoption("--shardlint-strict", action="store_true", help="fail too for what could not be checked")
    group.addoption("--shardlint-smoke", action="store_true", help="try the layouts below the test paths by processes")
    parser.addini(SWITCH, "check the manifests below the test paths in every run", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption(SWITCH) or config.getini(SWITCH):
        from shardlint.front import pytest_session

        pytest_session.start(config)
    if config.getoption("shardlint_smoke"):
        from shardlint.front import pytest_smoke

        pytest_smoke.start(config)


@pytest.fixture(scope="session", name=SWITCH)
def _shardlint(pytestconfig: pytest.Config) -> LayoutChecker:
    """Checks one layout: `shardlint.assert_layout("vllm serve Qwen/Qwen3-8B -tp 2", hardware="2xH100")`."""
    from shardlint.front import pytest_session

    return pytest_session.checker(pytestconfig)
