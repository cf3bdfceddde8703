#!/bin/sh
# Three parts for four stages.
export VLLM_PP_LAYER_PARTITION=12,12,12
vllm serve Qwen/Qwen3-8B --pipeline-parallel-size 4
