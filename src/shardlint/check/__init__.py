"""The order of things: sources in, a report out. Pure: no disk, no network, no clock, no environment."""

from shardlint.check.judging import RuleFailed
from shardlint.check.run import check, read
from shardlint.check.settings import Settings

__all__ = ["RuleFailed", "Settings", "check", "read"]
