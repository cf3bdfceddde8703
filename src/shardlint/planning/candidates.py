"""Every layout that a number of GPUs can have, before anything is asked about the model's numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardlint.findings.records import NamedTuple

EVERY_SIZE, EVERY_NODES = 72, 16
"""GPUs of one node, and nodes, of which a replica may have any number; of more it has one that divides them."""


class Machines(NamedTuple):
    """Equal nodes."""

    gpus_per_node: int
    nodes: int

    @property
    def gpus(self) -> int:
        return self.gpus_per_node * self.nodes


class Candidate(NamedTuple):
    """One layout. `data_parallel_size` are the copies of one replica, which has TP x PP ranks on `nnodes` nodes."""

    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    nnodes: int
    """Nodes that one replica is spread over."""
    enable_expert_parallel: bool = False
    decode_context_parallel_size: int = 1
    data_parallel_size_local: int | None = None
    """Copies on each node, where they are on several."""

    @property
    def replica_size(self) -> int:
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def world_size(self) -> int:
        return self.replica_size * self.data_parallel_size

    @property
    def nodes(self) -> int:
        """Nodes that all of it runs on."""
        if self.nnodes > 1:
            return self.nnodes * self.data_parallel_size
        return -(-self.data_parallel_size // (self.data_parallel_size_local or self.data_parallel_size))

    @property
    def gpus_per_node(self) -> int:
        """GPUs that it uses of each of its nodes."""
        return self.world_size // self.nodes

    @property
    def one_copy(self) -> Candidate:
        """One replica by itself."""
        return self._replace(data_parallel_size=1, data_parallel_size_local=None)

    def flags(self) -> tuple[str, ...]:
        """The words that ask vLLM for it, a default left out."""
        words = [f"--tensor-parallel-size {self.tensor_parallel_size}"]
        if self.pipeline_parallel_size > 1:
            words.append(f"--pipeline-parallel-size {self.pipeline_parallel_size}")
        if self.data_parallel_size > 1:
            words.append(f"--data-parallel-size {self.data_parallel_size}")
        if self.data_parallel_size_local is not None and self.data_parallel_size_local < self.data_parallel_size:
            words.append(f"--data-parallel-size-local {self.data_parallel_size_local}")
        if self.decode_context_parallel_size > 1:
            words.append(f"--decode-context-parallel-size {self.decode_context_parallel_size}")
        if self.enable_expert_parallel:
            words.append("--enable-expert-parallel")
        if self.nnodes > 1:
            words.append(f"--nnodes {self.nodes}")
        return tuple(words)

    def knobs(self) -> dict[str, Any]:
        """The engine's options; None for one that is left unwritten. Its `nnodes` are those of all copies."""
        return {
            "tensor_parallel_size": self.tensor_parallel_size,
            "pipeline_parallel_size": self.pipeline_parallel_size,
            "data_parallel_size": self.data_parallel_size,
            "enable_expert_parallel": self.enable_expert_parallel,
            "decode_context_parallel_size": self.decode_context_parallel_size,
            "data_parallel_size_local": self.data_parallel_size_local,
            "nnodes": self.nodes if self.nnodes > 1 else None,
        }


def candidates(
    machines: Machines, *, layers: int | None, has_experts: bool, key_value_heads: int | None
) -> Iterator[Candidate]:
    """All layouts that use as many GPUs as their replica allows; `key_value_heads` is 1 for a latent cache."""
    for replica, nnodes in _replicas(machines):
        for tensor in range(1, replica + 1):
            pipeline = replica // tensor
            if replica % tensor or (layers is not None and pipeline > layers):
                continue
            yield from _variants(_spread(tensor, pipeline, nnodes, machines), has_experts, key_value_heads)


def _replicas(machines: Machines) -> Iterator[tuple[int, int]]:
    """Sizes of a replica, and its nodes: any that one node holds, then all GPUs of 2, 3, ... nodes."""
    yield from ((size, 1) for size in _worth_trying(machines.gpus_per_node, EVERY_SIZE))
    yield from ((nnodes * machines.gpus_per_node, nnodes) for nnodes in _worth_trying(machines.nodes, EVERY_NODES)[1:])


def _worth_trying(most: int, every: int) -> list[int]:
    """Each number up to `every`; of larger ones those that leave none over."""
    return [number for number in range(1, most + 1) if number <= every or most % number == 0]


def _spread(tensor: int, pipeline: int, nnodes: int, machines: Machines) -> Candidate:
    """As many copies of a replica as the machines hold."""
    if nnodes > 1:
        return Candidate(tensor, pipeline, machines.nodes // nnodes, nnodes)
    on_each = machines.gpus_per_node // (tensor * pipeline)
    local = on_each if machines.nodes > 1 else None
    return Candidate(tensor, pipeline, on_each * machines.nodes, 1, data_parallel_size_local=local)


def _variants(plain: Candidate, has_experts: bool, key_value_heads: int | None) -> Iterator[Candidate]:
    """The same with expert parallelism, and with decode context parallelism where KV heads are held twice."""
    copies = plain.tensor_parallel_size // key_value_heads if key_value_heads else 1
    contexts = [1, copies] if copies > 1 else [1]
    experts = [False, True] if has_experts and plain.world_size > plain.pipeline_parallel_size else [False]
    for context in contexts:
        for expert in experts:
            yield plain._replace(enable_expert_parallel=expert, decode_context_parallel_size=context)
