#!/bin/sh
# Four parts for four stages, 36 layers in all.
export VLLM_PP_LAYER_PARTITION=9,9,9,9
vllm serve Qwen/Qwen3-8B --pipeline-parallel-size 4
