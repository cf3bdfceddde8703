"""NIMs: the objects of the operator, and the values of the chart."""

import pytest

from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Unknown

SERVICE = """
kind: NIMService
apiVersion: apps.nvidia.com/v1alpha1
metadata: {name: chat}
spec:
  image: {repository: nvcr.io/nim/meta/llama-3.1-8b-instruct, tag: "1.8.0"}
  replicas: 2
  resources: {limits: {nvidia.com/gpu: 4}}
  nodeSelector: {nvidia.com/gpu.product: NVIDIA-L40S}
"""
CACHE = """
kind: NIMCache
metadata: {name: cache}
spec: {source: {ngc: {model: {engine: tensorrt_llm, tensorParallelism: "4", gpus: [{product: h100}]}}}}
"""
NAMES_CACHE = "  storage: {nimCache: {name: cache}}\n"


def deployment(launch):
    return engines.read(Server("other", launch))


def test_a_service_is_its_image_its_cards_and_its_copies(read):
    launch = read(SERVICE).only
    assert (launch.form, launch.name, launch.replicas.value) == ("nim", "NIMService/chat", 2)
    assert engines.recognise(launch) == "other"
    found = deployment(launch)
    assert (found.model.value, found.image_tag.value) == ("meta/llama-3.1-8b-instruct", "1.8.0")
    assert (found.gpus_per_pod.value, found.gpu.value) == (4, "NVIDIA-L40S")
    assert isinstance(found.knobs["tensor_parallel_size"], Unknown)


@pytest.mark.parametrize("same_file", [True, False])
def test_the_cache_says_how_the_model_is_cut(read, same_file):
    files = {} if same_file else {"deploy/cache.yaml": CACHE}
    text = CACHE + "---" + SERVICE + NAMES_CACHE if same_file else SERVICE + NAMES_CACHE
    assert deployment(read(text, **files).only).knobs["tensor_parallel_size"].value == 4


def test_a_card_for_which_the_cache_was_made(read):
    text = SERVICE.replace("  nodeSelector: {nvidia.com/gpu.product: NVIDIA-L40S}\n", "")
    assert read(CACHE + "---" + text + NAMES_CACHE).only.gpu.value == "h100"


def test_several_nodes_state_their_sizes(read):
    launch = read(SERVICE + "  multiNode: {parallelism: {pipeline: 2, tensor: 8}}\n").only
    found = deployment(launch)
    assert (found.knobs["tensor_parallel_size"].value, found.knobs["pipeline_parallel_size"].value) == (8, 2)
    assert launch.pods.value == 2


@pytest.mark.parametrize("variable", ["NIM_MODEL_PROFILE", "NIM_TENSOR_PARALLEL_SIZE"])
def test_a_variable_says_the_size(read, variable):
    written = {"NIM_MODEL_PROFILE": "vllm-bf16-tp2", "NIM_TENSOR_PARALLEL_SIZE": "2"}[variable]
    found = deployment(read(SERVICE + f'  env: [{{name: {variable}, value: "{written}"}}]\n').only)
    assert found.knobs["tensor_parallel_size"].value == 2


@pytest.mark.parametrize(
    ("claim", "cards"),
    [
        ("{claimCreationSpec: {devices: [{name: a}, {name: b, count: 2}]}}", 3),
        ("{resourceClaimTemplateName: cards}", 2),
    ],
)
def test_claimed_devices_are_counted(read, claim, cards):
    template = (
        "kind: ResourceClaimTemplate\nmetadata: {name: cards}\n"
        "spec: {spec: {devices: {requests: [{name: x, exactly: {count: 2}}]}}}\n---"
    )
    text = template + SERVICE.replace("  resources: {limits: {nvidia.com/gpu: 4}}\n", f"  draResources: [{claim}]\n")
    assert read(text).only.gpus_per_pod.value == cards


def test_a_pipeline_has_the_services_that_are_enabled(read):
    got = read(
        """
        kind: NIMPipeline
        metadata: {name: rag}
        spec:
          services:
          - {name: llm, enabled: true, spec: {image: {repository: nvcr.io/nim/meta/a, tag: "1"}}}
          - {name: off, enabled: false, spec: {image: {repository: nvcr.io/nim/meta/b, tag: "1"}}}
        """
    )
    assert [launch.name for launch in got.launches] == ["NIMPipeline/rag/llm"]


def test_values_of_the_chart(read):
    launch = read(
        """
        image: {repository: nvcr.io/nim/meta/llama3-8b-instruct, tag: 1.0.3}
        model: {name: meta/llama3-8b-instruct}
        replicaCount: 2
        resources: {limits: {nvidia.com/gpu: 1}}
        """
    ).only
    found = deployment(launch)
    assert (launch.name, found.model.value, found.image_tag.value) == ("values", "meta/llama3-8b-instruct", "1.0.3")
    assert (found.gpus_per_pod.value, launch.replicas.value) == (1, 2)


def test_values_of_a_chart_with_several(read):
    got = read(
        """
        nim-llm: {enabled: true, image: {repository: nvcr.io/nim/meta/a}}
        nim-off: {enabled: false, image: {repository: nvcr.io/nim/meta/b}}
        frontend: {image: {repository: nvcr.io/org/ui}}
        """
    )
    assert [launch.name for launch in got.launches] == ["values/nim-llm"]


def test_a_cache_of_the_hub_names_the_model_of_an_image_for_any(read):
    cache = "kind: NIMCache\nmetadata: {name: cache}\nspec: {source: {hf: {namespace: org, modelName: model}}}\n---"
    text = cache + SERVICE.replace("meta/llama-3.1-8b-instruct", "nvidia/llm-nim") + NAMES_CACHE
    assert deployment(read(text).only).model.value == "org/model"


@pytest.mark.parametrize(("profile", "size"), [("vllm-bf16-tp2", 2), ("tensorrt_llm", None)])
def test_the_profile_that_a_service_takes_from_its_cache(read, profile, size):
    text = SERVICE + NAMES_CACHE.replace("{name: cache}", f"{{name: cache, profile: {profile}}}")
    found = deployment(read(text).only).knobs["tensor_parallel_size"]
    assert isinstance(found, Unknown) if size is None else found.value == size
