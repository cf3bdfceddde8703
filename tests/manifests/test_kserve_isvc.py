"""KServe's InferenceService: with its runtime in the file, beside it, and known by name alone."""

import pytest

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Located, Unknown

RUNTIME = """
kind: ServingRuntime
metadata: {name: runtime-1}
spec:
  supportedModelFormats: [{name: vLLM, autoSelect: true}]
  containers:
  - name: kserve-container
    image: quay.io/modh/vllm:v0.10.0
    command: [python, -m, vllm.entrypoints.openai.api_server]
    args: [--model=/mnt/models, --max-model-len=6144]
    env: [{name: A, value: "1"}, {name: B, value: "1"}]
    resources: {limits: {nvidia.com/gpu: 1}}
"""


def service(model="runtime: runtime-1, storageUri: 'hf://org/model'", predictor="", metadata="name: chat"):
    return f"""
kind: InferenceService
apiVersion: serving.kserve.io/v1beta1
metadata: {{{metadata}}}
spec:
  predictor:
    minReplicas: 2
    {predictor or "tolerations: []"}
    model: {{modelFormat: {{name: vLLM}}, {model}}}
"""


def deployment(launch, engine="vllm"):
    return engines.read(Server(engine, launch))


def test_a_service_lies_over_its_runtime(read, words):
    over = (
        "runtime: runtime-1, storageUri: 'hf://org/model', args: [--tensor-parallel-size=2], "
        "env: [{name: B, value: '2'}], resources: {limits: {nvidia.com/gpu: 2}}"
    )
    got = read(RUNTIME + "---" + service(over, "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}"))
    launch = got.only
    assert (got.form, launch.name, launch.replicas.value) == ("kserve-isvc", "InferenceService/chat", 2)
    assert words(launch)[3:] == ["--model", "org/model", "--max-model-len=6144", "--tensor-parallel-size=2"]
    assert (launch.env["A"].value, launch.env["B"].value) == ("1", "2")
    assert (launch.gpus_per_pod.value, launch.gpu.value) == (2, "NVIDIA-L4")
    assert launch.image.value == "quay.io/modh/vllm:v0.10.0"


@pytest.mark.parametrize(
    ("stored", "model"),
    [
        ("storageUri: 'hf://org/model:main'", "org/model"),
        ("storageUri: 'pvc://volume/path'", "pvc://volume/path"),
        ("storage: {key: secret, path: org/model/}", "org/model/"),
    ],
)
def test_the_model_is_what_is_stored(read, stored, model):
    assert deployment(read(RUNTIME + "---" + service(f"runtime: runtime-1, {stored}")).only).model.value == model


def test_a_runtime_beside_the_file_and_one_that_is_chosen_by_the_format(read):
    beside = read(service(), **{"deploy/runtime.yaml": RUNTIME})
    assert deployment(beside.only).knobs["max_model_len"].span.path == "deploy/runtime.yaml"
    chosen = read(RUNTIME + "---" + service("storageUri: 'hf://org/model'"))
    assert deployment(chosen.only).knobs["max_model_len"].value == 6144


@pytest.mark.parametrize(
    ("runtime", "engine"),
    [
        ("vllm-cuda-runtime", "vllm"),
        ("sglang-runtime", "sglang"),
        ("tgi-runtime", "tgi"),
        ("nvidia-nim-llama-3.1-70b-instruct-1.1.0", "other"),
        ("trtllm-runtime", "trtllm"),
    ],
)
def test_a_runtime_elsewhere_tells_the_engine_by_its_name(read, runtime, engine):
    launch = read(service(f"runtime: {runtime}, storageUri: 'hf://org/model', args: [--odd]")).only
    assert engines.recognise(launch) == engine
    found = deployment(launch, engine)
    assert found.model is None if engine == "other" else found.model.value == "org/model"


def huggingface(**parts):
    args = parts.get("args", "--model_name=x")
    cards = "resources: {limits: {nvidia.com/gpu: 1}}" if parts.get("cards", True) else "name: ''"
    stored = "storageUri: 'hf://org/stored'"
    return service(f"{stored}, args: [{args}], {cards}").replace("name: vLLM", "name: huggingface")


def test_the_hugging_face_server_is_vllm_for_language_models(read):
    given = deployment(read(huggingface(args="--model_name=x, --model_id=org/given, -tp=2")).only)
    assert (given.model.value, given.knobs["tensor_parallel_size"].value) == ("org/given", 2)
    assert not given.flag_problems
    assert deployment(read(huggingface()).only).model.value == "org/stored"


@pytest.mark.parametrize("parts", [{"cards": False}, {"args": "--task=fill_mask"}, {"args": "--backend=huggingface"}])
def test_and_not_for_others(read, parts):
    assert engines.recognise(read(huggingface(**parts)).only) is None


def test_containers_of_its_own(read, words):
    got = read(
        """
        kind: InferenceService
        metadata: {name: own}
        spec: {predictor: {minReplicas: 1, containers: [{name: kserve-container, command: [vllm, serve, org/m]}]}}
        """
    )
    assert words(got.only) == ["vllm", "serve", "org/m"]


def test_models_of_other_kinds_start_no_engine(read):
    text = service("storageUri: 'gs://x/iris'").replace("name: vLLM", "name: sklearn")
    assert engines.recognise(read(text).only) is None


OME = """
kind: InferenceService
apiVersion: ome.io/v1beta1
metadata: {name: chat}
spec:
  model: {name: llama}
  runtime: {name: runtime-ome}
  engine: {minReplicas: 3}
"""


def test_a_service_of_ome(read):
    runtime = """
kind: ClusterServingRuntime
metadata: {name: runtime-ome}
spec: {engineConfig: {runner: {name: x, command: [vllm, serve, $(MODEL_PATH), -tp, "8"]}}}
"""
    launch = read(runtime + "---" + OME).only
    assert launch.name == "InferenceService/chat"
    assert isinstance(deployment(launch).model, Unknown)
    assert isinstance(deployment(launch).knobs["tensor_parallel_size"], Located)
    alone = read(OME)
    assert (alone.form, engines.recognise(alone.only)) == ("kserve-isvc", None)


def test_the_image_of_the_server_of_kserve_is_known(read, words):
    runtime = """
kind: ClusterServingRuntime
metadata: {name: runtime-1}
spec: {containers: [{name: kserve-container, image: "kserve/huggingfaceserver:v0.15.0-gpu", args: ["--model_name=x"]}]}
"""
    alone = deployment(read(runtime).only)
    assert (alone.engine, alone.model) == ("vllm", None)
    used = read(runtime + "---" + service("runtime: runtime-1, storageUri: 'hf://org/m', args: [--dtype=half]"))
    found = deployment(used.only)
    assert (found.model.value, found.knobs["dtype"].value) == ("org/m", "half")
    given = service("runtime: runtime-1, storageUri: 'hf://org/m', args: [--model_id=org/given]")
    assert deployment(read(runtime + "---" + given).only).model.value == "org/given"
