import pytest

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Unknown

GRAPH = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: llm}
spec:
  envs: [{name: MODEL, value: org/model}, {name: LEN, value: "1024"}]
  services:
    Frontend:
      componentType: frontend
      extraPodSpec: {mainContainer: {image: x/vllm-runtime:1.0, args: [--http-port, "8000"]}}
    Planner:
      componentType: planner
      extraPodSpec: {mainContainer: {image: x/vllm-runtime:1.0, command: [python3, -m, planner_sla]}}
    VllmDecodeWorker:
      componentType: worker
      replicas: 2
      envs: [{name: LEN, value: "2048"}]
      multinode: {nodeCount: 2}
      resources: {requests: {gpu: "4"}, limits: {gpu: "8", custom: {rdma/ib: "8"}}}
      extraPodSpec:
        nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}
        mainContainer:
          image: x/vllm-runtime:1.0
          command: [python3]
          args: [-m, dynamo.vllm, --model, $(MODEL), --max-model-len, $(LEN)]
"""


def test_a_service_is_a_launch_of_its_own_and_the_front_is_none(read, words):
    got = read(GRAPH)
    assert got.form == "dynamo-dgd"
    assert got.only.name == "DynamoGraphDeployment/llm/VllmDecodeWorker"
    assert words(got.only) == ["python3", "-m", "dynamo.vllm", "--model", "org/model", "--max-model-len", "2048"]
    assert (got.only.pods.value, got.only.replicas.value) == (2, 2)
    assert got.only.gpu.value == "NVIDIA-H200"


def test_the_service_says_the_number_of_cards(read):
    got = read(GRAPH)
    assert got.only.gpus_per_pod.value == 8
    assert got.cut(got.only.gpus_per_pod) == '"8"'
    narrowed = read(GRAPH.replace('"2048"}]', '"2048"}, {name: CUDA_VISIBLE_DEVICES, value: "0,1"}]'))
    assert narrowed.only.gpus_per_pod.value == 2


def test_cards_may_stand_at_the_container(read):
    text = GRAPH.replace('{requests: {gpu: "4"}, limits: {gpu: "8", custom: {rdma/ib: "8"}}}', "{}")
    got = read(text.replace("command: [python3]", "resources: {limits: {nvidia.com/gpu: 4}}"))
    assert got.only.gpus_per_pod.value == 4


def test_components_of_the_second_version_have_pod_templates(read, words):
    got = read(
        """
        kind: DynamoGraphDeployment
        metadata: {name: llm}
        spec:
          env: [{name: TP, value: "4"}]
          components:
          - {name: Frontend, type: frontend, podTemplate: {spec: {containers: [{args: [--x]}]}}}
          - name: decode
            type: worker
            multinode: {nodeCount: "${NODES}"}
            podTemplate:
              spec:
                containers:
                - {name: main, command: [python3, -m, dynamo.sglang], args: [--tp, $(TP)], resources: {limits: {nvidia.com/gpu: 4}}}
        """
    )
    assert got.only.name == "DynamoGraphDeployment/llm/decode"
    assert words(got.only) == ["python3", "-m", "dynamo.sglang", "--tp", "4"]
    assert got.only.gpus_per_pod.value == 4
    assert isinstance(got.only.pods, Unknown)


def test_a_component_may_be_an_object_of_its_own(read, words):
    got = read(
        "kind: DynamoComponentDeployment\nmetadata: {name: decode}\n"
        "spec: {resources: {limits: {gpu: 2}}, extraPodSpec: {mainContainer: {command: [vllm, serve, m]}}}"
    )
    assert (got.only.name, got.only.gpus_per_pod.value) == ("DynamoComponentDeployment/decode", 2)


SCRIPT = """
kind: DynamoGraphDeployment
metadata: {name: llm}
spec:
  services:
    Worker:
      resources: {requests: {gpu: "1"}}
      extraPodSpec: {mainContainer: {image: x/%s-runtime:0.4, args: ["%s --model org/model 2>&1 | tee /tmp/log"]}}
"""


def test_arguments_that_are_one_text_are_for_a_shell(read, words):
    got = read(SCRIPT % ("vllm", "python3 -m dynamo.vllm"))
    assert words(got.launches[0]) == ["python3", "-m", "dynamo.vllm", "--model", "org/model"]
    assert not got.launches[0].entrypoint_of_image
    assert got.cut(got.launches[0].argv[4]) == "org/model"


@pytest.mark.parametrize("program", ["components/main.py", "components/decode_worker.py"])
def test_the_programs_of_older_examples_are_told_by_their_image(read, words, program):
    assert words(read(SCRIPT % ("sglang", f"python3 {program}")).launches[0])[:3] == ["python3", "-m", "dynamo.sglang"]
    assert words(read(SCRIPT % ("vllm", f"python3 {program}")).launches[0])[:3] == ["python3", "-m", "dynamo.vllm"]


# dynamo serve

SERVED = """
kind: DynamoGraphDeployment
metadata: {name: llm}
spec:
  envs:
  - name: DYN_DEPLOYMENT_CONFIG
    value: '{"Common":{"model":"org/model","max-model-len":4096,"router":"kv"},"VllmWorker":{"tensor-parallel-size":2,
      "ServiceArgs":{"workers":1},"common-configs":["model","max-model-len"]}}'
  services:
    Worker:
      resources: {limits: {gpu: 2}}
      extraPodSpec:
        mainContainer: {command: [sh, -c], args: ["get model && dynamo serve graphs.agg:Frontend --service-name VllmWorker"]}
"""


def told(launch):
    return engines.read(Server(engines.recognise(launch), launch))


def test_a_service_takes_its_arguments_from_the_configuration(read, words):
    got = read(SERVED.replace("2,\n      ", "2,"))
    engine = got.launches[-1]
    assert words(engine) == ["python3", "-m", "dynamo.vllm"]
    read_as = told(engine)
    assert (read_as.model.value, read_as.knobs["max_model_len"].value) == ("org/model", 4096)
    assert read_as.knobs["tensor_parallel_size"].value == 2
    assert got.cut(read_as.knobs["tensor_parallel_size"]) == "2"
    assert got.cut(read_as.model) == '"org/model"'
    assert {entry.key.value for entry in engine.settings} == {"model", "max-model-len", "tensor-parallel-size"}


def test_a_configuration_in_several_lines_is_read_all_the_same(read):
    assert told(read(SERVED).launches[-1]).knobs["tensor_parallel_size"].value == 2


def test_a_service_without_cards_is_no_engine(read, words):
    got = read(SERVED.replace("resources: {limits: {gpu: 2}}", "replicas: 1"))
    assert words(got.launches[-1])[:2] == ["dynamo", "serve"]


@pytest.mark.parametrize("value", ["not json", "'[1]'", '"{{ .Values.config }}"'])
def test_without_a_configuration_nothing_is_known(read, value):
    start, end = SERVED.index("'{"), SERVED.index("}}'") + 3
    engine = told(read(SERVED[:start] + value + SERVED[end:]).launches[-1])
    assert engine.open_words and not engine.knobs


CONFIG = """
Common: {model: org/model, block-size: 64}
Frontend: {port: 8000, ServiceArgs: {workers: 1}}
Processor: {router: kv, ServiceArgs: {resources: {gpu: 1}}}
%s:
  common-configs: [model]
  tensor-parallel-size: 8
  remote-prefill: true
  ServiceArgs: {workers: 3, resources: {gpu: '8'}}
"""


def test_a_file_of_services_has_a_launch_for_each_engine(read, words):
    got = read(CONFIG % "PrefillWorker")
    assert got.form == "dynamo-dgd"
    assert (got.only.name, got.only.gpus_per_pod.value, got.only.replicas.value) == ("service/PrefillWorker", 8, 3)
    assert got.cut(got.only.at) == "PrefillWorker"
    engine = told(got.only)
    assert (engine.engine, engine.model.value, engine.knobs["tensor_parallel_size"].value) == ("vllm", "org/model", 8)
    assert not engine.flag_problems


@pytest.mark.parametrize(
    ("service", "module"), [("SGLangWorker", "dynamo.sglang"), ("TensorRTLLMWorker", "dynamo.trtllm")]
)
def test_the_name_of_a_service_tells_the_engine(read, words, service, module):
    assert words(read(CONFIG % service).only) == ["python3", "-m", module]


@pytest.mark.parametrize("key", ["engine_args", "extra-engine-args"])
def test_arguments_in_another_file_are_not_known(read, key):
    got = read((CONFIG % "TensorRTLLMWorker").replace("remote-prefill: true", f"{key}: configs/agg.yaml"))
    assert got.cut(got.only.argv[-1]) == "configs/agg.yaml"
    assert told(got.only).open_words
