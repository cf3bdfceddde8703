#!/usr/bin/env bash
# 32 query heads do not divide by 6 either; the number stands in a variable.
set -euo pipefail

MODEL=meta-llama/Llama-3.1-8B-Instruct
TP=6

docker run --rm --ipc=host --gpus 6 -p 8000:8000 \
  vllm/vllm-openai:v0.33.0 \
  --model "$MODEL" \
  -tp "$TP"
