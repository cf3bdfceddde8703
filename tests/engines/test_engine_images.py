from __future__ import annotations

import pytest
from engine_commands import deployment, launch, server

from shardlint import engines
from shardlint.engines.images import split
from shardlint.findings import Located, Unknown

COMMAND = "vllm serve m"


@pytest.mark.parametrize(
    ("reference", "repository", "tag", "digest"),
    [
        ("vllm/vllm-openai", "vllm/vllm-openai", None, None),
        ("vllm/vllm-openai:v0.8.5", "vllm/vllm-openai", "v0.8.5", None),
        ("registry:5000/vllm-openai", "registry:5000/vllm-openai", None, None),
        ("registry:5000/a/vllm-openai:v1", "registry:5000/a/vllm-openai", "v1", None),
        ("vllm/vllm-openai:nightly@sha256:0539", "vllm/vllm-openai", "nightly", "sha256:0539"),
        ("vllm/vllm-openai@sha256:0539", "vllm/vllm-openai", None, "sha256:0539"),
    ],
)
def test_a_reference_is_taken_apart(reference: str, repository: str, tag: str | None, digest: str | None) -> None:
    assert split(reference) == (repository, tag, digest)


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("vllm/vllm-openai:v0.8.5", "0.8.5"),
        ("docker.io/vllm/vllm-openai:v0.9.0.1", "0.9.0.1"),
        ("vllm/vllm-openai:v0.6.6.post1", "0.6.6.post1"),
        ("vllm/vllm-openai:v0.20.1-cu129", "0.20.1"),
        ("ghcr.io/volcano-sh/vllm-openai:v0.10.0-cu128-nixl-v0.4.1-lmcache-0.3.2", "0.10.0"),
        ("registry.example:5000/mirror/vllm-openai-aibrix-kvcache-nixl:v0.10.2-nixl-0.7.1", "0.10.2"),
        ("aibrix/vllm-openai:v0.6.1-edb07092-20250118", "0.6.1"),
        ("intel/vllm:0.10.0-xpu", "0.10.0"),
        ("vllm/vllm-openai:latest", None),
        ("vllm/vllm-openai", None),
        ("vllm/vllm-openai:nightly-4080263bb2c5d10deac17aaeb88e0823bc35bca9", None),
        ("vllm/vllm-openai:gptoss", None),
        ("vllm/vllm-openai@sha256:0539", None),
        ("mirror/vllm-openai:v0.7.3.self.post1", None),
        ("rayproject/ray-llm:2.52.0-py311-cu128", None),
        ("nvcr.io/nvidia/vllm:25.09-py3", None),
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.0", None),
        ("ghcr.io/llm-d/llm-d-cuda:v0.9.0", None),
        ("quay.io/ascend/vllm-ascend:v0.11.0rc1-a3", None),
        ("lmcache/vllm-openai:2025-05-27-v1", None),
        ("docker.io/lmcache/vllm-openai:v0.3.9", None),
        ("quay.io/modh/vllm:rhoai-2.12", None),
    ],
)
def test_only_tags_of_engine_images_are_releases(image: str, release: str | None) -> None:
    found = deployment(COMMAND, image=image).engine_version
    if release is None:
        assert isinstance(found, Unknown) and found.reason and found.settle_by
    else:
        assert isinstance(found, Located) and found.value == release


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("lmsysorg/sglang:v0.4.6.post1-cu124", "0.4.6.post1"),
        ("docker.io/lmsysorg/sglang:v0.5.5.post3-cu129-amd64", "0.5.5.post3"),
        ("aibrix/sglang:v0.4.9.post3-cu126-nixl-v0.4.1", "0.4.9.post3"),
        ("lmsysorg/sglang:dev", None),
    ],
)
def test_sglang_images(image: str, release: str | None) -> None:
    found = deployment("python3 -m sglang.launch_server --model-path m", engine="sglang", image=image).engine_version
    assert (found.value if isinstance(found, Located) else None) == release


def test_the_tag_stays_as_written() -> None:
    tag = deployment(COMMAND, image="host:5000/vllm-openai:v0.10.0-cu128").image_tag
    assert isinstance(tag, Located) and tag.value == "v0.10.0-cu128"
    assert deployment(COMMAND, image="host:5000/vllm-openai").image_tag is None
    assert deployment(COMMAND).engine_version is None


@pytest.mark.parametrize(
    ("install", "release"),
    [
        ("pip install vllm==0.6.6.post1", "0.6.6.post1"),
        ("uv pip install vllm[audio]==0.10.1 --torch-backend=auto", "0.10.1"),
        ("pip install vllm>=0.10", None),
        ("pip install vllm-router==0.1.0", None),
    ],
)
def test_a_pin_beside_the_command_names_the_release(install: str, release: str | None) -> None:
    beside = launch(install, unit="container")
    found = engines.read(server(COMMAND, others=[beside], unit="container")).engine_version
    assert (found.value if isinstance(found, Located) else None) == release


def test_a_pin_wins_over_the_image() -> None:
    found = engines.read(server(COMMAND, others=[launch("pip install vllm==0.11.0")], image="vllm/vllm-openai:v0.8.5"))
    assert isinstance(found.engine_version, Located) and found.engine_version.value == "0.11.0"


def test_a_pin_in_another_container_does_not_count() -> None:
    others = [launch("pip install vllm==0.11.0", unit="init")]
    found = engines.read(server(COMMAND, others=others, unit="main"))
    assert found.engine_version is None
