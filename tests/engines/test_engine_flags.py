"""Flags read as vLLM's parser reads them: spellings, values, places, and what is refused."""

from __future__ import annotations

import pytest
from engine_commands import deployment, located, messages, read, under
from hypothesis import given
from hypothesis import strategies as st

from shardlint import engines
from shardlint.engines.flags import read as read_flags
from shardlint.findings import Located, Span, Unknown


@pytest.mark.parametrize(
    ("command", "knob", "value", "at", "spelled"),
    [
        ("m --tensor-parallel-size 8", "tensor_parallel_size", 8, "8", "--tensor-parallel-size 8"),
        ("m --tensor-parallel-size=8", "tensor_parallel_size", 8, "8", "--tensor-parallel-size=8"),
        ("m --tensor_parallel_size 8", "tensor_parallel_size", 8, "8", "--tensor_parallel_size 8"),
        ("m --tensor-parallel_size=8", "tensor_parallel_size", 8, "8", "--tensor-parallel_size=8"),
        ("m --tensor-parallel 8", "tensor_parallel_size", 8, "8", "--tensor-parallel 8"),
        ("m -tp 8", "tensor_parallel_size", 8, "8", "-tp 8"),
        ("m -tp=16", "tensor_parallel_size", 16, "16", "-tp=16"),
        ("-tp 2 m -tp 4", "tensor_parallel_size", 4, "4", "-tp 4"),
        ("m -pp 2", "pipeline_parallel_size", 2, "2", "-pp 2"),
        ("m -dp 4", "data_parallel_size", 4, "4", "-dp 4"),
        ("m -dpl 2", "data_parallel_size_local", 2, "2", "-dpl 2"),
        ("m -dpn 1", "data_parallel_rank", 1, "1", "-dpn 1"),
        ("m -dpr 1", "data_parallel_start_rank", 1, "1", "-dpr 1"),
        ("m -dcp 2", "decode_context_parallel_size", 2, "2", "-dcp 2"),
        ("m -pcp 2", "prefill_context_parallel_size", 2, "2", "-pcp 2"),
        ("m -n 2", "nnodes", 2, "2", "-n 2"),
        ("m -n2", "nnodes", 2, "2", "-n2"),
        ("m --nnode 2", "nnodes", 2, "2", "--nnode 2"),
        ("m -r 1", "node_rank", 1, "1", "-r 1"),
        ("m -ep", "enable_expert_parallel", True, "-ep", "-ep"),
        ("m --enable-expert-parallel", "enable_expert_parallel", True, "--enable-expert-parallel", "--enable-expert-parallel"),
        ("m --no-enable-expert-parallel", "enable_expert_parallel", False, "--no-enable-expert-parallel", "--no-enable-expert-parallel"),
        ("m --disable-expert-parallel", "enable_expert_parallel", False, "--disable-expert-parallel", "--disable-expert-parallel"),
        ("m --headless", "headless", True, "--headless", "--headless"),
        ("m -q fp8", "quantization", "fp8", "fp8", "-q fp8"),
        ("m -qfp8", "quantization", "fp8", "fp8", "-qfp8"),
        ("m --gpu-memory-util .9", "gpu_memory_utilization", 0.9, ".9", "--gpu-memory-util .9"),
        ("m --device-memory-utilization 1", "gpu_memory_utilization", 1.0, "1", "--device-memory-utilization 1"),
        ("m --max-model-len 131072", "max_model_len", 131072, "131072", "--max-model-len 131072"),
        ("m --max-model-len 32k", "max_model_len", 32000, "32k", "--max-model-len 32k"),
        ("m --max-model-len 32K", "max_model_len", 32768, "32K", "--max-model-len 32K"),
        ("m --max-model-len 25.6k", "max_model_len", 25600, "25.6k", "--max-model-len 25.6k"),
        ("m --max-model-len -1", "max_model_len", None, "-1", "--max-model-len -1"),
        ("m --max-model-len=auto", "max_model_len", None, "auto", "--max-model-len=auto"),
        ("m --max-num-batched-tokens 8K", "max_num_batched_tokens", 8192, "8K", "--max-num-batched-tokens 8K"),
        ("m --distributed-executor-backend ray", "distributed_executor_backend", "ray", "ray", "--distributed-executor-backend ray"),
    ],
)  # fmt: skip
def test_a_spelling_sets_its_knob_at_its_value(command: str, knob: str, value: object, at: str, spelled: str) -> None:
    found = deployment(f"vllm serve {command}")
    knob_value = found.knobs[knob]
    assert isinstance(knob_value, Located)
    assert (knob_value.value, knob_value.spelled) == (value, spelled)
    assert type(knob_value.value) is type(value)
    assert under(f"vllm serve {command}", knob_value.span) == at
    assert isinstance(found.model, Located) and found.model.value == "m"
    assert not found.flag_problems


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("m --dp 4", "ambiguous option: --dp could match"),
        ("m --data-parallel 4", "ambiguous option: --data-parallel could match"),
        ("m --tp 4", "unrecognized arguments: --tp 4"),
        ("m --tensor-paralel-size 2", "unrecognized arguments: --tensor-paralel-size 2"),
        ("m --swap-space 4", "unrecognized arguments: --swap-space 4"),
        ("m -tp4", "unrecognized arguments: -tp4"),
        ("m --mem-fraction-static=0.9", "unrecognized arguments: --mem-fraction-static=0.9"),
        ("m --enable-expert-parallel true", "unrecognized arguments: true"),
        ("m --headless=true", "ignored explicit argument 'true'"),
        ("m other", "unrecognized arguments: other"),
        ("m --tensor-parallel-size", "argument --tensor-parallel-size/-tp: expected one argument"),
        ("m --tensor-parallel-size --port 80", "argument --tensor-parallel-size/-tp: expected one argument"),
        ("m -tp 8x", "argument --tensor-parallel-size/-tp: invalid int value: '8x'"),
        ("m -tp 8.0", "argument --tensor-parallel-size/-tp: invalid int value: '8.0'"),
        ("m -tp=", "argument --tensor-parallel-size/-tp: invalid int value: ''"),
        ("m --gpu-memory-utilization 90%", "invalid float value: '90%'"),
        ("m --dtype fp8", "argument --dtype: invalid choice: 'fp8'"),
        ("m --max-model-len 1.5K", "invalid human_readable_int_or_auto value: '1.5K'"),
        ("m --speculative-config 3", "'3' is no JSON object"),
        ("m --speculative-config {", "'{' is no JSON"),
        ("m --gpu-memory-utilization nan", "invalid float value: 'nan'"),
        ("m --gpu-memory-utilization 1e999", "invalid float value: '1e999'"),
        ("m --speculative-config " + '{"a":' * 500 + "1" + "}" * 500, "is no JSON"),
        ("m --speculative-config" + ".a" * 5000 + " 1", "unrecognized arguments: --speculative-config.a.a"),
        ('m --speculative-config {"a":NaN}', "is no JSON"),
        ("m -tp " + "9" * 10000, "invalid int value: '99999999999999999999'..."),
        ("m --served-model-name", "argument --served-model-name: expected at least one argument"),
        ("m --scheduling-policy lifo", "invalid choice: 'lifo' (choose from 'fcfs', 'priority')"),
        ('m -cc {"level":3}', "argument --compilation-config/-cc: level: unexpected key"),
        ('m -cc {"pass_config":{"fuse":true}}', "pass_config.fuse: unexpected key"),
        ('m --kv-transfer-config {"kv_role":"both"}', "kv_role: 'both' is none of 'kv_producer', 'kv_both', 'kv_cons"),
    ],
)
def test_what_the_engine_refuses_is_a_flag_problem(command: str, message: str) -> None:
    (said,) = messages(read(command))
    assert message in said


@pytest.mark.parametrize(
    "command",
    [
        "m --served-model-name a b --port 80",
        "m --compilation-config.pass_config.fuse_allreduce_rms true -cc.mode 3",
        "m -O3",
        "m -O 3",
        "m --disable-log-requests",
        "m --hf-token",
        "m --hf-token secret",
        "m --kv-cache-memory 80g",
        "m --hf-overrides {}",
        "-- m",
    ],
)
def test_what_the_engine_takes_is_no_flag_problem(command: str) -> None:
    assert messages(read(command)) == []


@pytest.mark.parametrize(
    ("version", "command", "accepted"),
    [
        ("0.6.6.post1", "m --swap-space 4", True),
        ("0.17.1", "m --swap-space 4", True),
        ("0.17.2", "m --swap-space 4", True),  # no release: between 0.17.1, which has it, and 0.18.0, which has not
        ("0.18.0", "m --swap-space 4", False),
        ("0.8.2", "m --speculative-model draft", True),
        ("0.8.3", "m --speculative-model draft", False),
        ("0.9.1", "m --data-parallel-rank 1", False),
        ("0.9.2", "m --data-parallel-rank 1", True),
        ("0.7.3", "m --no-enable-prefix-caching", True),  # older than the --no- form of the others
        ("0.8.4", "m --no-enable-expert-parallel", False),
        ("0.8.5", "m --no-enable-expert-parallel", True),
        ("0.8.5", "m --no-trust-remote-code", False),
        ("0.9.0", "m --no-trust-remote-code", True),
        ("0.8.4", "m --enable-chunked-prefill False", True),
        ("0.8.5", "m --enable-chunked-prefill False", False),
        ("0.8.3", "m --max-model-len 32k", False),
        ("0.8.4", "m --max-model-len 32k", True),
        ("0.10.1.1", "m --kv-cache-dtype bfloat16", False),
        ("0.11.0", "m --kv-cache-dtype bfloat16", True),
        ("0.11.1", "m --max-lora-rank 1", True),
        ("0.11.0", "m --max-lora-rank 1", False),
        ("0.12.0", "m --task generate", True),
        ("0.13.0", "m --task generate", False),
        ("0.13.0", "m -ep", False),
        ("0.14.0", "m -ep", True),
        ("0.7.3", "m --enable-chunked-prefill False", True),
        ("0.33.0", "m --enable-chunked-prefill False", False),
        ("0.32.0", "m --disable-expert-parallel", False),
        ("0.5.5", "m --some-flag-of-old 1", True),  # older than all samples: nothing is known to be missing
        ("0.40.0", "m --some-flag-to-come 1", True),
        ("0.11.2", "m -O3", True),
        ("0.11.2", "m --compilation-config 3", True),
        ("0.12.0", "m --compilation-config 3", False),
        ("0.7.3", "m --max-model-len 32k", False),
        ("0.8.5.post1", "m --max-model-len 32k", True),
        ("0.13.0", "m --max-model-len auto", False),
        ("0.14.0", "m --max-model-len auto", True),
        ("0.9.2", "m --device cuda", True),
        ("0.33.0", "m --device cuda", False),
    ],
)
def test_a_release_takes_its_own_flags(version: str, command: str, accepted: bool) -> None:
    assert (not read(command, version).problems) is accepted


@pytest.mark.parametrize(
    ("command", "near"),
    [
        ("m --tensor-paralel-size 2", ("--tensor-parallel-size",)),
        ("m --tp 2", ("--tensor-parallel-size",)),
        ("m --task embed", ("--runner",)),
        ("m --swap-space 4", ()),
        ("m --num-scheduler-steps 8", ()),
        ('m --speculative-config {"num_speculative_token":3}', ("num_speculative_tokens",)),
        ("m --ray-address x", ()),
    ],
)
def test_what_may_be_meant_is_close_or_does_the_same(command: str, near: tuple[str, ...]) -> None:
    (problem,) = read(command).problems
    assert problem.near == near


def test_keys_are_judged_for_the_release_that_they_are_recorded_of() -> None:
    assert messages(read('m --compilation-config {"level":3}', "0.10.2")) == []


def test_a_flag_of_another_release_still_says_its_value() -> None:
    reading = read("m --num-scheduler-steps 8 --tensor-parallel-size 2", "0.33.0")
    assert messages(reading) == ["unrecognized arguments: --num-scheduler-steps 8"]
    assert isinstance(size := reading.values["--tensor-parallel-size"], Located) and size.value == 2


def test_old_booleans_take_a_word() -> None:
    reading = read("m --enable-chunked-prefill False", "0.7.3")
    assert reading.values["--enable-chunked-prefill"].value is False  # type: ignore[union-attr]


def test_parts_of_a_json_value_are_put_together_and_win() -> None:
    command = 'm --speculative-config.method mtp --speculative-config {"model":"x"} --speculative-config.num_speculative_tokens=3'
    config = read(command).values["--speculative-config"]
    assert isinstance(config, Located)
    assert config.value == {"method": "mtp", "num_speculative_tokens": 3}
    assert under(command, config.span) == "3"


@pytest.mark.parametrize(
    ("command", "flag", "message"),
    [
        ("m -tp 2 --tensor-parallel-size.x 4", "--tensor-parallel-size", "invalid int value: '{\"x\": 4}'"),
        ("m --enable-expert-parallel.x 1", None, 'unrecognized arguments: {"x": 1}'),
    ],
)
def test_parts_of_what_is_no_json_are_refused(command: str, flag: str | None, message: str) -> None:
    reading = read(command)
    (said,) = messages(reading)
    assert message in said
    assert flag is None or isinstance(reading.values[flag], Unknown)


def test_sizes_inside_json_are_read_as_sizes() -> None:
    config = read('m --kv-transfer-config {"kv_connector":"8k","cpu_bytes":80m}').values["--kv-transfer-config"]
    assert isinstance(config, Located) and config.value == {"kv_connector": "8k", "cpu_bytes": 80_000_000}


def test_lists_in_parts_are_joined() -> None:
    config = read("m --compilation-config.ops+ a,b --compilation-config.ops+ c").values["--compilation-config"]
    assert isinstance(config, Located) and config.value == {"ops": ["a", "b", "c"]}


def test_an_unknown_value_is_an_unknown_knob() -> None:
    for command in ("m --tensor-parallel-size=$TP", "m --tensor-parallel-size $TP", 'm -tp "$TP"'):
        reading = read(command)
        assert isinstance(reading.values["--tensor-parallel-size"], Unknown), command
        assert not reading.open_words and not reading.problems


@pytest.mark.parametrize("word", ["$EXTRA_ARGS", '"$@"', "$@", "${ARGS[@]}", "$X"])
def test_a_word_that_may_hold_more_flags_is_open(word: str) -> None:
    reading = read(f"m -tp 2 --enforce-eager {word} --port 80")
    assert [open_word.spelled for open_word in reading.open_words] == [word]
    assert "--port" in reading.values and not reading.problems


@pytest.mark.parametrize("word", ['"$@"', "$*", '"${ARGS[@]}"'])
def test_all_words_of_the_caller_are_no_value(word: str) -> None:
    reading = read(f"m --enforce-eager --tensor-parallel-size {word}")
    assert [open_word.spelled for open_word in reading.open_words] == [word]


def test_an_unknown_value_of_an_unknown_flag_opens_nothing() -> None:
    for command in ("m --ray-address $RAY", 'm --ray-address "$A:$B"', "m --ray-address=$RAY"):
        reading = read(command)
        assert not reading.open_words and len(reading.problems) == 1, command
    assert read("m --ray-switch $EXTRA_ARGS").open_words


def test_the_first_unknown_word_is_the_model() -> None:
    assert isinstance(deployment("vllm serve $MODEL -tp 2").model, Unknown)
    assert isinstance(deployment('vllm serve -tp 2 "$MODEL"').model, Unknown)
    assert isinstance(deployment("vllm serve -tp 2 $MODEL").model, Unknown)
    assert isinstance(deployment("vllm serve -tp 2 $DIR/llama").model, Unknown)
    assert deployment("vllm serve -tp 2 $X").model is None
    assert deployment('vllm serve "$@"').model is None
    assert deployment("vllm serve $VLLM_ARGS").model is None


def test_one_word_with_a_blank_in_it_is_refused_but_read() -> None:
    table = engines.engine("vllm").table
    reading = read_flags(located(["m", "--tensor-parallel-size 8"]), table, table.era(None), takes_positional=True)
    assert messages(reading) == ["unrecognized arguments: --tensor-parallel-size 8"]
    assert reading.values["--tensor-parallel-size"].value == 8  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("written", "word", "at"),
    [
        ('"--pipeline-parallel-size=2"', "--pipeline-parallel-size=2", "2"),
        ('--pipeline-parallel-size="2"', "--pipeline-parallel-size=2", "2"),
        ("--pipeline-parallel-size='2", "--pipeline-parallel-size=2", "2"),
        ("-pp=$P", "-pp=2", "$P"),
        ("--pipeline-parallel-size=$(PP)", "--pipeline-parallel-size=2", "$(PP)"),
        ("$FLAG=2", "-pp=2", "$FLAG=2"),
    ],
)
def test_the_place_is_that_of_the_value_as_written(written: str, word: str, at: str) -> None:
    table = engines.engine("vllm").table
    located_word = Located(word, Span("a.sh", 1, 1, 1, len(written) + 1), written)
    reading = read_flags([located_word], table, table.era(None), takes_positional=True)
    size = reading.values["--pipeline-parallel-size"]
    assert isinstance(size, Located) and size.value == 2
    assert under(written, size.span) == at


def test_many_strange_flags_are_each_refused_once() -> None:
    table = engines.engine("vllm").table
    strange = located([f"--flag-{number}" for number in range(50_000)])
    assert len(read_flags(strange, table, table.era(None), takes_positional=True).problems) == 50_000


@given(st.lists(st.text(min_size=0, max_size=12), max_size=12))
def test_no_words_make_the_reader_fail(texts: list[str]) -> None:
    table = engines.engine("vllm").table
    read_flags(located(texts), table, table.era(None), takes_positional=True)


PIECES = st.sampled_from(
    [
        "--",
        "-",
        "-tp",
        "--tensor-parallel-size",
        "=",
        "8",
        "$X",
        '"$@"',
        "-O",
        ".",
        "--speculative-config",
        "{",
        "--no-",
        " ",
        "-1",
    ]
)


@given(st.lists(st.lists(PIECES, min_size=1, max_size=4).map("".join), max_size=10))
def test_no_mixture_of_flags_makes_the_reader_fail(texts: list[str]) -> None:
    mixed = [Unknown("not set", None, text) if "$" in text else Located(text) for text in texts]
    table = engines.engine("vllm").table
    read_flags(mixed, table, table.era(None), takes_positional=True)


@given(st.integers(min_value=0, max_value=10**6), st.sampled_from([" ", "="]), st.booleans())
def test_every_size_is_read_at_its_place(size: int, separator: str, underscores: bool) -> None:
    flag = "--pipeline_parallel_size" if underscores else "--pipeline-parallel-size"
    command = f"m {flag}{separator}{size} --port 80"
    value = read(command).values["--pipeline-parallel-size"]
    assert isinstance(value, Located) and value.value == size
    assert under(command, value.span) == str(size)


def test_a_flag_that_may_not_be_there_is_unknown_and_leaves_the_others_alone() -> None:
    absent = Unknown("in a branch", None, "--enable-expert-parallel")
    table = engines.engine("vllm").table
    reading = read_flags([absent, *located(["--max-model-len", "8"])], table, table.era(None), takes_positional=True)
    assert reading.values["--enable-expert-parallel"] == absent
    assert reading.values["--max-model-len"].value == 8
    assert not reading.open_words and not reading.positionals


@pytest.mark.parametrize(
    ("words", "of_release"),
    [("--dtype fp8", False), ("--kv-cache-dtype int4_per_token_head", True), ("--kv-cache-dtype fp16", False)],
)
def test_a_choice_that_no_release_takes_does_not_depend_on_the_release(words: str, of_release: bool) -> None:
    (problem,) = read(f"m {words}", "0.12.0").problems
    assert problem.message.startswith(f"argument {words.split()[0]}: invalid choice")
    assert problem.depends_on_release is of_release


@pytest.mark.parametrize("words", ['m --port "$@"', "m --max-num-seqs ${ARGS[@]}", "m --served-model-name $@"])
def test_a_flag_before_words_that_are_not_told_may_have_its_value_among_them(words: str) -> None:
    assert messages(read(words)) == []


def test_a_placeholder_inside_a_value_is_no_bad_value() -> None:
    table = engines.engine("vllm").table
    words = located(["--kv-transfer-config", '{"kv_connector": "X", "lease": ${LEASE}}', "--max-num-seqs", "${SEQS}"])
    read = read_flags(words, table, table.era(None), takes_positional=False)
    assert read.problems == []
    assert [type(value) for value in read.values.values()] == [Unknown, Unknown]
