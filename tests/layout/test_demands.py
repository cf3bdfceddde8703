"""What a class of models demands of a layout beyond pieces that come out even."""

from __future__ import annotations

from typing import Any

import pytest
from layout_models import GLM_5, QWEN3_8B, VLLM, geometry

from shardlint.architectures import Row, Rows, rows_of
from shardlint.layout import Layers, Sizes, lay_out
from shardlint.layout.demands import unmet_demands

BALANCED = {"enable_expert_parallel": True, "enable_eplb": True}


def rows(**changes: Any) -> Rows:
    found = rows_of(geometry(QWEN3_8B))
    assert isinstance(found, Rows)
    return found._replace(**changes)


@pytest.mark.parametrize(("first", "met"), [(2, False), (3, True), (0, False)])
def test_the_first_of_several_stages_holds_the_layers_that_images_go_to(first: int, met: bool) -> None:
    stages = (Layers(0, first), Layers(first, 36))
    unmet = unmet_demands(rows(first_stage_layers=3), Sizes(pipeline_parallel_size=2), stages)
    assert [one.kind for one in unmet] == ([] if met else ["first_stage"])
    assert not unmet_demands(rows(first_stage_layers=3), Sizes(), (Layers(0, 36),))


def test_a_class_that_joins_head_and_embedding_everywhere_has_one_stage() -> None:
    stages = (Layers(0, 18), Layers(18, 36))
    (unmet,) = unmet_demands(rows(ties_on_one_stage=True), Sizes(pipeline_parallel_size=2), stages)
    assert unmet.kind == "one_stage"
    assert not unmet_demands(rows(ties_on_one_stage=True), Sizes(tensor_parallel_size=2), (Layers(0, 36),))


@pytest.mark.parametrize(
    ("quantisation", "sizes", "refused"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 32}, BALANCED, True),
        ({"quant_method": "awq", "bits": 4, "group_size": 32}, {"enable_expert_parallel": True}, False),
        ({"quant_method": "fp8"}, BALANCED, False),
        (None, BALANCED, False),
    ],
)
def test_load_balancing_wants_a_method_that_knows_it(quantisation: Any, sizes: dict[str, Any], refused: bool) -> None:
    layout = lay_out(Sizes(tensor_parallel_size=4, **sizes), geometry(GLM_5, quantization_config=quantisation), VLLM)
    assert [one.kind for one in layout.unmet] == (["balanced_experts"] if refused else [])
    assert bool(layout.refused) == refused
    assert all(isinstance(one.row, Row) for one in layout.unmet)
