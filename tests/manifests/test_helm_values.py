"""Values of charts that serve a model, whatever the chart calls them."""

from __future__ import annotations

import pytest

from shardlint.findings import Located, Unknown


def told(launch):
    """The arguments that stand in fields, as flags."""
    return {entry.key.value: entry.value.value for entry in launch.settings if isinstance(entry.value, Located)}


def test_values_at_the_top_with_arguments_as_words(read, words):
    got = read(
        """
        modelName: org/model
        replicaCount: 2
        image: {registry: reg.example, repository: team/vllm-openai, tag: v0.11.2}
        resources: {limits: {nvidia.com/gpu: "4"}}
        nodeSelector: {nvidia.com/gpu.product: NVIDIA-L40S}
        extraArgs:
          - --tensor-parallel-size
          - "4"
          # - --max-model-len
          # - "1"
        ingress: {enabled: false}
        """
    )
    launch = got.only
    assert got.form == "helm-values"
    assert words(launch)[:4] == ["vllm", "serve", "--tensor-parallel-size", "4"]
    assert told(launch) == {"model": "org/model"}
    assert launch.image.value == "reg.example/team/vllm-openai:v0.11.2"
    assert (launch.gpus_per_pod.value, launch.gpu.value, launch.replicas.value) == (4, "NVIDIA-L40S", 2)
    assert got.cut(launch.argv[3]) == '"4"' or got.cut(launch.argv[3]) == "4"


def test_what_the_templates_add_is_open_and_a_written_command_is_whole(read):
    got = read("image: {repository: vllm/vllm-openai}\nextraArgs: [--max-model-len=8]\nmodel: org/m\n")
    assert isinstance(got.only.argv[-1], Unknown) and "template" in got.only.argv[-1].spelled
    whole = read("image: {repository: vllm/vllm-openai}\ncommand: vllm serve org/m --max-model-len 8\n")
    assert all(isinstance(word, Located) for word in whole.only.argv)
    assert not whole.only.entrypoint_of_image


def test_a_placeholder_in_the_command_is_no_model(read):
    got = read('image: {repository: vllm/vllm-openai}\ncommand: "vllm serve __MODEL_AND_FLAGS__"\n')
    assert isinstance(got.only.argv[2], Unknown) and "placeholder" in got.only.argv[2].reason


def test_arguments_as_a_mapping_and_cards_by_number(read):
    got = read('model: org/m\ngpus: 8\nvllm_engine_args: {max-model-len: "32768"}\n')
    assert told(got.only) == {"model": "org/m", "max-model-len": "32768"}
    assert got.only.gpus_per_pod.value == 8


def test_fields_of_sections_stand_for_flags(read):
    got = read(
        """
        model: {name: org/m, tp_size: 8, pp_size: 2}
        job: {gpus: 16, image: {repository: , tag: }}
        vllm: {replicaCount: 1, serverArgs: {gpu-memory-utilization: 0.85}}
        """
    )
    expected = {
        "model": "org/m",
        "tensor-parallel-size": 8,
        "pipeline-parallel-size": 2,
        "gpu-memory-utilization": 0.85,
    }
    assert told(got.only) == expected
    assert isinstance(got.only.gpus_per_pod, Unknown)  # of one pod, or of both stages?


def test_each_whole_server_is_one_and_those_switched_off_are_none(read):
    got = read(
        """
        defaultPodOptions: {nodeSelector: {gpu.product: L4}}
        controllers:
          chat:
            replicas: 0
            containers:
              app:
                image: {repository: vllm/vllm-openai, tag: v0.33.0}
                args: [--model=org/chat]
                env: {CUDA_VISIBLE_DEVICES: "0,1"}
                resources: {limits: {nvidia.com/gpu: 4}}
          embed:
            containers: {app: {image: {repository: ghcr.io/ggml-org/llama.cpp, tag: x}, args: [-hf, org/embed]}}
          off:
            enabled: false
            containers: {app: {image: {repository: vllm/vllm-openai}, args: [--model=org/off]}}
        """
    )
    assert [launch.name for launch in got.launches] == [
        "values/controllers/chat/containers/app",
        "values/controllers/embed/containers/app",
    ]
    chat, embed = got.launches
    assert (chat.replicas.value, chat.gpus_per_pod.value) == (0, 2)
    assert embed.entrypoint_of_image and embed.argv[0].value == "-hf"


def test_models_of_a_list_share_the_image_of_the_top(read):
    got = read(
        """
        image: {repository: vllm/vllm-openai, tag: v0.11.0}
        models:
        - {huggingfaceId: org/a, modelName: a, gpuRequestCount: 1}
        - {huggingfaceId: org/b, modelName: b, gpuRequestCount: 2}
        """
    )
    assert [(told(one)["model"], one.gpus_per_pod.value) for one in got.launches] == [("org/a", 1), ("org/b", 2)]
    assert {one.image.value for one in got.launches} == {"vllm/vllm-openai:v0.11.0"}


def test_a_command_may_stand_with_the_image_and_is_that_of_the_whole(read, words):
    got = read(
        """
        image: {repository: vllm/vllm-openai, tag: x, command: [vllm, serve, /data/]}
        resources: {limits: {nvidia.com/gpu: 2}}
        extraInit: {image: aws-cli, command: [sleep, "1"]}
        """
    )
    (launch,) = [one for one in got.launches if "vllm" in words(one)]
    assert words(launch) == ["vllm", "serve", "/data/"] and launch.gpus_per_pod.value == 2


def test_an_image_of_an_engine_on_cards_is_a_server_whose_model_is_not_told(read):
    got = read("image: {repository: vllm/vllm-openai}\nresources: {limits: {nvidia.com/gpu: 1}}\n")
    assert isinstance(got.only.argv[2], Unknown) and "name no model" in got.only.argv[2].reason


def test_an_engine_of_its_own_flags_and_names(read, words):
    got = read(
        "image: lmsysorg/sglang:v0.5.0\nmodelPath: org/m\ntensorParallelSize: 4\nmaxModelLen: 4096\nargs: [--trust-remote-code]\n"
    )
    assert words(got.only)[:3] == ["python3", "-m", "sglang.launch_server"]
    assert told(got.only) == {"model-path": "org/m", "tp-size": 4, "context-length": 4096}
    assert got.only.image.value == "lmsysorg/sglang:v0.5.0"


@pytest.mark.parametrize(
    "text",
    [
        "kind: Service\nimage: vllm/vllm-openai\nargs: [--model=m]\n",
        "services: {vllm: {image: vllm/vllm-openai}}\n",
        "jobs: {test: {container: {image: vllm/vllm-openai}, args: [--model=m]}}\n",
        "enabled: false\nimage: {repository: vllm/vllm-openai}\nmodel: org/m\n",
        "servingEngineSpec: {modelSpec: [{name: x, repository: vllm/vllm-openai, modelURL: org/m}]}\n",
        "image: {repository: nginx, tag: 1}\nreplicaCount: 2\nresources: {limits: {cpu: 1}}\n",
        "vllm: {enabled: true}\nmonitoring: {enabled: true}\n",
    ],
)
def test_what_is_no_values_of_a_server(read, text):
    assert [launch for launch in read(text).launches if launch.form == "helm-values"] == []


def test_a_container_has_the_image_of_the_top_whatever_it_is_called(read, words):
    got = read(
        """
        vllm: {model: org/m}
        image: {repository: vllm/vllm-openai, tag: v0.27.1}
        resources: {limits: {nvidia.com/gpu: 1}}
        workload: {main: {podSpec: {containers: {main: {args: [serve, org/m, --max-model-len=8]}}}}}
        """
    )
    assert words(got.only)[:3] == ["serve", "org/m", "--max-model-len=8"]
    assert (got.only.image.value, got.only.gpus_per_pod.value) == ("vllm/vllm-openai:v0.27.1", 1)


def test_aliases_of_aliases_end(read):
    lines = ["a0: &a0 {image: {repository: vllm/vllm-openai}, args: [--model=m]}"]
    for n in range(1, 8):
        lines.append(f"a{n}: &a{n} {{" + ", ".join(f"k{i}: *a{n - 1}" for i in range(9)) + "}")
    assert read("\n".join(lines)).launches
