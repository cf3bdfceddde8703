"""What shardlint costs, as ratios of CPU time on this machine: see BUDGET.

    python benchmarks/run.py [--rounds N] [--files N]

Each command runs in a child process, whose user and system time is read from the kernel. Every number is the least of
several runs, since whatever else the machine does can only add to it, and every ratio is taken in one go against bare
Python (`python -c pass`) or against yamllint on the same files. Exits with 1 where a ratio is over its budget. Needs
tests/requirements.txt.

`a repository` is mixed as GoogleCloudPlatform/kubernetes-engine-samples is, a public repository with many model
servers: 92 of its 446 YAML files name an LLM engine with its model (83 lines in the middle, half of them with a second
document), and 354 are Services, autoscalers, claims, config maps, jobs and other Deployments (42 lines in the middle,
65 on average); nearly all begin with a licence in 13 lines of comments. The files made here have 82 and 45 lines in the
middle; long dashboards and CRDs are left out, on which yamllint would lose most. `model servers only` is the worst
case: every file starts one. Both deploy the same dozen models again and again, as repositories do.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

SCRIPTS = Path(sysconfig.get_path("scripts"))
SHARDLINT = str(SCRIPTS / "shardlint")
YAMLLINT = str(SCRIPTS / "yamllint")
BARE = (sys.executable, "-c", "pass")

LICENCE = """\
# Copyright {number} Example Authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     https://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: chat-{number}
spec:
  selector:
    app.kubernetes.io/name: chat-{number}
  ports:
    - port: 80
      targetPort: 8000
"""
MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat-{number}
  labels:
    app.kubernetes.io/name: chat-{number}
spec:
  replicas: 2
  selector:
    matchLabels:
      app.kubernetes.io/name: chat-{number}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: chat-{number}
    spec:
      nodeSelector:
        nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.10.0
          args:
            - --model={model}
            - --tensor-parallel-size={tensor_parallel_size}
            - --max-model-len=32768
            - --gpu-memory-utilization=0.9
          env:
            - name: HF_TOKEN
              valueFrom:
                secretKeyRef:
                  name: hf
                  key: token
          ports:
            - containerPort: 8000
          resources:
            limits:
              cpu: "16"
              memory: 128Gi
              nvidia.com/gpu: "{tensor_parallel_size}"
          readinessProbe:
            httpGet:
              path: /health
              port: 8000
            initialDelaySeconds: 120
          livenessProbe:
            httpGet:
              path: /health
              port: 8000
            periodSeconds: 20
            failureThreshold: 3
          volumeMounts:
            - name: cache
              mountPath: /root/.cache/huggingface
            - name: shm
              mountPath: /dev/shm
      volumes:
        - name: shm
          emptyDir:
            medium: Memory
            sizeLimit: 16Gi
        - name: cache
          persistentVolumeClaim:
            claimName: weights-{number}
"""
OTHERS = (
    SERVICE,
    """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: chat-{number}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: chat-{number}
  minReplicas: 1
  maxReplicas: 5
  metrics:
    - type: Pods
      pods:
        metric:
          name: prometheus.googleapis.com|vllm:num_requests_waiting|gauge
        target:
          type: AverageValue
          averageValue: "10"  # waiting requests
  behavior:
    scaleUp:
      stabilizationWindowSeconds: 0
      policies:
        - type: Pods
          value: 1
          periodSeconds: 60
    scaleDown:
      stabilizationWindowSeconds: 600
      policies:
        - type: Percent
          value: 50
          periodSeconds: 120
""",
    """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: weights-{number}
spec:
  accessModes:
    - ReadWriteOnce
  storageClassName: premium-rwo
  resources:
    requests:
      storage: 200Gi
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: chat-{number}
  annotations:
    iam.gke.io/gcp-service-account: chat-{number}@project.iam.gserviceaccount.com
""",
    """\
apiVersion: batch/v1
kind: Job
metadata:
  name: fetch-{number}
spec:
  backoffLimit: 3
  template:
    spec:
      restartPolicy: OnFailure
      serviceAccountName: chat-{number}
      tolerations:
        - key: nvidia.com/gpu
          operator: Exists
          effect: NoSchedule
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  - key: cloud.google.com/gke-nodepool
                    operator: In
                    values:
                      - cpu
      containers:
        - name: fetch
          image: python:3.12-slim
          command:
            - bash
            - -c
            - |
              set -euo pipefail
              pip install --quiet datasets
              python /scripts/fetch.py --output /data/{number}
          env:
            - name: HF_TOKEN
              valueFrom:
                secretKeyRef:
                  name: hf
                  key: token
          resources:
            requests:
              cpu: "2"
              memory: 8Gi
          volumeMounts:
            - name: data
              mountPath: /data
      volumes:
        - name: data
          persistentVolumeClaim:
            claimName: weights-{number}
""",
    """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: dashboard-{number}
data:
  prometheus.yaml: |
    global:
      scrape_interval: 15s
    scrape_configs:
      - job_name: chat-{number}
        metrics_path: /metrics
        static_configs:
          - targets:
              - chat-{number}:80
  dashboard.json: |
    {{
      "title": "Chat {number}",
      "panels": [
        {{"type": "graph", "title": "Requests", "targets": [{{"expr": "rate(requests_total[5m])"}}]}},
        {{"type": "graph", "title": "Latency", "targets": [{{"expr": "histogram_quantile(0.95, latency)"}}]}},
        {{
          "type": "heatmap",
          "title": "Tokens per request",
          "gridPos": {{"x": 0, "y": 8, "w": 12, "h": 8}},
          "options": {{"calculate": true, "yAxis": {{"unit": "short"}}}},
          "targets": [
            {{"expr": "sum(increase(request_prompt_tokens_bucket[1m])) by (le)", "format": "heatmap"}},
            {{"expr": "sum(increase(request_generation_tokens_bucket[1m])) by (le)", "format": "heatmap"}}
          ]
        }},
        {{"type": "stat", "title": "GPUs", "targets": [{{"expr": "count(DCGM_FI_DEV_GPU_UTIL)"}}]}}
      ]
    }}
""",
    """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: front-{number}
  labels:
    app.kubernetes.io/name: front-{number}
    app.kubernetes.io/part-of: chat
spec:
  replicas: 2
  selector:
    matchLabels:
      app.kubernetes.io/name: front-{number}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        app.kubernetes.io/name: front-{number}
        app.kubernetes.io/part-of: chat
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "8080"
    spec:
      serviceAccountName: chat-{number}
      securityContext:
        runAsNonRoot: true
      containers:
        - name: gradio
          image: us-docker.pkg.dev/google-samples/containers/gke/gradio-app:v1.0.4
          env:
            - name: CONTEXT_PATH
              value: /v1/chat/completions
            - name: HOST
              value: http://chat-{number}
            - name: LLM_ENGINE
              value: openai-chat
          ports:
            - name: http
              containerPort: 7860
          resources:
            requests:
              cpu: 250m
              memory: 512Mi
            limits:
              cpu: 500m
              memory: 512Mi
          livenessProbe:
            httpGet:
              path: /
              port: http
            periodSeconds: 30
          readinessProbe:
            httpGet:
              path: /
              port: http
            initialDelaySeconds: 5
---
apiVersion: v1
kind: Service
metadata:
  name: front-{number}
spec:
  type: ClusterIP
  selector:
    app.kubernetes.io/name: front-{number}
  ports:
    - port: 8080
      targetPort: http
      protocol: TCP
""",
)
CONFIG = """\
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
 "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 128256,
 "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "tie_word_embeddings": false}
"""
MODELS = (
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-32B",
    "meta-llama/Llama-3.1-8B-Instruct",
    "mistralai/Mistral-7B-Instruct-v0.3",
    "google/gemma-3-27b-it",
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct",
    "Qwen/Qwen3-0.6B",
    "openai/gpt-oss-20b",
    "meta-llama/Llama-3.2-1B-Instruct",
    "Qwen/Qwen3-30B-A3B",
    "deepseek-ai/DeepSeek-R1",
)

BUDGET = {"--version": 4.0, "one manifest": 12.0, "one manifest with a config.json": 20.0, "a repository": 0.1}
"""Ratios at most; what is not listed is measured and not limited."""
MODEL_SERVERS_PER_FILE = 92 / 446


def environment(folder: Path) -> dict[str, str]:
    """Bytecode is kept, as in any installed package, whatever this shell says; and nothing else is found by chance."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HF_"))}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "HF_HOME": str(folder / "no-models")}


def cpu_seconds(command: Sequence[str], folder: Path) -> float:
    """User and system time of a child and its children."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def least(commands: Sequence[Sequence[str]], folder: Path, rounds: int) -> list[float]:
    """The commands in turn, so that what slows the machine for a while slows each of them."""
    for command in commands:
        cpu_seconds(command, folder)  # fills caches and compiles bytecode
    times = [[cpu_seconds(command, folder) for command in commands] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def write_files(folder: Path, count: int) -> None:
    """Two folders of `count` files, one manifest alone, and a config.json for a model that no catalogue has."""
    for name, share in (("servers", 1.0), ("repository", MODEL_SERVERS_PER_FILE)):
        (folder / name).mkdir()
        for number in range(count):
            (folder / name / f"{number:04}.yaml").write_text(file_of_repository(number, share))
    (folder / "one.yaml").write_text(model_server(0, MODELS[0], 4))
    (folder / "own.yaml").write_text(model_server(0, "own/model", 4))
    (folder / "models" / "own" / "model").mkdir(parents=True)
    (folder / "models" / "own" / "model" / "config.json").write_text(CONFIG)


def file_of_repository(number: int, share: float) -> str:
    """A model server in the given share of the files, and in turn what else there is."""
    servers = int(number * share)
    licence = LICENCE.format(number=2024)
    if int((number + 1) * share) > servers:
        size = (1, 2, 4, 8)[servers // len(MODELS) % 4]
        return licence + model_server(number, MODELS[servers % len(MODELS)], size)
    return licence + OTHERS[(number - servers) % len(OTHERS)].format(number=number)


def model_server(number: int, model: str, tensor_parallel_size: int) -> str:
    """A Deployment, in every other file with its Service."""
    text = MANIFEST.format(number=number, model=model, tensor_parallel_size=tensor_parallel_size)
    return text if number % 2 else f"{text}---\n{SERVICE.format(number=number)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--files", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, options.files)
        rows = measure(folder, options.rounds)
    over = [label for label, ours, theirs, _ in rows if ours / theirs > BUDGET.get(label, ours / theirs)]
    for label, ours, theirs, yardstick in rows:
        limit = f"at most {BUDGET[label]:g}" if label in BUDGET else "no limit"
        print(
            f"{label:34} {ours * 1000:8.1f} ms CPU = {ours / theirs:6.3f} x {yardstick} "
            f"({limit}{', OVER' if label in over else ''})"
        )
    return int(bool(over))


def measure(folder: Path, rounds: int) -> list[tuple[str, float, float, str]]:
    """Rows of label, our seconds, the yardstick's seconds, the yardstick."""
    bare, version, one, own = least(
        (
            BARE,
            (SHARDLINT, "--version"),
            (SHARDLINT, "one.yaml"),
            (SHARDLINT, "--models", "models", "own.yaml"),
        ),
        folder,
        rounds,
    )
    linters = [(program, name) for name in ("repository", "servers") for program in (SHARDLINT, YAMLLINT)]
    repository, its_yamllint, servers, their_yamllint = least(linters, folder, max(1, rounds // 3))
    return [
        ("--version", version, bare, f"bare Python ({bare * 1000:.1f} ms)"),
        ("one manifest", one, bare, "bare Python"),
        ("one manifest with a config.json", own, bare, "bare Python"),
        ("a repository", repository, its_yamllint, f"yamllint on the same files ({its_yamllint * 1000:.0f} ms)"),
        ("model servers only", servers, their_yamllint, f"yamllint on the same files ({their_yamllint * 1000:.0f} ms)"),
    ]


if __name__ == "__main__":
    sys.exit(main())
