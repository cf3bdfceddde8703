"""The picture for a terminal of any width, with colours or without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardlint.drawing.scene import Box, Cell, Scene

COLOURS = ("36", "33", "35", "32", "34", "31")
"""Of tensor parallel groups, in turn; the letter in each cell tells them apart without colour."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LEAST_COLUMNS = 40


def lines(scene: Scene, columns: int, colour: bool) -> Iterator[str]:
    """The picture, no line wider than `columns` (at least 40)."""
    columns = max(columns, LEAST_COLUMNS)
    yield from _wrapped(scene.title, columns)
    inner = max((len(line) for box in scene.boxes for cell in box.cells for line in _texts(cell)), default=0)
    for box in scene.boxes:
        yield from _box(box, inner, columns, colour)
    for stage in scene.stages:
        yield from _wrapped(stage, columns)
    for group in scene.groups:
        mark = "! " if group.crosses else "  "
        for line in _wrapped(mark + group.text, columns):
            yield f"\x1b[1;33m{line}\x1b[0m" if colour and group.crosses else line


def letter(group: int) -> str:
    """The letter of a tensor parallel group: A, ..., Z, A1, ..."""
    rounds, index = divmod(group, len(LETTERS))
    return LETTERS[index] + (str(rounds) if rounds else "")


def _box(box: Box, inner: int, columns: int, colour: bool) -> Iterator[str]:
    texts = [_texts(cell) for cell in box.cells]
    in_row = _cells_in_row(len(box.cells), inner, columns)
    width = in_row * (inner + 3) + 1
    yield f"+- {box.title} {'-' * max(0, width - len(box.title) - 5)}+"
    for start in range(0, len(box.cells), in_row):
        cells = box.cells[start : start + in_row]
        part = texts[start : start + in_row]
        if start:
            yield "|" + "+".join("-" * (inner + 2) for _ in range(in_row)) + "|"
        for number in range(max(map(len, part))):
            row = [_painted(text, number, inner, cell, colour) for text, cell in zip(part, cells, strict=True)]
            row += [" " * inner] * (in_row - len(row))
            yield "| " + " | ".join(row) + " |"
    yield f"+{'-' * (width - 2)}+"


def _cells_in_row(cells: int, inner: int, columns: int) -> int:
    """As many as fit, in rows of equal length where that takes no row more."""
    most = max(1, min(cells, (columns - 1) // (inner + 3)))
    rows = -(-cells // most)
    return -(-cells // rows)


def _texts(cell: Cell) -> list[str]:
    if cell.rank is None:
        return ["idle"]
    texts = [f"{letter(cell.tensor_group)} rank {cell.rank}"]
    if cell.place:
        texts.append(cell.place)
    return texts


def _painted(texts: Sequence[str], number: int, inner: int, cell: Cell, colour: bool) -> str:
    text = (texts[number] if number < len(texts) else "").ljust(inner)
    if not colour:
        return text
    style = "2" if cell.rank is None else COLOURS[cell.tensor_group % len(COLOURS)]
    return f"\x1b[{style}m{text}\x1b[0m"


def _wrapped(text: str, columns: int) -> Iterator[str]:
    from textwrap import wrap

    yield from wrap(text, columns, subsequent_indent="    ", break_long_words=True) or [""]
