import pytest

from shardlint.findings import Unknown

SERVING = """
apiVersion: workload.serving.volcano.sh/v1alpha1
kind: ModelServing
metadata: {name: llm}
spec:
  replicas: 2
  template:
    roles:
    - name: decode
      replicas: 3
      entryTemplate:
        spec:
          containers:
          - name: leader
            command: [sh, -c, "start leader --size=$GROUP_SIZE; vllm serve org/model -tp 8 --nnodes $(GROUP_SIZE)"]
            resources: {limits: {nvidia.com/gpu: 8}}
      workerReplicas: 1
      workerTemplate:
        spec: {containers: [{name: worker, command: [start, worker, $(ENTRY_ADDRESS)]}]}
"""
BOOSTER = """
apiVersion: workload.serving.volcano.sh/v1alpha1
kind: ModelBooster
metadata: {name: llm}
spec:
  backend:
    type: vLLMDisaggregated
    modelURI: hf://org/model
    replicas: 1
    env: [{name: A, value: b}]
    workers:
    - type: prefill
      image: vllm/vllm-openai:v0.13.0
      pods: 1
      resources: {limits: {huawei.com/ascend-1980: "2"}}
      config: {tensor-parallel-size: 2, max-model-len: 2048, enforce-eager: ""}
    - type: decode
"""


def test_entry_and_workers_of_a_role_are_one_group(read, words):
    start, engine, worker = (got := read(SERVING)).launches
    assert got.form == "kthena"
    assert {launch.name for launch in got.launches} == {"ModelServing/llm/decode"}
    assert start.group == engine.group == worker.group != ""
    assert (engine.role, worker.role) == ("leader", "worker")
    assert (engine.pods.value, engine.pods.source) == (2, "the entry + 1 workers")
    assert engine.replicas.value == 6
    assert words(start)[-1] == "--size=2"
    assert words(engine)[-1] == "2"
    assert words(worker)[-1] == "<$(ENTRY_ADDRESS)>"


def test_a_worker_template_without_workers_starts_nothing(read):
    got = read(SERVING.replace("workerReplicas: 1", "workerReplicas: 0"))
    assert [launch.role for launch in got.launches] == ["leader", "leader"]
    assert got.launches[0].pods.value == 1


def test_a_booster_states_the_flags_in_fields(read, words):
    prefill, decode = (got := read(BOOSTER)).launches
    assert (prefill.name, decode.name) == ("ModelBooster/llm/prefill", "ModelBooster/llm/decode")
    assert words(prefill) == ["vllm", "serve", "org/model"]
    assert {entry.key.value: entry.value.value for entry in prefill.settings} == {
        "tensor-parallel-size": 2,
        "max-model-len": 2048,
        "enforce-eager": True,
    }
    assert got.cut(prefill.settings[0].value) == "2"
    assert (prefill.gpus_per_pod.value, prefill.gpu.value) == (2, "huawei.com/ascend-1980")
    assert prefill.env["A"].value == "b"
    assert decode.settings == () and decode.gpus_per_pod is None


def test_the_type_of_the_backend_names_the_engine(read, words):
    assert words(read(BOOSTER.replace("vLLMDisaggregated", "SGLang")).launches[0])[-2:] == ["--model-path", "org/model"]
    assert read(BOOSTER.replace("vLLMDisaggregated", "MindIE")).launches == ()
    assert isinstance(read(BOOSTER.replace("modelURI: hf://org/model", "a: b")).launches[0].argv[-1], Unknown)


@pytest.mark.parametrize("text", [SERVING, BOOSTER])
def test_objects_of_another_group_are_not_meant(read, text):
    assert read(text.replace("workload.serving.volcano.sh", "example.org")).launches == ()
