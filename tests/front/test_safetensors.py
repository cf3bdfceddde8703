"""Which files make a checkpoint, and what their headers add up to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback_hub import safetensors as header

from shardlint.front.safetensors import Size, header_bytes, sizes_in, summary, weight_files

INDEX = "model.safetensors.index.json"
PARTS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["model.safetensors", "config.json"], ["model.safetensors"]),
        ([*reversed(PARTS), INDEX], PARTS),
        ([*PARTS, "consolidated.safetensors"], PARTS),
        (["consolidated.safetensors"], ["consolidated.safetensors"]),
        (["model.safetensors", *PARTS], ["model.safetensors"]),
        (["model.safetensors", *PARTS, INDEX], PARTS),
        (["model.safetensors", "model.fp16.safetensors"], ["model.safetensors"]),
        (["weights-00001-of-00001.safetensors"], ["weights-00001-of-00001.safetensors"]),
        (["a.safetensors", "b.safetensors"], []),
        (PARTS[:1], []),
        ([*PARTS, "model-00003-of-00003.safetensors"], PARTS),
        (["unet/model.safetensors", "../model.safetensors", "x y.safetensors", ".safetensors/"], []),
        (["model-00001-of-99999.safetensors"], []),
        ([], []),
    ],
)
def test_the_files_of_a_checkpoint(names: list[str], wanted: list[str]) -> None:
    assert weight_files(names) == wanted


DTYPES = st.sampled_from(["BF16", "F8_E4M3", "U8", "F32"])
TENSORS = st.dictionaries(
    st.text(max_size=5), st.tuples(DTYPES, st.lists(st.integers(0, 99), max_size=3), st.integers(0, 999))
)


@given(TENSORS, st.integers(0, 20))
def test_a_header_gives_back_what_went_into_it(tensors: dict[str, tuple[str, list[int], int]], padding: int) -> None:
    text = header(tensors, padding)
    assert header_bytes(text) == len(text)
    sizes = sizes_in(text)
    assert sum(size.bytes for size in sizes.values()) == sum(size for _, _, size in tensors.values())
    assert set(sizes) == {dtype for dtype, _, _ in tensors.values()}


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(data: bytes) -> None:
    try:
        sizes_in(data[: header_bytes(data)])
    except ValueError:
        return


def test_metadata_is_no_tensor() -> None:
    text = b'{"__metadata__": {"format": "pt"}}'
    assert sizes_in(len(text).to_bytes(8, "little") + text) == {}


def test_the_summary_adds_up_by_file_and_dtype() -> None:
    files = {"b": {"U8": Size(3, 3), "BF16": Size(4, 2)}, "a": {"BF16": Size(20, 10)}}
    assert summary(files) == {
        "total_bytes": 27,
        "total_elements": 15,
        "dtypes": {"BF16": {"bytes": 24, "elements": 12}, "U8": {"bytes": 3, "elements": 3}},
        "files": {"a": 20, "b": 7},
    }
