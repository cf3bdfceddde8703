"""What `inspect` tells of the memory of a deployment: ranges where it is estimated, the reason where it is not known."""

from importlib.resources import files
from json import loads
from typing import Any

import jsonschema
import pytest

from shardlint.check import Settings
from shardlint.check.capacity import capacity_of
from shardlint.check.facts import DeploymentFacts
from shardlint.check.reading import read_file
from shardlint.facts import hardware_spec
from shardlint.findings import Report, Unknown
from shardlint.report.inspection import inspect_text
from shardlint.text import Source

GIB = 2**30
PER_TOKEN = 36 * 2 * 8 * 128 * 2
"""Of Qwen3-8B."""


class Nothing:
    def model(self, model_id: str) -> Unknown:
        return Unknown("no models here")

    def sibling(self, path: str) -> Unknown:
        return Unknown("no files here")

    def names_in(self, folder: str) -> tuple[str, ...]:
        return ()


def facts_of(command: str, hardware: str | None = "1xH100-SXM5-80GB") -> DeploymentFacts:
    cards = hardware_spec.parse(hardware) if hardware else None
    assert not isinstance(cards, str), cards
    settings = Settings(hardware=cards)
    (deployment,) = read_file(Source("serve.sh", command), Nothing(), settings).deployments
    return DeploymentFacts(deployment, Nothing(), settings)


def capacity(command: str, hardware: str | None = "1xH100-SXM5-80GB") -> Any:
    found = capacity_of(facts_of(command, hardware))
    schema = loads(files("shardlint.report").joinpath("schemas/inspect-1.json").read_text())
    if found is not None:
        where = {"$defs": schema["$defs"], **schema["$defs"]["deployment"]["properties"]["memory"]}
        jsonschema.validate(found, where)
    return found


def test_an_estimate_is_a_range_of_bytes_tokens_and_requests() -> None:
    found = capacity("vllm serve Qwen/Qwen3-8B --max-model-len 8192")
    assert (found["certainty"], found["max_model_len"], found["reason"]) == ("estimate", 8192, None)
    for bytes_, tokens, requests in zip(
        *(found[name].values() for name in ("kv_cache_bytes", "kv_cache_tokens", "concurrent_requests")), strict=True
    ):
        assert tokens == pytest.approx(bytes_ / PER_TOKEN, abs=1)
        assert requests == tokens // 8192
    low, likely, high = found["kv_cache_tokens"].values()
    assert low < likely < high


def test_a_stated_cache_is_exact() -> None:
    found = capacity("vllm serve Qwen/Qwen3-8B --max-model-len 8192 --kv-cache-memory-bytes 9G")
    assert found["certainty"] == "exact"
    assert set(found["kv_cache_bytes"].values()) == {9 * GIB}
    assert set(found["concurrent_requests"].values()) == {8.0}


def test_tokens_are_those_of_one_replica_and_shares_of_heads_leave_room_for_more() -> None:
    one, copies, shared = (
        capacity(f"vllm serve Qwen/Qwen3-8B --kv-cache-memory-bytes 9G {sizes}", "4xH100-SXM5-80GB")
        for sizes in ("", "-dp 4", "-tp 4")
    )
    assert one["kv_cache_tokens"] == copies["kv_cache_tokens"]
    assert shared["kv_cache_tokens"]["likely"] == 4 * one["kv_cache_tokens"]["likely"]


def test_copies_have_caches_of_their_own_and_only_whole_requests_count() -> None:
    command = "vllm serve Qwen/Qwen3-8B -dp 4 --max-model-len 7000 --kv-cache-memory-bytes 9G"
    found = capacity(command, "4xH100-SXM5-80GB")
    assert set(found["concurrent_requests"].values()) == {65536 // 7000}
    assert found["data_parallel_replicas"] == 4
    assert told(command, "4xH100-SXM5-80GB")[1:] == [
        "65,536 tokens in each replica, 262,144 in all 4",
        "9 requests of 7000 tokens at once in each replica, 36 in all 4",
        "each data parallel replica has a cache of its own, and a request runs in one of them",
    ]


def test_with_a_length_that_follows_the_memory_the_tokens_are_the_longest_request() -> None:
    found = capacity("vllm serve Qwen/Qwen3-8B --max-model-len auto --kv-cache-memory-bytes 9G")
    assert set(found["kv_cache_tokens"].values()) == {65536}
    assert (found["max_model_len"], found["concurrent_requests"]) == (None, None)


@pytest.mark.parametrize(
    ("command", "hardware", "reason"),
    [
        ("vllm serve Qwen/Qwen3-8B", None, "does not name the GPU"),
        ("vllm serve own/unknown", "1xH100-SXM5-80GB", "own/unknown"),
        ("vllm serve Qwen/Qwen3-8B -tp 3", "4xH100-SXM5-80GB", "the engine refuses this layout"),
        ("vllm serve Qwen/Qwen3-8B --kv-cache-memory-bytes $BYTES", "1xH100-SXM5-80GB", "BYTES"),
    ],
)
def test_what_is_not_known_is_said_with_the_reason(command: str, hardware: str | None, reason: str) -> None:
    found = capacity(command, hardware)
    assert reason in found["reason"]
    assert found["kv_cache_tokens"] is found["certainty"] is None


def test_engines_that_were_not_measured_have_no_memory() -> None:
    assert capacity("python -m sglang.launch_server --model-path Qwen/Qwen3-8B") is None


def told(command: str, hardware: str | None = "1xH100-SXM5-80GB") -> list[str]:
    facts = facts_of(command, hardware)
    lines = inspect_text(Report(deployments=(facts.deployment,)), [{}], [capacity_of(facts)], False)
    return [line.removeprefix("  KV cache: ") for line in lines if line.startswith("  KV cache")]


def test_a_person_reads_one_number_where_it_is_exact_and_a_range_where_not() -> None:
    exact = told("vllm serve Qwen/Qwen3-8B --max-model-len 8192 --kv-cache-memory-bytes 9G")
    assert exact[1:] == ["65,536 tokens in each replica", "8 requests of 8192 tokens at once in each replica"]
    assert exact[0].startswith("9 GiB of each ") and exact[0].endswith(", exact")
    (size, *_) = told("vllm serve Qwen/Qwen3-8B --max-model-len 8192")
    assert " to " in size and size.endswith(", estimate")
    assert told("vllm serve Qwen/Qwen3-8B", None)[0].startswith("unknown: the manifest does not name the GPU")
