#!/usr/bin/env bash
# 32 query heads divide by 4.
set -euo pipefail

MODEL=meta-llama/Llama-3.1-8B-Instruct
TP=4

docker run --rm --ipc=host --gpus 4 -p 8000:8000 \
  vllm/vllm-openai:v0.33.0 \
  --model "$MODEL" \
  -tp "$TP"
