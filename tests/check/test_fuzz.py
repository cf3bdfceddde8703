"""Whatever a manifest of any form holds, there is a report: small ones, spoiled at random but always alike."""

from __future__ import annotations

import random
import runpy
from pathlib import Path
from textwrap import dedent

import pytest

from shardlint.text import Source

ROOT = Path(__file__).parents[2]
FUZZ = runpy.run_path(str(ROOT / "scripts" / "fuzz_manifests.py"))
ROUNDS = 25

POD = """
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.33.0
    command: [sh, -c]
    args: ["exec vllm serve $(MODEL) --tensor-parallel-size ${TP:-3} --max-model-len 4096"]
    env:
    - {name: MODEL, value: Qwen/Qwen3-8B}
    resources: {limits: {nvidia.com/gpu: "4"}}
"""
MANIFESTS = {
    "pod.yaml": f"kind: Pod\nmetadata: {{name: a}}{POD}",
    "lws.yaml": "kind: LeaderWorkerSet\nspec:\n  leaderWorkerTemplate:\n    size: 2\n    workerTemplate:"
    + POD.replace("\n", "\n      "),
    "compose.yaml": """
        services:
          llm: &base
            image: vllm/vllm-openai:${TAG:-v0.33.0}
            command: --model Qwen/Qwen3-8B --tensor-parallel-size 3
            deploy: {resources: {reservations: {devices: [{capabilities: [gpu], device_ids: ["0", "1"]}]}}}
          other: {<<: *base, environment: [A=b]}
        """,
    "values.yaml": """
        image: {repository: vllm/vllm-openai, tag: v0.33.0}
        model: Qwen/Qwen3-8B
        extraArgs: ["--tensor-parallel-size=3"]
        resources: {limits: {nvidia.com/gpu: 3}}
        """,
    "config.yaml": "model: Qwen/Qwen3-8B\ntensor-parallel-size: 3\nmax-model-len: 4096\n",
    "own.yaml": "# vllm\nmodel: {name: Qwen/Qwen3-8B}\ngpu: {gpu_ids: [1]}\ntensor_parallel_size: 1\nmax_model_len: 8\n",
    "recipe.yaml": """
        model: {path: a, container: "vllm/vllm-openai:v0.33.0"}
        resources: {gpu_type: h100, gpus_per_node: 8, agg_nodes: 2, agg_workers: 1}
        backend: {type: vllm, vllm_config: {aggregated: {tensor-parallel-size: 16}}}
        """,
    "ci.yaml": "on: push\njobs:\n  a:\n    steps:\n    - run: |\n        vllm serve Qwen/Qwen3-8B -tp 3\n",
    "serve.sh": """
        #!/bin/bash
        ARGS=(--tensor-parallel-size 3)
        serve() { vllm serve "$1" "${ARGS[@]}"; }
        if [ -n "$X" ]; then ARGS+=(--enforce-eager); fi
        serve Qwen/Qwen3-8B
        cat <<EOF | kubectl apply -f -
        kind: Pod
        spec: {containers: [{image: vllm/vllm-openai, args: ["--model=$M"]}]}
        EOF
        docker run --gpus all -e A=b vllm/vllm-openai --model m -tp $(nvidia-smi -L | wc -l)
        """,
    "job.sbatch": """
        #!/bin/bash
        #SBATCH --nodes=2 --gpus-per-node=h100:8
        srun -N2 --container-image=vllm/vllm-openai bash -c "vllm serve Qwen/Qwen3-8B --nnodes $SLURM_NNODES -tp 16"
        """,
    "Dockerfile": 'FROM vllm/vllm-openai:v0.33.0\nENV TP=3\nENTRYPOINT ["vllm", "serve", "Qwen/Qwen3-8B"]\nCMD ["-tp", "3"]\n',
    "vllm.service": "[Service]\nEnvironment=TP=3\nExecStart=/bin/vllm serve Qwen/Qwen3-8B \\\n  -tp ${TP} --port %i\n",
    "vllm.container": "[Container]\nImage=vllm/vllm-openai\nAddDevice=nvidia.com/gpu=all\nExec=--model Qwen/Qwen3-8B -tp 3\n",
    "main.tf": """
        variable "tp" { default = 3 }
        locals { args = ["--model", "Qwen/Qwen3-8B", "-tp=${var.tp}"] }
        resource "kubernetes_deployment" "llm" {
          spec {
            template {
              spec {
                container {
                  image = "vllm/vllm-openai:v0.33.0"
                  args  = concat(local.args, [for x in ["a"] : "--${x}"], var.more ? ["b"] : [])
                }
              }
            }
          }
        }
        resource "helm_release" "llm" {
          values = [yamlencode({ image = "vllm/vllm-openai", model = "m" }), <<-EOT
            extraArgs: ["--tensor-parallel-size", "${var.tp}"]
          EOT
          ]
        }
        """,
    "llm.nix": """
        { config, lib, ... }: let m = "Qwen/Qwen3-8B"; in {
          virtualisation.oci-containers.containers.vllm = {
            image = "vllm/vllm-openai:v0.33.0";
            cmd = [ "--model" m "-tp" (toString 3) ] ++ lib.optionals true [ "--x=${m}" ];
          };
        }
        """,
    "serve.py": 'from vllm import LLM\nN = 3\nllm = LLM(model="Qwen/Qwen3-8B", tensor_parallel_size=N, **more)\n',
    "serving.properties": "engine=Python\noption.rolling_batch=vllm\noption.model_id=Qwen/Qwen3-8B\noption.tensor_parallel_degree=3\n",
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_spoiled_manifest_yields_a_report(name):
    source = Source(name, dedent(MANIFESTS[name]).lstrip("\n"))
    assert FUZZ["report_of"](source).deployments, "the manifest itself is read"
    for turn in range(ROUNDS):
        candidate = FUZZ["spoiled"](source, random.Random(f"{name} {turn}"))
        report = FUZZ["report_of"](candidate)
        assert report.files, candidate.text
