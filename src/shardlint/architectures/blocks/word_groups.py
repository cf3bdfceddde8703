"""Embeddings of the last few words together, looked up by hashes in one table for each layer that has them (Qwen4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardlint.architectures.blocks.norms import norm
from shardlint.architectures.model import LARGEST_NUMBER, Missing, Model
from shardlint.architectures.rows import Extent, Row, StatePart, StateRow
from shardlint.architectures.schemes import Scheme, eight_bits, nvfp4
from shardlint.architectures.tables import stored_table

NAME = "model.layers.#.ple"
STORED_AS = {
    "float8_e4m3fn": eight_bits("fp8", per_channel=False, experts=False),
    "nvfp4": nvfp4(experts=False, own_input=None),
}
"""What `ple_embedding_dtype` says of the tables, whatever the rest of the checkpoint is stored as."""
WITNESSES = (2, 3, 5, 7)
"""Enough for every number below 3.2 thousand million."""
MOST_HASHES = 1024


def group_embeddings(model: Model, streams: int, layers: Sequence[int]) -> Iterator[Row]:
    """The table of each of the layers, and what mixes it into every residual stream; only the table is cut."""
    hashes, width = _hashes(model), model.odd_number("ple_embed_dim", model.hidden_size)
    if not hashes or width % hashes:
        raise Missing(f"{model.geometry.model_id} has embeddings {width} wide from {hashes} hashes")
    stored = _stored(model)
    for place, layer in enumerate(layers):
        table = Row(
            f"{NAME}.ple_embedding.ngram_embedding",
            (Extent(_words(model, hashes, place), "vocabulary"),),
            Extent(width // hashes),
            layers=(layer,),
            quantisable=stored is None,
            side_table=True,
        )
        yield from stored_table(table, stored)
    wide = streams * model.hidden_size
    keys_and_values = (Extent(wide), Extent(model.hidden_size))
    yield Row(f"{NAME}.kv_proj", keys_and_values, Extent(width), layers=layers, fuses=("key_proj", "value_proj"))
    yield from (norm(f"{NAME}.norm_{of}", wide, layers) for of in ("key", "query", "conv"))
    kernel = Extent(model.odd_number("ple_conv_kernel_size"))
    yield Row(f"{NAME}.conv1d", (Extent(wide),), kernel, layers=layers, quantisable=False)


def group_state(model: Model, streams: int, layers: Sequence[int]) -> StateRow:
    """The inputs of a convolution that looks at every so manieth token; whole on every rank."""
    inputs = Extent(streams * model.hidden_size)
    kernel, distance = model.odd_number("ple_conv_kernel_size"), model.odd_number("ngram_size")
    return StateRow(layers, (StatePart((inputs,), max(kernel - 1, 0) * distance),))


def _hashes(model: Model) -> int:
    """So many for each length of a group."""
    hashes = max(model.odd_number("ngram_size") - 1, 0) * model.odd_number("heads_per_ngram")
    if hashes > MOST_HASHES:
        raise Missing(f"{model.geometry.model_id} has {hashes} hashes of word groups")
    return hashes


def _stored(model: Model) -> Scheme | None:
    stated = model.odd("ple_embedding_dtype")
    if stated is not None and stated not in STORED_AS:
        raise Missing(f"ple_embedding_dtype of {model.geometry.model_id} is {stated!r}, which is not described")
    return STORED_AS.get(stated) if isinstance(stated, str) else None


def _words(model: Model, hashes: int, place: int) -> int:
    """Rows of the table that is number `place`: a prime number for each hash of all tables, rounded up together."""
    base, multiple = (
        model.odd_number("ngram_vocab_size_base"),
        model.odd_number("make_ngram_vocab_size_divisible_by", 1),
    )
    if not multiple or base > LARGEST_NUMBER // 2:
        raise Missing(f"{model.geometry.model_id} has word groups from {base}, in steps of {multiple}")
    primes = _primes_from(base)
    for _ in range(place * hashes):
        next(primes)
    return -(-sum(next(primes) for _ in range(hashes)) // multiple) * multiple


def _primes_from(least: int) -> Iterator[int]:
    number = max(least, 2)
    while True:
        if _is_prime(number):
            yield number
        number += 1


def _is_prime(number: int) -> bool:
    """Miller and Rabin's test."""
    if number in WITNESSES or any(number % witness == 0 for witness in WITNESSES):
        return number in WITNESSES
    odd, halvings = number - 1, 0
    while odd % 2 == 0:
        odd, halvings = odd // 2, halvings + 1
    return all(
        pow(witness, odd, number) == 1
        or any(pow(witness, odd << halving, number) == number - 1 for halving in range(halvings))
        for witness in WITNESSES
    )
