"""An executor or model runner that cannot do what other options ask of it."""

from __future__ import annotations

from collections.abc import Iterator

from shardlint.deployment import Told
from shardlint.engines.engine import Engine
from shardlint.engines.versions import Version
from shardlint.findings import Located, Problem, Rule, Undecided
from shardlint.rules._conditions import Condition, judged
from shardlint.rules._launching import microbatches

WITH_STAGES = ("ray", "mp", "external_launcher")
"""Executors that hand on from one pipeline stage to the next."""

OFF = ("0", "false", "False", "no", "off")


def _runner_asked(told: Told) -> bool | None:
    """Whether VLLM_USE_V2_MODEL_RUNNER asks for the newer runner; None where it is not set."""
    asked = told.variable("VLLM_USE_V2_MODEL_RUNNER")
    return None if not asked else asked not in OFF


def _stages_outside(told: Told) -> bool:
    return bool(told.distributed_executor_backend == "external_launcher" and told.pipeline_parallel_size > 1)


def _is_older_runner(told: Told) -> bool:
    """The older model runner: asked for, or because the newer one lacks a feature that is asked for."""
    asked = _runner_asked(told)
    if asked is not None:
        return not asked
    return _stages_outside(told) or microbatches(told) > 1


CONDITIONS = (
    Condition(
        ("distributed_executor_backend", "pipeline_parallel_size"),
        lambda t: (
            t.distributed_executor_backend is not None
            and t.distributed_executor_backend not in WITH_STAGES
            and t.pipeline_parallel_size > 1
        ),
        lambda t: (
            f"the executor {t.distributed_executor_backend} has no pipeline stages, and there are "
            f"{t.pipeline_parallel_size}"
        ),
        sum=lambda t: f"PP {t.pipeline_parallel_size} > 1",
        help=lambda t: ("--distributed-executor-backend mp", "--pipeline-parallel-size 1"),
        since="0.11.1",
    ),
    Condition(
        ("ray_workers_use_nsight", "distributed_executor_backend"),
        lambda t: bool(t.ray_workers_use_nsight) and t.distributed_executor_backend not in (None, "ray"),
        lambda t: f"--ray-workers-use-nsight is for Ray, and the executor is {t.distributed_executor_backend}",
        help=lambda t: ("--distributed-executor-backend ray",),
    ),
    Condition(
        ("prefill_context_parallel_size",),
        lambda t: (t.prefill_context_parallel_size or 1) > 1 and _is_older_runner(t),
        lambda t: (
            f"prefill context parallelism ({t.prefill_context_parallel_size} ranks) is only in the model runner V2, "
            "and VLLM_USE_V2_MODEL_RUNNER or microbatching leads to V1"
        ),
        help=lambda t: ("--prefill-context-parallel-size 1",),
        since="0.29.0",
    ),
    Condition(
        ("async_scheduling", "pipeline_parallel_size"),
        lambda t: bool(t.async_scheduling) and t.pipeline_parallel_size > 1 and _is_older_runner(t),
        lambda t: (
            f"the model runner V1 has no asynchronous scheduling over {t.pipeline_parallel_size} pipeline stages, and "
            "--async-scheduling asks for it"
        ),
        help=lambda t: ("--no-async-scheduling", "--pipeline-parallel-size 1"),
        since="0.31.0",
    ),
    Condition(
        ("async_scheduling", "pipeline_parallel_size"),
        lambda t: bool(t.async_scheduling) and t.pipeline_parallel_size > 1,
        lambda t: (
            f"there is no asynchronous scheduling over {t.pipeline_parallel_size} pipeline stages, and "
            "--async-scheduling asks for it"
        ),
        help=lambda t: ("leave --async-scheduling out", "--pipeline-parallel-size 1"),
        since="0.10.0",
        until="0.14.1",
    ),
    Condition(
        ("pipeline_parallel_size", "distributed_executor_backend"),
        lambda t: _runner_asked(t) is True and _stages_outside(t),
        lambda t: (
            f"the model runner V2 has no {t.pipeline_parallel_size} pipeline stages with external_launcher, and "
            "VLLM_USE_V2_MODEL_RUNNER asks for it"
        ),
        help=lambda t: ("leave VLLM_USE_V2_MODEL_RUNNER out", "--pipeline-parallel-size 1"),
        since="0.24.0",
    ),
    Condition(
        ("enable_batch_sharded_sampling",),
        lambda t: bool(t.enable_batch_sharded_sampling) and t.tensor_parallel_size <= 1,
        lambda t: f"--enable-batch-sharded-sampling needs several ranks, and TP is {t.tensor_parallel_size}",
        help=lambda t: ("leave --enable-batch-sharded-sampling out",),
        since="0.33.0",
    ),
    Condition(
        ("enable_batch_sharded_sampling", "max_num_seqs", "tensor_parallel_size"),
        lambda t: (
            bool(t.enable_batch_sharded_sampling)
            and t.tensor_parallel_size > 1
            and t.max_num_seqs is not None
            and t.max_num_seqs < t.tensor_parallel_size
        ),
        lambda t: (
            f"--enable-batch-sharded-sampling gives every rank whole sequences, and --max-num-seqs {t.max_num_seqs} is "
            f"less than TP {t.tensor_parallel_size}"
        ),
        sum=lambda t: f"{t.max_num_seqs} < TP {t.tensor_parallel_size}",
        help=lambda t: (f"--max-num-seqs {t.tensor_parallel_size}",),
        since="0.33.0",
    ),
    Condition(
        ("enable_batch_sharded_sampling",),
        lambda t: bool(t.enable_batch_sharded_sampling) and _is_older_runner(t),
        lambda t: "--enable-batch-sharded-sampling is only in the model runner V2",
        help=lambda t: ("leave VLLM_USE_V2_MODEL_RUNNER out",),
        since="0.33.0",
    ),
    Condition(
        ("enable_batch_sharded_sampling", "max_logprobs"),
        lambda t: bool(t.enable_batch_sharded_sampling) and t.max_logprobs is not None and t.max_logprobs < 0,
        lambda t: f"--enable-batch-sharded-sampling needs a bound of log probabilities, and it is {t.max_logprobs}",
        help=lambda t: ("--max-logprobs 20",),
        since="0.33.0",
    ),
    Condition(
        ("numa_bind_nodes", "numa_bind_cpus"),
        lambda t: not t.numa_bind and (t.numa_bind_nodes is not None or t.numa_bind_cpus is not None),
        lambda t: "--numa-bind-nodes and --numa-bind-cpus are only looked at with --numa-bind",
        help=lambda t: ("--numa-bind",),
        since="0.33.0",
    ),
)


def judge(told: Told, engine: Engine, engine_version: Located[Version]) -> Iterator[Problem | Undecided]:
    return judged(CONDITIONS, told, engine, engine_version)


RULE = Rule("SL805", "executor-options", "executor-backend", "error", "refuses-at-start", judge)
