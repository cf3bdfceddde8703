"""Which of the layouts that work to take first: the decision table of serving operators, row by row.

Each objective is a list of rows, the first choice first.  A layout stands at the first row that describes it, and
among those of one row the one goes first that holds more requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from shardlint.findings.records import NamedTuple
from shardlint.findings.words import counted
from shardlint.planning.candidates import Machines
from shardlint.planning.weighing import Option

Objective = Literal["fits", "latency", "throughput"]
OBJECTIVES: tuple[Objective, ...] = ("fits", "latency", "throughput")


class Situation(NamedTuple):
    """What the choice depends on beside the layouts themselves."""

    machines: Machines
    size_known: bool
    """Whether anything is known of what the model takes; where nothing is, no row can say that a node is too small."""
    least_gpus: int | None
    """GPUs of the smallest replica that holds the model; None where none does."""
    widest: int | None
    """The largest tensor parallel size of a replica inside a node that works; None where none does."""
    node_divides: bool
    """Whether the model can be cut into as many pieces as a node has GPUs."""
    has_experts: bool
    fast_link: bool | None
    """Whether the GPUs of a node are joined by more than PCIe; None where it is not known."""
    requests: int

    @property
    def fits_one_gpu(self) -> bool:
        return self.least_gpus == 1

    @property
    def fits_one_node(self) -> bool | None:
        """Whether one node holds the model; None where nothing is known of its size."""
        if self.least_gpus is None:
            return False if self.size_known else None
        return self.least_gpus <= self.machines.gpus_per_node


class Row(NamedTuple):
    """One row of the table: when it holds, which layouts it means, and why."""

    why: Callable[[Option, Situation], str]
    """In words that are true of the layout: a row means several."""
    holds: Callable[[Situation], bool]
    means: Callable[[Option, Situation], bool]


class Ranked(NamedTuple):
    """A layout and the row that put it where it is."""

    option: Option
    why: str


def rank(options: Sequence[Option], situation: Situation, objective: Objective) -> tuple[Ranked, ...]:
    """The layouts that are not refused, the best choice for the objective first."""
    table = [row for row in TABLES[objective] if row.holds(situation)]
    placed = [(option, _row_of(option, table, situation)) for option in options if not option.is_refused]
    ordered = sorted(placed, key=lambda pair: _key(pair[0], pair[1], situation))
    return tuple(Ranked(option, _why(option, table[row:], situation)) for option, row in ordered)


def _why(option: Option, rows: Sequence[Row], situation: Situation) -> str:
    """In words; `rows` are those from the layout's own on, none for a layout that no row means."""
    if option.holds < 1:
        return "in doubt: its KV cache may not hold one whole request"
    if option.candidate.world_size == 1:
        return "one GPU: no parallelism"
    return rows[0].why(option, situation) if rows else "it works, and nothing is known that speaks for it"


def _row_of(option: Option, table: Sequence[Row], situation: Situation) -> int:
    return next((number for number, row in enumerate(table) if row.means(option, situation)), len(table))


def _key(option: Option, row: int, situation: Situation) -> tuple[object, ...]:
    """What holds too little goes last, the least of it behind; idle GPUs behind those that work; then the table."""
    candidate = option.candidate
    return (
        option.missing(situation.requests),
        option.idle_gpus > 0 and candidate.world_size < (situation.least_gpus or 1),
        row,
        option.idle_gpus,
        -option.holds,
        -option.tokens.likely if option.tokens is not None else 0,
        -candidate.tensor_parallel_size,
        candidate.pipeline_parallel_size,
        candidate.enable_expert_parallel,
    )


# The rows


def _one_gpu(option: Option, situation: Situation) -> bool:
    return option.candidate.replica_size == 1 and not option.candidate.enable_expert_parallel


def _whole_node(option: Option, situation: Situation) -> bool:
    candidate = option.candidate
    whole = candidate.tensor_parallel_size == situation.machines.gpus_per_node
    plain = not candidate.enable_expert_parallel and candidate.decode_context_parallel_size == 1
    return whole and candidate.pipeline_parallel_size == 1 and plain


def _whole_node_contexts(option: Option, situation: Situation) -> bool:
    return option.candidate.decode_context_parallel_size > 1 and _whole_node(_without_contexts(option), situation)


def _inside_a_node(option: Option, situation: Situation) -> bool:
    """TP inside a node and nothing idle: the widest, and the narrower ones behind it."""
    candidate = option.candidate
    inside = candidate.pipeline_parallel_size == 1 and not option.crosses_nodes
    return inside and option.idle_gpus == 0 and candidate.decode_context_parallel_size == 1


def _whole_node_experts(option: Option, situation: Situation) -> bool:
    return option.candidate.enable_expert_parallel and _whole_node(_without_experts(option), situation)


def _data_parallel_attention(option: Option, situation: Situation) -> bool:
    candidate = option.candidate
    return candidate.replica_size == 1 and candidate.enable_expert_parallel


def _mixed_attention(option: Option, situation: Situation) -> bool:
    """Experts over all ranks, attention cut inside a node and copied over the rest."""
    candidate = option.candidate
    return candidate.enable_expert_parallel and candidate.data_parallel_size > 1 and _stays_inside(option)


def _copies(option: Option, situation: Situation) -> bool:
    """Copies of the smallest replica that holds the model."""
    candidate = option.candidate
    return candidate.replica_size == situation.least_gpus and _stays_inside(option)


def _larger(option: Option, situation: Situation) -> bool:
    """Copies of a replica that is larger than it has to be."""
    candidate, least = option.candidate, situation.least_gpus
    more = least is not None and candidate.replica_size > least
    return more and candidate.data_parallel_size > 1 and _stays_inside(option)


def _nodes_as_stages(option: Option, situation: Situation) -> bool:
    candidate = option.candidate
    plain = not candidate.enable_expert_parallel and candidate.decode_context_parallel_size == 1
    whole = candidate.tensor_parallel_size == situation.machines.gpus_per_node
    return plain and whole and candidate.nnodes == candidate.pipeline_parallel_size > 1


def _across_nodes(option: Option, situation: Situation) -> bool:
    candidate = option.candidate
    plain = not candidate.enable_expert_parallel and candidate.decode_context_parallel_size == 1
    return plain and candidate.pipeline_parallel_size == 1 and option.crosses_nodes


def _stages(option: Option, situation: Situation) -> bool:
    return option.candidate.pipeline_parallel_size > 1 and option.candidate.tensor_parallel_size <= 2


def _stages_only(option: Option, situation: Situation) -> bool:
    return option.candidate.pipeline_parallel_size > 1 and option.candidate.tensor_parallel_size == 1


def _a_stage_each(option: Option, situation: Situation) -> bool:
    candidate = option.candidate
    return candidate.tensor_parallel_size == 1 and candidate.pipeline_parallel_size == situation.machines.gpus_per_node


def _stays_inside(option: Option) -> bool:
    return option.candidate.pipeline_parallel_size == 1 and not option.crosses_nodes


def _without_contexts(option: Option) -> Option:
    return option._replace(candidate=option.candidate._replace(decode_context_parallel_size=1))


def _without_experts(option: Option) -> Option:
    return option._replace(candidate=option.candidate._replace(enable_expert_parallel=False))


ONE_GPU = Row(
    lambda option, at: "the model fits one GPU: no parallelism, and more GPUs are more copies",
    lambda at: at.fits_one_gpu,
    _one_gpu,
)
WHOLE_NODE = Row(
    lambda option, at: (
        "the model fits one node: tensor parallelism over all its GPUs"
        if at.fits_one_node
        else "whether the model fits one node is not known: where it does, tensor parallelism over all its GPUs"
    ),
    lambda at: at.fits_one_node is not False and at.fast_link is not False,
    _whole_node,
)
WHOLE_NODE_EXPERTS = Row(
    lambda option, at: "tensor parallelism over a node's GPUs, with whole experts on each instead of slices of all",
    lambda at: at.fits_one_node is not False and at.has_experts,
    _whole_node_experts,
)
WHOLE_NODE_CONTEXTS = Row(
    lambda option, at: (
        "ranks that hold the same KV heads share the tokens out among them: room for longer or more requests"
    ),
    lambda at: at.fits_one_node is not False,
    _whole_node_contexts,
)
ATTENTION_COPIES = Row(
    lambda option, at: "a mixture of experts: copies of the attention, the experts spread over all ranks",
    lambda at: at.has_experts,
    _data_parallel_attention,
)
MIXED = Row(
    lambda option, at: (
        "a mixture of experts: attention cut inside a node and copied, the experts spread over all ranks"
    ),
    lambda at: at.has_experts,
    _mixed_attention,
)
COPIES = Row(
    lambda option, at: (
        "copies of the smallest replica that holds the model"
        if option.candidate.data_parallel_size > 1
        else "the smallest replica that holds the model"
    ),
    lambda at: at.fits_one_node is not False,
    _copies,
)
LARGER = Row(
    lambda option, at: (
        f"replicas of {counted(option.candidate.replica_size, 'GPU')} where {at.least_gpus} would do: fewer of them, "
        "each with more room for its KV cache"
    ),
    lambda at: at.fits_one_node is not False,
    _larger,
)
WIDEST = Row(
    lambda option, at: (
        "the widest tensor parallelism that the model allows inside a node"
        if option.candidate.tensor_parallel_size == at.widest
        else f"tensor parallelism over fewer GPUs than the {at.widest} that a node and the model allow, and copies"
    ),
    lambda at: True,
    _inside_a_node,
)
A_STAGE_EACH = Row(
    lambda option, at: "the number of GPUs does not divide the model: a pipeline stage for each, which may be uneven",
    lambda at: not at.node_divides and not at.fits_one_gpu,
    _a_stage_each,
)
STAGES_ONLY = Row(
    lambda option, at: "GPUs without a fast link: pipeline stages send less than tensor parallelism",
    lambda at: at.fast_link is False and not at.fits_one_gpu,
    _stages_only,
)
STAGES = Row(
    lambda option, at: "pipeline stages with at most two ranks each: the number of GPUs need not divide the model",
    lambda at: not at.fits_one_gpu,
    _stages,
)
SLOW_NODE = Row(
    lambda option, at: "tensor parallelism over PCIe: it works, and each layer waits for two all-reduces",
    lambda at: at.fits_one_node is not False and at.fast_link is False,
    _whole_node,
)
NODES_AS_STAGES = Row(
    lambda option, at: (
        "the model fits no single node: tensor parallelism inside each, a pipeline stage for every node"
        if at.fits_one_node is False
        else "whether the model fits one node is not known: where it does not, a pipeline stage for every node"
    ),
    lambda at: at.machines.nodes > 1 and not at.fits_one_node,
    _nodes_as_stages,
)
ACROSS_NODES = Row(
    lambda option, at: "tensor parallelism across nodes: only over a network as fast as the link inside",
    lambda at: at.machines.nodes > 1,
    _across_nodes,
)

TABLES: dict[Objective, tuple[Row, ...]] = {
    "fits": (
        ONE_GPU,
        WHOLE_NODE,
        A_STAGE_EACH,
        STAGES_ONLY,
        NODES_AS_STAGES,
        WHOLE_NODE_EXPERTS,
        SLOW_NODE,
        ATTENTION_COPIES,
        ACROSS_NODES,
        COPIES,
        WHOLE_NODE_CONTEXTS,
        MIXED,
        WIDEST,
        LARGER,
        STAGES,
    ),
    "latency": (
        WHOLE_NODE,
        WHOLE_NODE_EXPERTS,
        NODES_AS_STAGES,
        WIDEST,
        SLOW_NODE,
        STAGES_ONLY,
        ACROSS_NODES,
        COPIES,
        STAGES,
    ),
    "throughput": (
        ATTENTION_COPIES,
        ONE_GPU,
        COPIES,
        WHOLE_NODE_CONTEXTS,
        MIXED,
        NODES_AS_STAGES,
        STAGES_ONLY,
        WHOLE_NODE_EXPERTS,
        WHOLE_NODE,
        LARGER,
        ACROSS_NODES,
        STAGES,
    ),
}
