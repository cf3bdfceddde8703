"""How the elements of a quantised row are stored: the types that every method's formats are made of."""

from __future__ import annotations

from typing import Literal

from shardlint.findings.records import NamedTuple

Spread = Literal["blocks", "projections", "matrix"]
"""What one companion stands for: a block of elements, one of the merged projections, or the whole weight."""

Dimension = Literal["outs", "ins", "width", "hidden"]
"""Outputs, the contraction, or, of an expert, its width and the model's, each the one in some weights, the other in
others."""

When = Literal["always", "cut", "cut_and_not_merged", "merged_or_cut"]


class Companion(NamedTuple):
    """Scales, zero points or what else lies beside a packed weight, `bits` each (None: of the model's type).

    Spread over blocks, there is one for `outs` outputs by `ins` inputs; None stands for all of them.  Those of `words`
    outputs share one stored word, and what does not fill a word is dropped.
    """

    bits: int | None
    spread: Spread = "blocks"
    outs: int | None = 1
    ins: int | None = None
    words: int = 1


class Must(NamedTuple):
    """A rank's share of `dimension` has to be whole blocks of `block` elements.

    `when` it is cut at all, when it is cut and not merged from several projections, when it is cut or merged (the last
    projection is free as long as none is cut), or always.
    """

    dimension: Dimension
    block: int
    when: When = "always"


class Refinement(NamedTuple):
    """What an engine does with experts whose width is not whole blocks.

    `gcd`: the blocks shrink to what divides them, the width and the model's width, as far as the engine's table goes.
    `halving`: they are halved until they divide both, not below `least`; so it is too where the model's width is not
    a multiple of `hidden`.  The weight is then stored as `becomes`.
    """

    how: Literal["gcd", "halving"]
    block: int
    becomes: Scheme
    least: int = 0
    hidden: int = 1


class Scheme(NamedTuple):
    """The storage of one row.

    `words` elements of the contraction share one stored word, and what does not fill a word is dropped.  Where blocks
    do not come out even and nothing forbids it, `rounding` says what becomes of the last one.
    """

    name: str
    """In words, as a message names it: "fp8 in blocks of 128 x 128"."""
    bits: int
    companions: tuple[Companion, ...] = ()
    musts: tuple[Must, ...] = ()
    rounding: Literal["up", "down"] = "up"
    words: int = 1
    bias: Literal["as_built", "always", "never"] = "as_built"
    """Of experts: some methods allocate biases that the model does not have, some none at all."""
    refinement: Refinement | None = None
    padded: bool = False
    """Of experts: padded to what the kernel of the card takes (MXFP4)."""
    balanced: bool = True
    """Of experts: whether the method takes part in expert load balancing."""

    def with_blocks(self, block: int, finer: int) -> Scheme:
        """The same with all blocks of `block` elements replaced by finer ones."""
        companions = tuple(
            companion._replace(
                outs=finer if companion.outs == block else companion.outs,
                ins=finer if companion.ins == block else companion.ins,
            )
            for companion in self.companions
        )
        return self._replace(companions=companions)


def fp8_blocks(outs: int, ins: int, *, experts: bool, lenient: bool = False, scale_bits: int = 32) -> Scheme:
    """FP8 with one scale for each block.

    A `lenient` method lets merged projections be cut anywhere, and makes the blocks of experts finer.
    """
    out_must = Must("outs", outs, "cut_and_not_merged" if lenient else "merged_or_cut")
    scheme = Scheme(
        f"fp8 in blocks of {outs} x {ins}",
        8,
        (Companion(scale_bits, outs=outs, ins=ins),),
        _expert_blocks(outs, ins) if experts else (out_must, Must("ins", ins, "cut")),
    )
    if not (experts and lenient and outs == ins):
        return scheme
    return scheme._replace(refinement=Refinement("gcd", outs, scheme._replace(musts=())))


def _expert_blocks(outs: int, ins: int) -> tuple[Must, ...]:
    whole = Must("width", outs)
    return (whole,) if outs == ins else (whole, Must("width", ins, "cut"))


def eight_bits(name: str, *, per_channel: bool, static_input: bool = False, experts: bool, bias: bool = True) -> Scheme:
    """8 bits with one scale for each projection or each output, and one for the inputs where it is stored."""
    weight = Companion(32) if per_channel else Companion(32, "projections")
    inputs = (Companion(32, "matrix" if experts else "projections"),) if static_input else ()
    return Scheme(name, 8, (weight, *inputs), bias="as_built" if bias else "never")


def nvfp4(*, experts: bool, group: int = 16, own_input: Companion | None) -> Scheme:
    """NVFP4: an 8-bit scale for each 16 inputs, and a scale for each projection; `own_input` is that of the inputs.

    The scales of experts are rounded down silently where their width is not whole groups.
    """
    return Scheme(
        f"NVFP4 in groups of {group}",
        4,
        (Companion(8, ins=group), Companion(32, "projections"), *([own_input] if own_input else [])),
        () if experts else (Must("ins", 16),),
        rounding="down",
        words=2,
        bias="never" if experts else "as_built",
    )


def mx(bits: int, *, experts: bool, must: bool, padded: bool = False) -> Scheme:
    """MXFP4 and MXFP8: an 8-bit exponent for each 32 inputs."""
    return Scheme(
        f"MXFP{bits} in groups of 32",
        bits,
        (Companion(8, ins=32),),
        (Must("ins", 32),) if must else (),
        rounding="down",
        words=8 // bits,
        bias="as_built" if padded or not experts else "never",
        padded=padded,
        balanced=bits == 4,
    )


def grouped_integers(
    bits: int, group: int | None, *, zero_points: bool, musts: tuple[Must, ...] = (), shape: Companion | None = None
) -> Scheme:
    """Integers with one scale (and zero point) for each group of inputs; `group` None: for each output."""
    in_a_word = 32 // bits if 32 % bits == 0 else 1
    zeros = (Companion(bits, ins=group, words=in_a_word),) if zero_points else ()
    where = "in channels" if group is None else f"in groups of {group}"
    return Scheme(
        f"{bits}-bit {where}",
        bits,
        (Companion(None, ins=group), *zeros, *([shape] if shape else [])),
        musts,
        rounding="down",
        words=in_a_word,
    )
