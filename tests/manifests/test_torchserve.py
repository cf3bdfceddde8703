"""TorchServe's model configuration with a vLLM handler."""

from __future__ import annotations

import pytest
from stated_layouts import only, sizes

MODEL = """
minWorkers: 1
deviceType: gpu
{more}
handler:
  model_path: org/model
  vllm_engine_config:
    max_model_len: 512
    tensor_parallel_size: 4
    served_model_name: [a, b]
"""


def test_the_handlers_fields_are_the_engines(read):
    got = read(MODEL.format(more=""))
    assert got.form == "torchserve"
    deployment = only(got.launches)
    assert (deployment.engine, deployment.model.value) == ("vllm", "org/model")
    assert sizes(deployment) == {"max_model_len": 512, "tensor_parallel_size": 4}
    assert got.cut(deployment.knobs["tensor_parallel_size"]) == "4"
    assert got.cut(deployment.at) == "vllm_engine_config"
    assert not deployment.flag_problems


@pytest.mark.parametrize(
    ("more", "cards"),
    [
        ("", None),
        ("parallelType: custom\nparallelLevel: 4", 4),
        ("parallelLevel: 4", None),
        ("deviceIds: [0, 1]", 2),
    ],
)
def test_cards_of_the_worker(read, more, cards):
    launch = read(MODEL.format(more=more)).only
    assert (launch.gpus_per_pod.value if launch.gpus_per_pod else None) == cards


@pytest.mark.parametrize("text", ["handler: {model_path: x}\n", "handler: x\n", "handler: {vllm_engine_config: []}\n"])
def test_other_handlers_are_left_alone(read, text):
    assert read(text).launches == ()
