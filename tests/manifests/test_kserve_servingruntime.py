"""Runtimes of KServe and OME, on their own."""

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Unknown

RUNTIME = """
kind: ServingRuntime
metadata: {name: vllm}
spec:
  containers:
  - {name: kserve-container, image: "vllm/vllm-openai:v0.10.0", command: [vllm, serve], args: [/mnt/models, "-tp=2"],
     resources: {limits: {nvidia.com/gpu: 2}}}
  - {name: proxy, command: [vllm, serve, other]}
"""
HUGGINGFACE = """
kind: ClusterServingRuntime
metadata: {name: hf}
spec:
  containers:
  - name: kserve-container
    command: [bash, -c, "ray start --head\\npython -m huggingfaceserver --tensor-parallel-size=${TENSOR_PARALLEL_SIZE} --pipeline-parallel-size=${PIPELINE_PARALLEL_SIZE}"]
  workerSpec:
    pipelineParallelSize: 2
    tensorParallelSize: 4
    containers: [{name: worker, command: [ray, start, --address=head]}]
"""
OME = """
kind: ClusterServingRuntime
apiVersion: ome.io/v1beta1
metadata: {name: srt}
spec:
  routerConfig: {runner: {name: router, command: [python3, -m, sglang_router.launch_router]}}
  engineConfig:
    leader: {runner: {name: ome-container, command: [vllm, serve, $(MODEL_PATH), --nnodes, $(LWS_GROUP_SIZE), -tp, $(PARALLELISM_SIZE)],
                      resources: {limits: {nvidia.com/gpu: 8}}}}
    worker: {size: 3, runner: {name: ome-container, command: [vllm, serve, $(MODEL_PATH)]}}
"""


def test_the_serving_container_of_a_runtime_is_read(read, words):
    got = read(RUNTIME)
    assert (got.form, got.only.name) == ("kserve-servingruntime", "ServingRuntime/vllm")
    assert words(got.only) == ["vllm", "serve", "/mnt/models", "-tp=2", "<$@>"]
    assert got.only.gpus_per_pod.value == 2


def test_a_runtime_that_a_service_of_the_file_uses_is_no_server_of_its_own(read):
    service = "---\nkind: InferenceService\nmetadata: {name: s}\nspec: {predictor: {model: {runtime: vllm}}}\n"
    assert [launch.name for launch in read(RUNTIME + service).launches] == ["InferenceService/s"]


def test_sizes_of_several_nodes_are_variables_of_the_head(read):
    got = read(HUGGINGFACE)
    server = engines.read(Server("vllm", got.launches[-1]))
    assert (server.knobs["tensor_parallel_size"].value, server.knobs["pipeline_parallel_size"].value) == (4, 2)
    assert got.launches[-1].pods.value == 2


def test_a_leader_and_its_workers_are_one_group(read, words):
    leader, worker = read(OME).launches
    assert leader.group == worker.group != ""
    assert (leader.role, worker.role, leader.pods.value) == ("leader", "worker", 4)
    assert words(leader) == ["vllm", "serve", "<$(MODEL_PATH)>", "--nnodes", "4", "-tp", "<$(PARALLELISM_SIZE)>"]
    assert isinstance(engines.read(Server("vllm", leader)).model, Unknown)


def test_prefill_and_decode_are_servers_of_their_own(read):
    got = read(
        """
        kind: ClusterServingRuntime
        metadata: {name: pd}
        spec:
          engineConfig: {runner: {name: a, command: [vllm, serve, m]}, minReplicas: 2}
          decoderConfig: {runner: {name: a, command: [vllm, serve, m]}}
        """
    )
    assert [launch.name for launch in got.launches] == [
        "ClusterServingRuntime/pd/engine",
        "ClusterServingRuntime/pd/decoder",
    ]
    assert got.launches[0].replicas.value == 2


def test_what_a_service_may_add_is_open(read):
    read_alone = engines.read(Server("vllm", read(RUNTIME).only))
    assert read_alone.knobs["tensor_parallel_size"].value == 2
    assert "the service that uses the runtime" in read_alone.open_words[0].reason
