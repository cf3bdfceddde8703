"""Engines that are read and not judged: TensorRT-LLM, TGI, and the rest under one name."""

from __future__ import annotations

import os

from shardlint.engines.engine import Command, Engine

FOLDER = os.path.dirname(__file__)  # noqa: PTH120 pathlib costs 5 ms
TRTLLM_SERVE = Command("trtllm-serve", "serve", takes_model=True, optional_subcommand=True)
TGI_LAUNCHER = Command("text-generation-launcher")

ENGINES = (
    Engine(
        name="trtllm",
        label="TensorRT-LLM",
        newest="1.0.0",
        folder=FOLDER,
        flags_file="trtllm.json",
        commands=(
            TRTLLM_SERVE,
            Command("dynamo.trtllm", is_module=True),
            Command("server", "leader", is_module=True),  # the launcher of the LeaderWorkerSet examples
        ),
        entry=TRTLLM_SERVE,
        kin=r"(?<![a-z])(?:tensorrt|trt)[-_]?llm",
        release_images=r"(?:^|/)tensorrt-llm(?:/release)?$",
        marks=frozenset({"--extra_llm_api_options", "--extra-llm-api-options", "--kv_cache_free_gpu_memory_fraction"}),
        packages=("tensorrt-llm", "tensorrt_llm"),
        file_flags=("--extra-llm-api-options", "--extra-engine-args", "--config"),
        parses_file_flags=True,
        environment={"MODEL_PATH": "model", "TP_SIZE": "tensor_parallel_size"},
    ),
    Engine(
        name="tgi",
        label="TGI",
        newest="3.0.0",
        folder=FOLDER,
        flags_file="tgi.json",
        commands=(TGI_LAUNCHER,),
        entry=TGI_LAUNCHER,
        images=r"(?:^|[/_-])text-generation-inference[\w.-]*$|(?:^|/)huggingface-pytorch-tgi-inference$",
        release_images=r"(?:^|/)huggingface/text-generation-inference$|(?:^|/)text-generation-inference$",
        marks=frozenset({"--num-shard", "--max-total-tokens"}),
        packages=(),
        model_flags=("--model-id",),
        environment={
            "MODEL_ID": "model",
            "HF_MODEL_ID": "model",
            "SM_NUM_GPUS": "tensor_parallel_size",
            "HF_MODEL_QUANTIZE": "quantization",
            "NUM_SHARD": "tensor_parallel_size",
            "QUANTIZE": "quantization",
            "DTYPE": "dtype",
            "MAX_TOTAL_TOKENS": "max_model_len",
        },
    ),
    Engine(
        name="other",
        label="this engine",
        newest="1.0.0",
        folder=FOLDER,
        flags_file="other.json",
        commands=(
            Command("lmdeploy", "serve", takes_model=True),
            Command("djl-serving"),
            Command("llama-server"),
            Command("llama_cpp.server", is_module=True),
            Command("text-embeddings-router"),
            Command("mlc_llm", "serve", takes_model=True),
            Command("lightllm.server.api_server", is_module=True),
            Command("fastchat.serve.model_worker", is_module=True),
            Command("nim-serve"),
            Command("vllm_nvext.entrypoints.openai.api_server", is_module=True),  # inside NIM images
            Command("inference_api.py"),  # KAITO's server on transformers
        ),
        images=r"(?:^|/)(?:text-embeddings-inference|llama\.cpp|djl-inference|lmdeploy)[\w.-]*$|(?:^|/)nim/[\w.-]+/[\w.-]+$",
        model_flags=("--model", "--model-id", "--hf-repo", "--pretrained-model-name-or-path"),
        environment={
            "NIM_MODEL_NAME": "model",
            "NIM_TENSOR_PARALLEL_SIZE": "tensor_parallel_size",
            "NIM_PIPELINE_PARALLEL_SIZE": "pipeline_parallel_size",
            "NIM_MAX_MODEL_LEN": "max_model_len",
            "OPTION_MODEL_ID": "model",
            "HF_MODEL_ID": "model",
            "OPTION_TENSOR_PARALLEL_DEGREE": "tensor_parallel_size",
            "TENSOR_PARALLEL_DEGREE": "tensor_parallel_size",
            "OPTION_PIPELINE_PARALLEL_DEGREE": "pipeline_parallel_size",
            "OPTION_MAX_MODEL_LEN": "max_model_len",
            "OPTION_DTYPE": "dtype",
            "OPTION_QUANTIZE": "quantization",
        },
        profiles={
            "NIM_MODEL_PROFILE": {
                r"(?:^|[-_])tp(\d{1,4})(?=[-_.]|$)": "tensor_parallel_size",
                r"(?:^|[-_])pp(\d{1,4})(?=[-_.]|$)": "pipeline_parallel_size",
            }
        },
        image_models=r"(?:^|/)nim/(?P<model>(?!nvidia/llm-nim$)[\w.-]+/[\w.-]+)$",
    ),
)
