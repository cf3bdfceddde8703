from __future__ import annotations

import pytest
from engine_commands import AT, deployment, launch, located

from shardlint import engines
from shardlint.deployment import Launch, Server
from shardlint.findings import Located, Unknown


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("vllm serve m", "vllm"),
        ("/opt/venv/bin/vllm serve m", "vllm"),
        ("exec vllm serve m", "vllm"),
        ("nohup env A=b vllm serve m", "vllm"),
        ("uv run vllm serve m", "vllm"),
        ("uvx --from vllm==0.11.0 vllm serve m", "vllm"),
        ("conda run -n serving vllm serve m", "vllm"),
        ("srun --container-image=x.sqsh vllm serve m", "vllm"),
        ("apptainer exec --nv x.sif vllm serve m", "vllm"),
        ("kubectl exec pod -- vllm serve m", "vllm"),
        ("python3 -m vllm.entrypoints.openai.api_server --model m", "vllm"),
        ("python -u -m vllm.entrypoints.api_server --model m", "vllm"),
        ("/usr/bin/python3.11 /app/vllm/entrypoints/openai/api_server.py --model m", "vllm"),
        ("$PYTHON -m vllm.entrypoints.openai.api_server --model m", "vllm"),
        ("$LAUNCHER vllm serve m", "vllm"),
        ("${VLLM_BIN} serve m", "vllm"),
        ("ray symmetric-run --address a:6379 --min-nodes 4 -- vllm serve m", "vllm"),
        ("python3 -m sglang.launch_server --model-path m", "sglang"),
        ("torchrun --nproc-per-node 8 -m sglang.launch_server --model-path m", "sglang"),
        ("trtllm-serve m --tp_size 8", "trtllm"),
        ("mpirun -n 8 trtllm-llmapi-launch trtllm-serve serve m", "trtllm"),
        ("text-generation-launcher --model-id m", "tgi"),
        ("lmdeploy serve api_server m --tp 4", "other"),
        ("llama-server -m model.gguf", "other"),
    ],
)
def test_an_engine_is_recognised_by_its_command(command: str, engine: str) -> None:
    assert engines.recognise(launch(command)) == engine


@pytest.mark.parametrize(
    "command",
    [
        "vllm bench serve --model m",
        "vllm complete",
        "vllm chat --url http://x",
        "vllm --version",
        "vllm",
        "vllm-router --backend x",
        "pip install vllm",
        "uv pip install vllm",
        "pkill -f vllm",
        "echo vllm serve m",
        "which vllm",
        "ray start --head --port 6379",
        "curl http://localhost:8000/v1/models",
        "python3 -m sglang.bench_serving --backend vllm --model m",
        "python3 -m sglang_router.launch_router --worker-urls http://x",
        "python3 benchmark.py -m vllm",
        "python3 -m http.server",
        "trtllm-serve disaggregated -c config.yaml",
        "docker run vllm/vllm-openai --model m",
        "sleep infinity",
        "",
    ],
)
def test_what_only_speaks_of_an_engine_is_none(command: str) -> None:
    assert engines.recognise(launch(command)) is None


def test_a_whole_script_in_one_word_is_no_command() -> None:
    killed = Launch("x", "script", "shell_script", AT, located(["pkill", "-f", "vllm serve"]))
    assert engines.recognise(killed) is None


@pytest.mark.parametrize(
    ("image", "arguments", "engine"),
    [
        ("vllm/vllm-openai:v0.8.5", "--model m -tp 8", "vllm"),
        ("vllm/vllm-openai:v0.20.1", "m -tp 8", "vllm"),
        ("vllm/vllm-openai:v0.20.1", "meta-llama/Llama-3.1-8B -tp 8", "vllm"),
        ("vllm/vllm-openai:v0.20.1", "serve meta-llama/Llama-3.1-8B", "vllm"),
        ("vllm/vllm-openai:v0.20.1", "/models/llama --port 80", "vllm"),
        ("vllm/vllm-openai:v0.20.1", "", "vllm"),
        ("quay.io/modh/vllm:rhoai-2.12", "--port=8080 --model=/mnt/models", "vllm"),
        ("my.registry/team/vllm-cuda:7", "--model m", "vllm"),
        ("my.registry/team/inference:7", "--model m --gpu-memory-utilization 0.9", "vllm"),
        ("my.registry/team/inference:7", "--model-path m --mem-fraction-static 0.8", "sglang"),
        ("ghcr.io/huggingface/text-generation-inference:3.0.2", "--model-id m --num-shard 2", "tgi"),
        ("ghcr.io/huggingface/text-generation-inference:3.0.2", "", "tgi"),
        ("nvcr.io/nim/meta/llama-3.1-70b-instruct:1.12.0", "", "other"),
        ("vllm/vllm-openai:v0.20.1", "ray start --head", None),
        ("vllm/vllm-openai:v0.20.1", "/bin/run.sh leader", None),
        ("ghcr.io/llm-d/llm-d-routing-sidecar:latest", "--vllm-port=8200 --data-parallel-size=2", None),
        ("aibrix/vllm-router:v1", "--model m", None),
        ("ghcr.io/llm-d/llm-d-inference-sim:latest", "--model m --max-num-seqs 2", None),
        ("my.registry/team/simple-vllm:7", "--model m", "vllm"),
        ("vllm/vllm-openai:v0.20.1", "python3 -m server --tensor-parallel-size 8", None),
        ("nginx:1.27", "--max 3", None),
        ("busybox", "", None),
        (None, "", None),
    ],
)
def test_the_image_says_what_its_entrypoint_runs(image: str | None, arguments: str, engine: str | None) -> None:
    found = engines.recognise(launch(arguments, image=image, entrypoint_of_image=True))
    assert found == engine


def test_a_templated_image_is_recognised_by_its_text() -> None:
    templated = Unknown("templated", AT, "vllm/vllm-openai:{{ .Values.tag }}")
    started = launch("--model m", entrypoint_of_image=True)._replace(image=templated)
    assert engines.recognise(started) == "vllm"


def test_a_command_of_its_own_is_not_the_images_engine() -> None:
    assert engines.recognise(launch("./start.sh", image="vllm/vllm-openai:v0.8.5")) is None


def test_engines_are_found_by_name() -> None:
    assert {engine.name for engine in engines.engines()} == {"vllm", "sglang", "trtllm", "tgi", "other"}
    assert [engine.name for engine in engines.engines() if engine.judged] == ["sglang", "vllm"]
    with pytest.raises(KeyError):
        engines.engine("nothing")


@pytest.mark.parametrize(
    "command", ["vllm serve m -tp 2", "uv run --with x vllm serve m -tp 2", "serve m -tp 2", "m -tp 2"]
)
def test_the_flags_begin_after_the_command(command: str) -> None:
    found = deployment(command, image="vllm/vllm-openai:v0.20.1", entrypoint_of_image=True)
    assert found.knobs["tensor_parallel_size"].value == 2  # type: ignore[union-attr]
    assert found.model.value == "m"  # type: ignore[union-attr]


def test_the_place_of_a_module_is_its_whole_name() -> None:
    assert engines.recognise(launch("python3 ./server.py leader --pp=8 --tp=2")) == "trtllm"
    assert engines.recognise(launch("python3 ./my_server.py leader --pp=8 --tp=2")) is None


def test_an_image_without_words_may_be_told_by_variables() -> None:
    image = "registry/team/deployment-trt-llm-release:v0.12.0"
    silent = launch("", image=image, entrypoint_of_image=True)
    assert engines.recognise(silent) is None
    told = silent._replace(env={"MODEL_PATH": Located("/data/model"), "TP_SIZE": Located("2")})
    assert engines.recognise(told) == "trtllm"
    found = engines.read(Server("trtllm", told))
    assert (found.model.value, found.knobs["tensor_parallel_size"].value) == ("/data/model", 2)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("/scripts/startup.sh --served-model-name=x --max-model-len=8 --enforce-eager", "vllm"),
        ("/scripts/startup.sh --mem-fraction-static=0.8", "sglang"),
        ("/scripts/startup.sh --port 8000", None),
        ("/scripts/startup.sh leader --max-model-len=8", None),
        ("router --max-model-len=8", None),
    ],
)
def test_a_script_that_hands_flags_of_an_engine_on_starts_it(command: str, engine: str | None) -> None:
    assert engines.recognise(launch(command, image="registry.example/server:1")) == engine
    assert engines.recognise(launch(command)) is None  # a script that calls another one, in no container
