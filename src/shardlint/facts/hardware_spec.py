"""What the user says of the hardware: `8xH100`, `2x8xH100:80`, `1xRTX 3090:24+1xRTX 3070:8`.

SPEC = group{,group}      group = [NODESx]card{+card}      card = COUNTxNAME[:GB]
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shardlint.facts import accelerators
from shardlint.facts.hardware import Accelerator, Hardware, Node

_CARD = re.compile(
    r"(?P<count>\d+)\s*x\s*(?P<name>[^:]*[^:\s])\s*(?::\s*(?P<gb>\d+(?:\.\d+)?)\s*(?:GB)?)?", re.IGNORECASE
)
_NODES = re.compile(r"(\d+)\s*x\s*(?=\d+\s*x)", re.IGNORECASE)
_FORM = re.compile(r"[\s_-]+(sxm\d?|pcie)$", re.IGNORECASE)
_SIZED = re.compile(r"(?P<name>.+?)[\s_-]+(?P<gb>\d+(?:\.\d+)?)\s*GB", re.IGNORECASE)
_MOST_GPUS = 100_000  # beyond any cluster; a typing mistake must not fill the memory
_SHAPE = "COUNTxNAME[:GB], for example 8xH100:80 or 2x8xH100:80"


class _SpecError(ValueError):
    """The text for the user; it does not leave this module."""


class _UnknownCardError(_SpecError):
    """A card that no table has, without its memory."""


def parse(spec: str, more: Sequence[Accelerator] = ()) -> Hardware | str:
    """The hardware that a spec describes, or one sentence that says what is wrong with it.

    `more` are cards beside those of the table.
    """
    try:
        nodes = tuple(node for group in spec.split(",") for node in _nodes(group.strip(), more))
        _check_size(sum(node.gpus for node in nodes), spec)
    except _SpecError as error:
        return str(error)
    return Hardware(nodes, spec)


def equal_nodes(name: str, count: int, nodes: int, more: Sequence[Accelerator] = ()) -> Hardware | str:
    """The hardware of nodes with equal cards, or one sentence that says what is wrong with it.

    The name of a card that is not in the table ends with its memory: B900-24GB.
    """
    text = f"{name}:{count}"
    try:
        _check_size(nodes * _positive(str(count), text), f"{text} on {nodes} nodes")
        return Hardware((Node(((count, _sized(name, more)),)),) * nodes, f"{nodes}x{count}x{name}")
    except _UnknownCardError:
        return f"{name!r} is no card that is known here; give its memory too, as in {name}-24GB:{count}"
    except _SpecError as error:
        return str(error)


def _sized(name: str, more: Sequence[Accelerator]) -> Accelerator:
    """The card of a name that may end with its memory."""
    sized = _SIZED.fullmatch(name)
    try:
        return accelerator(name, None, more)
    except _UnknownCardError:
        if sized is None or not float(sized["gb"]):
            raise
        return accelerator(sized["name"], float(sized["gb"]), more)


def _nodes(group: str, more: Sequence[Accelerator]) -> tuple[Node, ...]:
    if not group:
        raise _SpecError(f"an empty group; a group is {_SHAPE}")
    nodes = _NODES.match(group)
    count = _positive(nodes[1], group) if nodes else 1
    cards = tuple(_card(card.strip(), more) for card in group[nodes.end() if nodes else 0 :].split("+"))
    _check_size(count * sum(number for number, _ in cards), group)
    return (Node(cards),) * count


def _card(text: str, more: Sequence[Accelerator]) -> tuple[int, Accelerator]:
    match = _CARD.fullmatch(text)
    if not match:
        raise _SpecError(f"{text!r} is not a card; write {_SHAPE}")
    gigabytes = float(match["gb"]) if match["gb"] else None
    if gigabytes == 0:
        raise _SpecError(f"{text!r} has no memory")
    return _positive(match["count"], text), accelerator(match["name"], gigabytes, more)


def accelerator(name: str, gigabytes: float | None, more: Sequence[Accelerator] = ()) -> Accelerator:
    """The card of that name and size; ValueError with the sentence for the user where there is none."""
    form = _FORM.search(name)
    variants = accelerators.find(name[: form.start()], more) if form else ()
    if form and variants:
        cards = accelerators.of_form(variants, form[1].lower().rstrip("0123456789")) or _none_such(name, variants)
    else:
        cards = accelerators.find(name, more)
    if not cards:
        return _unknown(name, gigabytes)
    if gigabytes is not None:
        cards = accelerators.of_memory(cards, gigabytes) or _none_such(f"{name}:{gigabytes:g}", cards)
    return cards[0] if len(cards) == 1 else _chosen(name, gigabytes, cards)


def _chosen(name: str, gigabytes: float | None, cards: tuple[Accelerator, ...]) -> Accelerator:
    for spelling in (f"{name}-{gigabytes:g}GB" if gigabytes else "", name):
        card = accelerators.likely(spelling) if spelling else None
        if card in cards:
            return card
    return accelerators.agreed(cards, name)


def _unknown(name: str, gigabytes: float | None) -> Accelerator:
    if gigabytes is None:
        raise _UnknownCardError(f"{name!r} is no card that is known here; give its memory too, as in {name}:24")
    return Accelerator(
        id=name.lower(),
        name=name,
        vendor="",
        memory_bytes=round(gigabytes * 1e9),
        link=None,
        link_gb_per_second=None,
        compute_capability=None,
        memory_gb=gigabytes,
        source="given",
    )


def _none_such(asked: str, cards: tuple[Accelerator, ...]) -> tuple[Accelerator, ...]:
    known = ", ".join(f"{card.name} ({card.memory_gb:g} GB)" for card in cards)
    raise _SpecError(f"there is no {asked}; known are {known}")


def _positive(digits: str, text: str) -> int:
    if len(digits) > 9 or int(digits) < 1:
        raise _SpecError(f"{text!r} counts {digits}; a count is 1 or more, and at most {_MOST_GPUS}")
    return int(digits)


def _check_size(gpus: int, text: str) -> None:
    if gpus > _MOST_GPUS:
        raise _SpecError(f"{text!r} makes {gpus} GPUs; at most {_MOST_GPUS} are taken")
