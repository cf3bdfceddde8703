"""The plugin seam: six hooks, each asked once, and what they and shardlint itself bring, as one registry.

Nobody below this room looks for plugins: `check` hands each room its rows as an argument.
"""

from shardlint.plugins.registry import PluginFailed, Registry, built_in

__all__ = ["PluginFailed", "Registry", "built_in", "load"]


def load(*, outside: bool = True) -> Registry:
    """All that is to be used: shardlint's own rows, then those of the distributions that offer more.

    Raises PluginFailed, with the plugin's name, for one that does not load or whose hook raises.
    """
    from shardlint.plugins.discovery import is_advertised

    if not outside or not is_advertised():
        return built_in()
    from shardlint.plugins.outside import with_outside  # pluggy and importlib.metadata cost more than a whole lint

    return with_outside(built_in())
