"""What shardlint costs, as ratios of CPU time on this machine: see BUDGET.

    python benchmarks/run.py [--rounds N] [--files N]

Each command runs in a child process; its user and system time is read from the kernel, so a busy machine changes
little. Every number is a median, and every ratio is taken in one run against bare Python (`python -c pass`) or
against yamllint on the same files. Exits with 1 where a ratio is over its budget. Needs tests/requirements.txt.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

SCRIPTS = Path(sysconfig.get_path("scripts"))
SHARDLINT = str(SCRIPTS / "shardlint")
BARE = (sys.executable, "-c", "pass")

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
          volumeMounts:
            - name: shm
              mountPath: /dev/shm
      volumes:
        - name: shm
          emptyDir:
            medium: Memory
            sizeLimit: 16Gi
---
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
CONFIG = """\
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
 "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 128256,
 "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "tie_word_embeddings": false}
"""
MODELS = ("Qwen/Qwen3-8B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-8B-Instruct", "mistralai/Mistral-7B-Instruct-v0.3")

BUDGET = {"--version": 4.0, "one manifest": 12.0, "one manifest with a config.json": 20.0, "a folder": 0.1}


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


def medians(commands: Sequence[Sequence[str]], folder: Path, rounds: int) -> list[float]:
    """The commands in turn, so that what slows the machine for a while slows each of them."""
    for command in commands:
        cpu_seconds(command, folder)  # fills caches and compiles bytecode
    times = [[cpu_seconds(command, folder) for command in commands] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def write_files(folder: Path, count: int) -> None:
    """`count` manifests, the first of them also alone, and a config.json for a model that no catalogue has."""
    (folder / "many").mkdir()
    for number in range(count):
        model, size = MODELS[number % len(MODELS)], (1, 2, 4, 8)[number // len(MODELS) % 4]
        text = MANIFEST.format(number=number, model=model, tensor_parallel_size=size)
        (folder / "many" / f"{number:04}.yaml").write_text(text)
    (folder / "one.yaml").write_text(MANIFEST.format(number=0, model=MODELS[0], tensor_parallel_size=4))
    (folder / "own.yaml").write_text(MANIFEST.format(number=0, model="own/model", tensor_parallel_size=4))
    (folder / "models" / "own" / "model").mkdir(parents=True)
    (folder / "models" / "own" / "model" / "config.json").write_text(CONFIG)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--files", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, options.files)
        rows = measure(folder, options.rounds)
    for label, ours, theirs, yardstick in rows:
        limit = f"at most {BUDGET[label]:g}" + (", OVER" if ours / theirs > BUDGET[label] else "")
        print(f"{label:34} {ours * 1000:8.1f} ms CPU = {ours / theirs:6.3f} x {yardstick} ({limit})")
    return int(any(ours / theirs > BUDGET[label] for label, ours, theirs, _yardstick in rows))


def measure(folder: Path, rounds: int) -> list[tuple[str, float, float, str]]:
    """Rows of label, our seconds, the yardstick's seconds, the yardstick."""
    bare, version, one, own = medians(
        (
            BARE,
            (SHARDLINT, "--version"),
            (SHARDLINT, "one.yaml"),
            (SHARDLINT, "--models", "models", "own.yaml"),
        ),
        folder,
        rounds,
    )
    many, yamllint = medians(((SHARDLINT, "many"), (str(SCRIPTS / "yamllint"), "many")), folder, max(1, rounds // 4))
    return [
        ("--version", version, bare, f"bare Python ({bare * 1000:.1f} ms)"),
        ("one manifest", one, bare, "bare Python"),
        ("one manifest with a config.json", own, bare, "bare Python"),
        ("a folder", many, yamllint, f"yamllint on the same files ({yamllint * 1000:.0f} ms)"),
    ]


if __name__ == "__main__":
    sys.exit(main())
