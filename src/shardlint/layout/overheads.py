"""What vLLM takes of a GPU beside weights and KV cache, by release: likely values and how far the logs stray.

Calibrated on start-up logs of vLLM 0.7 to 0.19 that print every term, most of them of an H100, none of a card that is
not NVIDIA's.  The ranges are wider than those logs need.  No log of a later release prints every term: theirs are taken
to be those of 0.19, less the CUDA graphs.
"""

from __future__ import annotations

import math

from shardlint.engines.versions import Version
from shardlint.findings.records import NamedTuple

GIB = 2**30


class Estimate(NamedTuple):
    """Bytes that nobody knows before the start: `low <= likely <= high`."""

    low: float
    likely: float
    high: float

    def scaled(self, by: float) -> Estimate:
        """All three times a number that is not negative."""
        return Estimate(self.low * by, self.likely * by, self.high * by)

    def whole(self) -> Estimate:
        """What of a count is whole: 16.7 requests are 16 that run and one that waits."""
        return Estimate(*(math.floor(each) for each in self))

    def plus(self, other: Estimate) -> Estimate:
        """Both together."""
        return Estimate(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def minus(self, other: Estimate) -> Estimate:
        """What is left: the least where the other is high."""
        return Estimate(self.low - other.high, self.likely - other.likely, self.high - other.low)


NONE = Estimate(0, 0, 0)


def gibibytes(low: float, likely: float, high: float) -> Estimate:
    """An estimate that is written in GiB."""
    return Estimate(low, likely, high).scaled(GIB)


class Era(NamedTuple):
    """Releases from one on that measure their memory alike."""

    since: Version
    logits_copies: float
    """Copies of the logits (float32, of `max_num_seqs` sequences) in the sampler's warm-up."""
    one_rank: Estimate
    """Memory beside torch's own (context, libraries) where no ranks talk to each other."""
    stages_only: Estimate
    """The same with pipeline stages of one rank each."""
    several_ranks: Estimate
    """The same with the buffers of NCCL and of custom all-reduce in tensor parallel groups."""
    graphs_counted: bool
    """Whether an estimate of the CUDA graphs is taken off the KV cache; before that they come on top of all."""


ERAS = (
    Era(Version((0, 20)), 3.56, gibibytes(0.05, 0.25, 0.9), gibibytes(0, 0.1, 0.9), gibibytes(0.1, 2.1, 3.0), True),
    Era(Version((0, 18)), 3.56, gibibytes(0.05, 0.25, 0.9), gibibytes(0, 0.1, 0.9), gibibytes(0.1, 2.1, 3.0), False),
    Era(Version((0, 17)), 3.56, gibibytes(0.05, 0.13, 0.9), gibibytes(0, 0.1, 0.9), gibibytes(0.1, 1.3, 3.0), False),
    Era(Version((0, 8)), 9.7, gibibytes(0.05, 0.13, 1.8), gibibytes(0, 0.1, 1.0), gibibytes(0.1, 0.55, 3.6), False),
    Era(Version((0, 0)), 6.0, gibibytes(0.05, 0.13, 1.8), gibibytes(0, 0.5, 1.8), gibibytes(0.1, 1.0, 2.2), False),
)
"""The newest first."""

SEVERAL_ON_PCIE = 0.6 * GIB
"""What several ranks likely take beside torch where they have no fast link (two RTX 4090: 0.25 GiB)."""
DRIVER = gibibytes(0.1, 0.45, 0.75)
"""What the driver keeps of the memory that nvidia-smi names: 0.2 GiB on an A10G, 0.46 on an H100, 0.7 on a B200."""
BASE = gibibytes(0, 0.15, 0.8)
"""Activations that no size explains."""
ACTIVATION_MARGIN = (0.6, 1.0, 1.4)
"""How far the peak of the activations strays from the sizes that explain it."""
WORKSPACE_MARGIN = (0.0, 0.75, 1.3)
"""The same of the workspace of the experts, which some kernels do without."""
TOWER = gibibytes(0, 0.3, 3.0)
"""Activations of a vision or audio tower, by the number and size of the pictures that are profiled."""
SPARSE_ATTENTION = gibibytes(0, 2, 7)
"""Workspaces of an indexer and of attention to what it picks (DeepSeek-V4-Flash: 6 GiB more than all the rest)."""
WARM_UP_COPIES = (0.0, 1.0, 4.0)
"""Logits that the warm-up of the sampler copies after the KV cache is there; gpt-oss-20b on an H100 failed on one."""
GRAPHS_OF_MANY, GRAPHS_OF_A_LAYER, GRAPHS_OF_EXPERTS = gibibytes(0.1, 0.45, 1.5), 0.0145 * GIB, 0.4 * GIB
"""CUDA graphs up to 512 sequences: of any model, of each layer beside, and of a mixture of experts beside."""
GRAPHS_OF_FEW = gibibytes(0.05, 0.3, 1.2)
"""CUDA graphs where `max_num_seqs` is below 512."""
MANY_SEQUENCES = 512
CONTEXT, CONTEXT_OF_SEVERAL = gibibytes(0.3, 0.5, 0.6), gibibytes(0.4, 1.5, 2.1)
"""What a process holds of its GPU before it measures: alone, and with the buffers of NCCL among several ranks.

Before 0.8 it was measured with the rest."""
WEIGHT_MARGIN = (0.995, 1.0, 1.01)
"""Weights as loaded beside the parameters as allocated."""
MXFP4_MARGIN = (0.995, 1.058, 1.08)
"""The same where kernels repack and pad MXFP4 experts after loading: gpt-oss 5 to 6.5 % on an H100."""
REPACKED_ON = "9.0"
"""Compute capability of the cards on which they do; elsewhere experts are padded as they are allocated."""


def era(release: Version) -> Era:
    """The era that a release belongs to."""
    return next((one for one in ERAS if release >= one.since), ERAS[-1])


class Batch(NamedTuple):
    """The largest step, by which vLLM measures its activations."""

    tokens: int
    sequences: int


SMALL, MIDDLE, LARGE = Batch(2048, 256), Batch(8192, 1024), Batch(16384, 1024)
MIDDLE_CARD, LARGE_CARD = 70 * GIB, 160 * GIB
V1_SINCE, LARGE_SINCE = Version((0, 8)), Version((0, 28))


def default_batch(release: Version, card_name: str, card_bytes: float, max_model_len: int) -> Batch:
    """What `max_num_batched_tokens` and `max_num_seqs` of the API server are by default, by release and card."""
    if release < V1_SINCE:
        return Batch(max(max_model_len, 2048) if max_model_len <= 32768 else 2048, 256)
    if card_bytes >= LARGE_CARD and release >= LARGE_SINCE:
        return LARGE
    if card_bytes < MIDDLE_CARD or "a100" in card_name.lower():
        return SMALL
    return MIDDLE
