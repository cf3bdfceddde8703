from shardlint.findings import Unknown

MODEL = """
apiVersion: llmaz.io/v1alpha1
kind: OpenModel
metadata: {name: %s}
spec:
  source: {modelHub: {modelID: %s}}
  inferenceConfig: {flavors: [{name: t4, limits: {nvidia.com/gpu: 2}}%s]}
---
"""
PLAYGROUND = """
apiVersion: inference.llmaz.io/v1alpha1
kind: Playground
metadata: {name: chat}
spec:
  replicas: 2
  modelClaim: {modelName: llm}
  backendRuntimeConfig: {backendName: %s, version: v0.8.5, args: [--tensor-parallel-size, "$(TP)"], envs: [{name: TP, value: "2"}]}
"""
ONE = MODEL % ("llm", "org/model", "")


def test_a_playground_serves_the_model_that_it_claims(read, words):
    got = read(ONE + PLAYGROUND % "vllm")
    assert (got.form, got.only.name, got.only.replicas.value) == ("llmaz", "Playground/chat", 2)
    assert words(got.only) == [
        *("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "org/model"),
        *("--tensor-parallel-size", "2"),
    ]
    assert got.cut(got.only.argv[4]) == "org/model"
    assert got.only.image.value == "vllm/vllm-openai:v0.8.5"
    assert (got.only.gpus_per_pod.value, got.only.gpu.value) == (2, "t4")


def test_the_backend_tells_the_engine(read, words):
    assert words(read(ONE + PLAYGROUND % "sglang").only)[2:4] == ["sglang.launch_server", "--model-path"]
    assert read(ONE + PLAYGROUND % "my-own").launches == ()


def test_the_draft_is_not_the_model(read, words):
    claims = "modelClaims: {models: [{name: small, role: draft}, {name: llm, role: main}]}"
    text = (
        MODEL % ("small", "org/small", "") + ONE + PLAYGROUND.replace("modelClaim: {modelName: llm}", claims) % "vllm"
    )
    assert words(read(text).only)[4] == "org/model"


def test_a_model_that_is_not_here_is_unknown(read):
    model = read(PLAYGROUND % "vllm").only.argv[4]
    assert isinstance(model, Unknown) and model.reason == "the OpenModel llm is not in this folder"


def test_a_model_may_stand_beside(read, words):
    got = read(PLAYGROUND % "vllm", **{"deploy__model.yaml": ONE})
    assert words(got.only)[4] == "org/model"


def test_flavors_that_differ_are_alternatives(read):
    got = read(MODEL % ("llm", "org/model", ", {name: a100, limits: {nvidia.com/gpu: 1}}") + PLAYGROUND % "vllm").only
    assert isinstance(got.gpus_per_pod, Unknown) and isinstance(got.gpu, Unknown)


def test_a_service_writes_leader_and_workers(read, words):
    got = read(
        """
        apiVersion: inference.llmaz.io/v1alpha1
        kind: Service
        metadata: {name: big}
        spec:
          replicas: 2
          workloadTemplate:
            size: 2
            workerTemplate: {spec: {containers: [{command: [vllm, serve, m, --nnodes, $(LWS_GROUP_SIZE)]}]}}
        """
    )
    assert (got.only.name, got.only.pods.value, got.only.replicas.value) == ("Service/big", 2, 2)
    assert words(got.only)[-1] == "2"
    assert (
        read("apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {workloadTemplate: {size: 2}}").launches == ()
    )
