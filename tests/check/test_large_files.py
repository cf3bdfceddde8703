"""The time that a file takes grows with its length and no faster."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import pytest

from shardlint.check import Settings, read
from shardlint.findings import Unknown
from shardlint.text import Library, Source
from shardlint.text.rendered import Rendered

TIMES = 6
"""A file so many times as long takes TIMES squared as long where each document reads the whole file."""


class NoFiles(Library):
    def sibling(self, path: str) -> Unknown:
        return Unknown(f"no {path}")

    def model(self, model_id: str) -> Unknown:
        return Unknown(f"no {model_id}")


def services(number: int) -> None:
    text = "---\nkind: Service\nmetadata: {name: vllm}\n" + f"# {'x' * 900}\n"
    read([Source("a.yaml", text * number)], NoFiles(), Settings())


def pods(number: int) -> None:
    pod = "---\nkind: Pod\nspec: {containers: [{image: vllm/vllm-openai, args: [--model=m]}]}\n" + f"# {'x' * 900}\n"
    read([Source("a.yaml", pod * number)], NoFiles(), Settings())


def chunks(number: int) -> None:
    text = "---\n# Source: a/b.yaml\nkind: Service\n" * number * 100
    assert list(Rendered("-", text).texts())[1][1] == text


def one_word(number: int) -> None:
    """A file of no form with one long word."""
    read([Source("a.yaml", f"vllm: {'x' * 100 * number}\n")], NoFiles(), Settings())


def pods_beside_a_map(number: int) -> None:
    """Each pod reads a ConfigMap that grows with their number."""
    data = "".join(f"  K{key}: v\n" for key in range(number))
    pod = "---\nkind: Pod\nspec: {containers: [{image: vllm/vllm-openai, envFrom: [{configMapRef: {name: c}}]}]}\n"
    read([Source("a.yaml", f"kind: ConfigMap\nmetadata: {{name: c}}\ndata:\n{data}{pod * 20}")], NoFiles(), Settings())


@pytest.mark.parametrize("work", [services, pods, chunks, one_word, pods_beside_a_map])
def test_many_documents_cost_so_many_times_one(work: Callable[[int], None]) -> None:
    work(10)

    def seconds(number: int) -> float:
        start = process_time()
        work(number)
        return process_time() - start

    short = min(seconds(100) for _ in range(3))
    long = min(seconds(100 * TIMES) for _ in range(2))
    assert long < short * TIMES * 3
