"""A number outside of what the engine takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardlint.deployment import NotTold, Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Change, Located, Problem, Rule
from shardlint.findings.records import NamedTuple
from shardlint.rules._conditions import released
from shardlint.rules._words import named


class Range(NamedTuple):
    """What an option takes, in the engine's own terms: from `least` (itself, or more than it) to `most`."""

    option: str
    label: str
    least: float | None
    most: float | None = None
    above_least: bool = False
    below_most: bool = False
    since: str | None = None
    """The oldest release of which it is known."""
    only_with: str | None = None
    """The option without which the engine does not look at this one."""

    def excludes(self, value: float) -> bool:
        if self.least is not None and (value < self.least or (self.above_least and value == self.least)):
            return True
        return self.most is not None and (value > self.most or (self.below_most and value == self.most))

    @property
    def words(self) -> str:
        """`at least 1`, `more than 0 and at most 1`."""
        least = None if self.least is None else f"{'more than' if self.above_least else 'at least'} {self.least:g}"
        most = None if self.most is None else f"{'less than' if self.below_most else 'at most'} {self.most:g}"
        return " and ".join(filter(None, (least, most)))

    def broken(self, value: float) -> str:
        """The side that the value is beyond, as arithmetic."""
        if self.least is not None and value <= self.least:
            return f"{value:g} {'<=' if self.above_least else '<'} {self.least:g}"
        return f"{value:g} {'>=' if self.below_most else '>'} {self.most:g}"


RECENT = "0.33.0"

RANGES = (
    Range("tensor_parallel_size", "the tensor parallel size", 1),
    Range("pipeline_parallel_size", "the pipeline parallel size", 1),
    Range("data_parallel_size", "the data parallel size", 1),
    Range("prefill_context_parallel_size", "the prefill context parallel size", 1),
    Range("decode_context_parallel_size", "the decode context parallel size", 1),
    Range("data_parallel_size_local", "the number of data parallel ranks on this node", 0, since=RECENT),
    Range("data_parallel_rank", "the data parallel rank", 0, since=RECENT),
    Range("data_parallel_rpc_port", "--data-parallel-rpc-port", 1, 65535, since=RECENT),
    Range("dp_sync_interval", "--dp-sync-interval", 1, since=RECENT),
    Range("nnodes", "the number of nodes", 1, since="0.13.0"),
    Range("node_rank", "the node rank", 0, since=RECENT),
    Range("ubatch_size", "--ubatch-size", 0, since=RECENT),
    Range("dbo_decode_token_threshold", "--dbo-decode-token-threshold", 0, since=RECENT),
    Range("dbo_prefill_token_threshold", "--dbo-prefill-token-threshold", 0, since=RECENT),
    Range("elastic_ep_max_dp_size", "--elastic-ep-max-dp-size", 1, since=RECENT),
    Range("max_parallel_loading_workers", "--max-parallel-loading-workers", 1, since=RECENT),
    Range("num_redundant_experts", "num_redundant_experts", 0, since="0.12.0"),
    Range("gpu_memory_utilization", "--gpu-memory-utilization", None, 1),
    Range("gpu_memory_utilization", "--gpu-memory-utilization", 0, above_least=True, since="0.12.0"),
    Range("block_size", "--block-size", 0, above_least=True, since=RECENT),
    Range("mamba_block_size", "--mamba-block-size", 0, above_least=True, since=RECENT),
    Range("prefix_match_unit", "--prefix-match-unit", 0, above_least=True, since=RECENT),
    Range("prefix_cache_retention_interval", "--prefix-cache-retention-interval", 0, since=RECENT),
    Range("replayssm_buffer_len", "--replayssm-buffer-len", 0, above_least=True, since=RECENT),
    Range("cpu_offload_gb", "--cpu-offload-gb", 0, since=RECENT),
    Range("offload_group_size", "--offload-group-size", 0, since=RECENT),
    Range("offload_num_in_group", "--offload-num-in-group", 1, since=RECENT),
    Range("offload_prefetch_step", "--offload-prefetch-step", 0, since=RECENT),
    Range("max_model_len", "--max-model-len", 1, since="0.14.0"),
    Range("max_num_batched_tokens", "--max-num-batched-tokens", 1, since="0.12.0"),
    Range("max_num_seqs", "--max-num-seqs", 1, since="0.12.0"),
    Range("max_num_scheduled_tokens", "--max-num-scheduled-tokens", 1, since=RECENT),
    Range("max_num_active_seqs", "--max-num-active-seqs", 1, since=RECENT),
    Range("max_num_queued_reqs", "--max-num-queued-reqs", 0, since=RECENT),
    Range("max_num_queued_tokens", "--max-num-queued-tokens", 0, since=RECENT),
    Range("long_prefill_token_threshold", "--long-prefill-token-threshold", 0, since=RECENT),
    Range("prefill_schedule_interval", "--prefill-schedule-interval", 1, since=RECENT),
    Range("stream_interval", "--stream-interval", 1, since=RECENT),
    Range("watermark", "--watermark", 0, 1, below_most=True, since=RECENT),
    Range("max_logprobs", "--max-logprobs", -1, since=RECENT),
    Range("max_loras", "--max-loras", 1, since=RECENT, only_with="enable_lora"),
)


OF_SGLANG = (
    Range("tensor_parallel_size", "the tensor parallel size", 1),
    Range("pipeline_parallel_size", "the pipeline parallel size", 1),
    Range("data_parallel_size", "the data parallel size", 1),
    Range("nnodes", "the number of nodes", 1),
    Range("mem_fraction_static", "--mem-fraction-static", 0, 1, above_least=True, below_most=True),
)


def judge(told: Told, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem]:
    for bounds in OF_SGLANG if engine.name == "sglang" else RANGES:
        if bounds.since is not None and engine_version.value < released(bounds.since):
            continue
        try:
            size = told.located(bounds.option)
            is_read = bounds.only_with is None or bool(getattr(told, bounds.only_with))
        except NotTold:
            continue  # the rules that need the number say so
        if is_read and size is not None and _is_number(size.value) and bounds.excludes(size.value):
            yield Problem(
                at=size,
                message=f"{bounds.label} is {size.value} and must be {bounds.words}: "
                f"{named(engine, engine_version)} refuses to start",
                sum=bounds.broken(size.value),
                help=_as_share(size) if bounds.most == 1 else (),
            )


def _as_share(size: Located[Any]) -> tuple[str, ...]:
    """Of a share that was written in percent, the share."""
    if not 1 < size.value < 100 or size.span is None:
        return ()
    share = f"{size.value / 100:g}"
    return (Change(share, size.span, f"{size.value:g}", share),)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


RULE = Rule("SL903", "impossible-size", "flags", "error", "refuses-at-start", judge, engines=("vllm", "sglang"))
