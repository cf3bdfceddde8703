"""Layers that keep a state of fixed size for a sequence instead of its keys and values."""

from __future__ import annotations

from collections.abc import Sequence

from shardlint.architectures.blocks.norms import norm
from shardlint.architectures.rows import ElementType, Extent, Row, StateElement, StatePart, StateRow
from shardlint.findings.records import NamedTuple


class DeltaHeads(NamedTuple):
    """The heads of a gated delta net."""

    keys: int
    key_width: int
    values: int
    value_width: int
    kernel: int

    @property
    def extents(self) -> tuple[Extent, Extent, Extent]:
        """Queries, keys and values."""
        keys = Extent(self.keys * self.key_width, "column")
        return (keys, keys, Extent(self.values, "state_head", self.value_width))


def gated_delta(
    name: str, hidden_size: int, heads: DeltaHeads, layers: Sequence[int], *, in_one_piece: bool
) -> tuple[Row, ...]:
    """A gated delta net (Qwen3-Next, Qwen3.5). `in_one_piece`: the checkpoint merges its projections already."""
    hidden, gates = Extent(hidden_size), Extent(heads.values, "state_head")
    queries, keys, values = heads.extents
    merged: tuple[Extent, ...] = (queries, keys, values, values)
    if in_one_piece:
        merged = (Extent(sum(out.count * out.unit for out in merged), "column"),)
    return (
        Row(f"{name}.in_proj_qkvz", merged, hidden, layers=layers, fuses=_fused("qkv", "z", in_one_piece)),
        Row(
            f"{name}.in_proj_ba",
            (Extent(2 * heads.values, "column"),) if in_one_piece else (gates, gates),
            hidden,
            layers=layers,
            fuses=_fused("b", "a", in_one_piece),
            whole_if_packed_by=() if in_one_piece else ("awq", "gptq"),
        ),
        _convolution(f"{name}.conv1d", heads.extents, heads.kernel, layers, bias=False),
        _vector(f"{name}.dt_bias", (gates,), layers),
        _vector(f"{name}.A_log", (gates,), layers, element_type="float32"),
        norm(f"{name}.norm", heads.value_width, layers),
        Row(f"{name}.out_proj", (hidden,), Extent(heads.values, "state_head", heads.value_width), layers=layers),
    )


def delta_apart(name: str, hidden_size: int, heads: DeltaHeads, layers: Sequence[int]) -> tuple[Row, ...]:
    """The same with a gate for the output in the first projection, two small ones apart, and all in one type (OLMo)."""
    hidden, gates = Extent(hidden_size), Extent(heads.values, "state_head")
    queries, keys, values = heads.extents
    fuses = ("q_proj", "k_proj", "v_proj", "g_proj")
    return (
        Row(f"{name}.in_proj_qkvg", (queries, keys, values, values), hidden, layers=layers, fuses=fuses),
        *(Row(f"{name}.{gate}_proj", (gates,), hidden, layers=layers) for gate in ("b", "a")),
        _convolution(f"{name}.conv1d", heads.extents, heads.kernel, layers, bias=False),
        *(_vector(f"{name}.{key}", (gates,), layers) for key in ("dt_bias", "A_log")),
        norm(f"{name}.o_norm", heads.value_width, layers),
        Row(f"{name}.o_proj", (hidden,), values, layers=layers),
    )


def _fused(first: str, second: str, in_one_piece: bool) -> tuple[str, ...]:
    return () if in_one_piece else (f"in_proj_{first}", f"in_proj_{second}")


FLASHINFER_CHECKPOINT = 64
"""Tokens between the states that the prefill kernel of gated delta nets can give out."""


def delta_state(heads: DeltaHeads, layers: Sequence[int], element: StateElement) -> StateRow:
    """The last inputs of the convolution, and a matrix of key width x value width for each value head."""
    matrix = Extent(heads.values, "state_head", heads.value_width * heads.key_width)
    parts = (StatePart(heads.extents, heads.kernel - 1), StatePart((matrix,), 1, element))
    return StateRow(layers, parts, FLASHINFER_CHECKPOINT)


class KimiDelta(NamedTuple):
    """The sizes of Kimi's delta attention: `heads` of `width`. `full_gate`: the gate is as wide as the heads."""

    heads: int
    width: int
    kernel: int
    full_gate: bool

    @property
    def inner(self) -> Extent:
        """What the heads take in: queries, keys and values are alike."""
        return Extent(self.heads, "state_head", self.width)


ALIGNED_ROWS = 16
"""Outputs of the merged projection come in such steps on each rank where the gate is a full one."""


def kimi_delta(name: str, hidden_size: int, delta: KimiDelta, layers: Sequence[int]) -> tuple[Row, ...]:
    """Kimi delta attention (Kimi-Linear, Kimi-K3): one projection for all, its low-rank gate whole on every rank."""
    hidden, inner, low = Extent(hidden_size), delta.inner, Extent(delta.width)
    steps = Extent(delta.heads, "state_head", share_pads_to=ALIGNED_ROWS if delta.full_gate else 1)
    merged = (inner, inner, inner, *((inner,) if delta.full_gate else ()), low, steps)
    fuses = ("q_proj", "k_proj", "v_proj", "b_proj", "f_a_proj")
    rows = (
        Row(f"{name}.in_proj_qkvgfab", merged, hidden, layers=layers, fuses=fuses),
        Row(f"{name}.f_b_proj", (inner,), low, layers=layers),
        _vector(f"{name}.dt_bias", (inner,), layers, element_type="float32"),
        _vector(f"{name}.A_log", (Extent(delta.heads, "state_head"),), layers, element_type="float32"),
        _convolution(f"{name}.conv1d", (inner, inner, inner), delta.kernel, layers, bias=False)._replace(
            element_type="float32"
        ),
        norm(f"{name}.o_norm", delta.width, layers),
        Row(f"{name}.o_proj", (hidden,), inner, layers=layers),
    )
    if delta.full_gate:
        return rows
    return (
        *rows,
        Row(f"{name}.g_a_proj", (low,), hidden, layers=layers),
        Row(f"{name}.g_b_proj", (inner,), low, layers=layers),
    )


def delta_with_wide_gates(name: str, hidden_size: int, delta: KimiDelta, layers: Sequence[int]) -> tuple[Row, ...]:
    """The same without any low-rank projection: decay and output gate come straight from the hidden states (Ling 3)."""
    hidden, inner, steps = Extent(hidden_size), delta.inner, Extent(delta.heads, "state_head")
    fuses, kernels = ("q_proj", "k_proj", "v_proj", "b_proj"), (inner, inner, inner)
    convolution = _convolution(f"{name}.conv1d", kernels, delta.kernel, layers, bias=False)
    return (
        Row(f"{name}.qkvb_proj", (inner, inner, inner, steps), hidden, layers=layers, fuses=fuses),
        *(Row(f"{name}.{gate}_proj", (inner,), hidden, layers=layers) for gate in ("f", "g")),
        _vector(f"{name}.dt_bias", (inner,), layers, element_type="float32"),
        _vector(f"{name}.A_log", (steps,), layers, element_type="float32"),
        convolution._replace(element_type="float32"),
        norm(f"{name}.o_norm", delta.width, layers),
        Row(f"{name}.o_proj", (hidden,), inner, layers=layers),
    )


LATENT_PAGE = 128
"""Tokens that a page of latent attention is a multiple of where states share it."""


def kimi_delta_state(delta: KimiDelta, layers: Sequence[int]) -> StateRow:
    """The last inputs of the convolution, and a square matrix for each head, always in 32 bits."""
    matrix, inputs = Extent(delta.heads, "state_head", delta.width**2), (delta.inner,) * 3
    return StateRow(layers, (StatePart(inputs, delta.kernel - 1), StatePart((matrix,), 1, "float32")), LATENT_PAGE)


def decaying_state(heads: Extent, layers: Sequence[int]) -> StateRow:
    """Linear attention that decays at fixed rates: a square matrix for each head, in 32 bits."""
    return StateRow(layers, (StatePart((heads._replace(unit=heads.unit**2),), 1, "float32"),), LATENT_PAGE)


class Mamba2(NamedTuple):
    """The sizes of a Mamba-2 mixer: `heads` of `width`, `groups` that share inputs of `state` elements."""

    heads: int
    width: int
    groups: int
    state: int
    kernel: int

    @property
    def inner(self) -> Extent:
        """What the heads take in."""
        return Extent(self.heads, "state_head", self.width)

    @property
    def group(self) -> Extent:
        """The inputs of the groups: a single one lies on every rank, several are cut and never replicated."""
        return Extent(self.groups, "state_group" if self.groups > 1 else "whole", self.state)


def mamba2(
    name: str,
    hidden_size: int,
    mixer: Mamba2,
    layers: Sequence[int],
    *,
    bias: bool = False,
    conv_bias: bool = True,
    normed: bool = True,
) -> tuple[Row, ...]:
    """A Mamba-2 mixer. `normed`: its gated norm has a weight."""
    hidden, heads, inner, group = Extent(hidden_size), Extent(mixer.heads, "state_head"), mixer.inner, mixer.group
    rows = (
        Row(f"{name}.in_proj", (inner, inner, group, group, heads), hidden, bias, layers),
        _convolution(f"{name}.conv1d", (inner, group, group), mixer.kernel, layers, bias=conv_bias),
        _vector(f"{name}.A", (heads,), layers, element_type="float32"),
        _vector(f"{name}.D", (heads,), layers),
        _vector(f"{name}.dt_bias", (heads,), layers),
        Row(f"{name}.out_proj", (hidden,), inner, bias, layers),
    )
    return (*rows, _vector(f"{name}.norm", (inner,), layers)) if normed else rows


def mamba2_state(mixer: Mamba2, layers: Sequence[int], element: StateElement = "model") -> StateRow:
    """The last inputs of the convolution, and a matrix of head width x state for each head."""
    matrix = Extent(mixer.heads, "state_head", mixer.width * mixer.state)
    inputs = StatePart((mixer.inner, mixer.group, mixer.group), mixer.kernel - 1)
    return StateRow(layers, (inputs, StatePart((matrix,), 1, element)))


class Mamba1(NamedTuple):
    """The sizes of a Mamba mixer: `inner` channels with `state` elements each, and time steps of `rank`."""

    inner: int
    state: int
    rank: int
    kernel: int


def mamba1(
    name: str,
    hidden_size: int,
    mixer: Mamba1,
    layers: Sequence[int],
    *,
    bias: bool = False,
    conv_bias: bool = True,
    normed: bool = True,
) -> tuple[Row, ...]:
    """A Mamba mixer, which no method of quantisation touches. `normed`: time steps and inputs have norms."""
    inner, inputs, hidden = Extent(mixer.inner, "column"), Extent(mixer.inner, "row"), Extent(hidden_size)
    steps = Extent(mixer.rank + 2 * mixer.state)
    rows: tuple[Row, ...] = (
        Row(f"{name}.in_proj", (inner, inner), hidden, bias, layers),
        _convolution(f"{name}.conv1d", (inner,), mixer.kernel, layers, bias=conv_bias),
        Row(f"{name}.x_proj", (steps,), inputs, layers=layers),
        Row(f"{name}.dt_proj", (inner,), Extent(mixer.rank), True, layers),
        Row(f"{name}.A", (inner,), Extent(mixer.state), layers=layers, element_type="float32"),
        _vector(f"{name}.D", (inner,), layers),
        Row(f"{name}.out_proj", (hidden,), inputs, bias, layers),
    )
    if normed:
        widths = {"dt": mixer.rank, "b": mixer.state, "c": mixer.state}
        rows = (*rows, *(norm(f"{name}.{key}_layernorm", width, layers) for key, width in widths.items()))
    return tuple(row._replace(quantisable=False) for row in rows)


def mamba1_state(mixer: Mamba1, layers: Sequence[int]) -> StateRow:
    """The last inputs of the convolution, and `state` elements for each channel."""
    inner = Extent(mixer.inner, "column")
    return StateRow(layers, (StatePart((inner,), mixer.kernel - 1), StatePart((inner,), mixer.state)))


def short_convolution(
    name: str, width: int, kernel: int, layers: Sequence[int], *, bias: bool = False
) -> tuple[Row, ...]:
    """A gated convolution over the last few tokens (LFM2)."""
    channels, hidden = Extent(width, "column"), Extent(width)
    return (
        Row(f"{name}.in_proj", (channels, channels, channels), hidden, bias, layers),
        _convolution(f"{name}.conv", (channels,), kernel, layers, bias=bias),
        Row(f"{name}.out_proj", (hidden,), Extent(width, "row"), bias, layers),
    )


def convolution_state(width: int, kernel: int, layers: Sequence[int]) -> StateRow:
    """The last inputs of such a convolution."""
    return StateRow(layers, (StatePart((Extent(width, "column"),), kernel - 1),))


def _convolution(name: str, outs: tuple[Extent, ...], kernel: int, layers: Sequence[int], *, bias: bool) -> Row:
    return Row(name, outs, Extent(kernel), bias, layers, quantisable=False)


def _vector(name: str, outs: tuple[Extent, ...], layers: Sequence[int], *, element_type: ElementType = "model") -> Row:
    """A row that is no product: a number for each head or channel."""
    return Row(name, outs, layers=layers, element_type=element_type, quantisable=False)
