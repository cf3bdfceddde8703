"""What the ranks of a run do, and how they know that it came out right. Only this folder imports torch.

Its code runs in a child process, forked after torch was imported once. One file for each thing that a layout means:
who is in which group, how a weight is cut and its parts are summed, what a stage hands to the next.
"""

from shardlint.smoke.ranks.meeting import store_of
from shardlint.smoke.ranks.worker import VERSION, gpus, nccl_version, work

__all__ = ["VERSION", "gpus", "nccl_version", "store_of", "work"]
