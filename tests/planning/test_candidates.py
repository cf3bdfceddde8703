"""Which layouts are tried at all."""

from __future__ import annotations

import pytest

from shardlint.planning.candidates import EVERY_NODES, EVERY_SIZE, Machines, candidates


def found(gpus_per_node: int, nodes: int) -> set[tuple[int, int]]:
    """The GPUs and the nodes of each replica."""
    machines = Machines(gpus_per_node, nodes)
    tried = candidates(machines, layers=None, has_experts=False, key_value_heads=None)
    return {(each.replica_size, each.nnodes) for each in tried}


def test_a_replica_has_any_number_of_a_few_gpus_and_nodes() -> None:
    assert found(3, 2) == {(1, 1), (2, 1), (3, 1), (6, 2)}
    assert found(1, EVERY_NODES) == {(1, 1)} | {(nodes, nodes) for nodes in range(2, EVERY_NODES + 1)}


def test_nodes_are_those_of_all_copies() -> None:
    for machines in (Machines(8, 4), Machines(3, 5), Machines(8, 1)):
        for each in candidates(machines, layers=None, has_experts=True, key_value_heads=2):
            assert each.nodes <= machines.nodes and each.gpus_per_node <= machines.gpus_per_node
            assert each.nodes * each.gpus_per_node == each.world_size
            assert each.knobs()["nnodes"] == (each.nodes if each.nnodes > 1 else None)


@pytest.mark.parametrize(("gpus_per_node", "nodes"), [(8, 128), (1, 1024), (1024, 1), (1000, 1), (32, 32)])
def test_of_a_thousand_gpus_a_few_hundred_layouts_are_tried(gpus_per_node: int, nodes: int) -> None:
    machines = Machines(gpus_per_node, nodes)
    assert len(list(candidates(machines, layers=None, has_experts=False, key_value_heads=None))) < 500
    assert (gpus_per_node * nodes, nodes) in found(gpus_per_node, nodes)
    assert all(nodes % used == 0 for _, used in found(gpus_per_node, nodes) if used > EVERY_NODES)
    assert all(
        gpus_per_node % size == 0 for size, used in found(gpus_per_node, nodes) if used == 1 and size > EVERY_SIZE
    )
