"""Which launches make one engine instance: leaders with their workers, ranks of one command line, Ray's helpers."""

from shardlint.servers.assemble import assemble

__all__ = ["assemble"]
