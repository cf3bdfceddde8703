"""The degrees of one layout, and the words for them."""

from __future__ import annotations

from typing import Any, Literal

from shardlint.findings.records import NamedTuple

Degree = Literal[
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "prefill_context_parallel_size",
]
DEGREES: tuple[Degree, ...] = (
    "data_parallel_size",
    "pipeline_parallel_size",
    "prefill_context_parallel_size",
    "tensor_parallel_size",
)
"""The degrees that ranks are numbered by, the slowest first (vLLM's order DP x PP x PCP x TP)."""

WITHOUT_SEQUENCE_PARALLEL = ("flashinfer_all2allv", "flashinfer_nvlink_two_sided", "moonep")
"""The all-to-all backends of vLLM 0.33.0 under which each rank of a tensor parallel group has all tokens; in place of
the removed `naive` and `pplx` it takes its default, which is none of these."""


class Sizes(NamedTuple):
    """How one engine instance is split. `nnodes` is the number of nodes that share its ranks evenly."""

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    prefill_context_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    enable_expert_parallel: bool = False
    pp_layer_partition: str | None = None
    nnodes: int = 1
    enable_eplb: bool = False
    """Expert load balancing, which copies `num_redundant_experts` of the experts of each layer."""
    num_redundant_experts: int = 0
    mm_encoder_tp_mode: str | None = None
    """How towers are split: by their weights, or not at all (`data`)."""
    language_model_only: bool = False
    """Without the towers of a multimodal model."""
    engram_cpu_offload: bool = True
    """Whether tables of embeddings of word groups stay in the host's memory."""
    all2all_backend: str | None = None
    """How tokens reach the ranks of their experts; None for the engine's own choice."""

    def with_degree(self, degree: Degree, value: int) -> Sizes:
        """The same layout with another value of one degree."""
        change: dict[str, Any] = {degree: value}
        return self._replace(**change)

    @property
    def sequence_parallel_experts(self) -> bool:
        """Whether the ranks of a tensor parallel group share the tokens of a MoE layer out among them."""
        several = self.tensor_parallel_size > 1 and self.data_parallel_size > 1
        return several and self.enable_expert_parallel and self.all2all_backend not in WITHOUT_SEQUENCE_PARALLEL

    @property
    def replica_size(self) -> int:
        """Ranks that hold one copy of the attention weights: TP x PP x PCP."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.prefill_context_parallel_size

    @property
    def world_size(self) -> int:
        """All ranks of the instance: DP x PP x PCP x TP."""
        return self.data_parallel_size * self.replica_size

    @property
    def expert_group_size(self) -> int:
        """Ranks that the experts of a layer are spread over: TP x DP x PCP, with or without expert parallelism."""
        return self.tensor_parallel_size * self.data_parallel_size * self.prefill_context_parallel_size
