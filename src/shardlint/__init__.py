"""shardlint: bad GPU layouts, found in the manifests of LLM servers.

`check_command` and `lay_out` are the public calls; they are imported on first use, so that `import shardlint`
costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardlint._version import __version__

if TYPE_CHECKING:
    from shardlint.check.command import check_command, lay_out

__all__ = ["__version__", "check_command", "lay_out"]


def __getattr__(name: str) -> Any:
    if name in ("check_command", "lay_out"):
        from shardlint.check import command

        return getattr(command, name)
    raise AttributeError(f"module 'shardlint' has no attribute {name!r}")
