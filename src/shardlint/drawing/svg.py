"""The picture as SVG that stands alone: readable on light and dark pages and on paper, with a text alternative."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from shardlint.drawing.scene import Box, Cell, Scene
from shardlint.drawing.terminal import letter

CELL_WIDTH, CELL_HEIGHT, GAP, MARGIN, TITLE = 104, 58, 8, 16, 24
CELLS_IN_ROW = 8
BOXES_IN_ROW = 2
LINE = 20
CHARACTER_WIDTH = 7.3
"""Of the text under the picture, at most: DejaVu Sans at 13 px."""

FILLS = ("#0b5cad", "#9a5b00", "#7b3fa0", "#1d7a3c", "#a3312f", "#00707a", "#6b5d00", "#5a5f66")
"""Of tensor parallel groups in turn; white text on each has a contrast of 5 to 1 and more."""

STYLE = """\
text{font-family:DejaVu Sans,Verdana,sans-serif;font-size:13px;fill:#1b1f24}
.title{font-size:16px;font-weight:bold}
.cell text{fill:#fff}
.cell .rank{font-weight:bold}
.idle rect{fill:none;stroke:#6b7178;stroke-dasharray:4 3}
.idle text{fill:#4d5359}
.node{fill:#f4f6f8;stroke:#6b7178}
.crosses{font-weight:bold;fill:#8a3b00}
.paper{fill:#fff}
@media (prefers-color-scheme:dark){
text,.title{fill:#e8eaed}.node{fill:#22272e;stroke:#8b949e}.paper{fill:#14181d}
.crosses{fill:#ffb27a}.idle text{fill:#c2c8ce}.idle rect{stroke:#c2c8ce}
}
@media print{
text,.title{fill:#000}.node{fill:#fff;stroke:#000}.paper{fill:#fff}.crosses{fill:#000}.cell text{fill:#fff}
}
"""


def svg(scene: Scene) -> str:
    """The picture; its text alternative names every rank's place."""
    return "\n".join(_elements(scene)) + "\n"


def _elements(scene: Scene) -> Iterator[str]:
    in_row = min(CELLS_IN_ROW, max((len(box.cells) for box in scene.boxes), default=1))
    box_width = in_row * (CELL_WIDTH + GAP) + GAP
    columns = min(BOXES_IN_ROW, len(scene.boxes)) if len(scene.boxes) > 1 else 1
    rows = [scene.boxes[start : start + columns] for start in range(0, len(scene.boxes), columns)]
    texts = [(line, False) for line in scene.stages] + [(group.text, group.crosses) for group in scene.groups]
    width = MARGIN * 2 + columns * box_width + (columns - 1) * GAP
    wrapped = [(part, crosses) for text, crosses in texts for part in _wrapped(text, width - 2 * MARGIN)]
    title = _wrapped(scene.title, (width - 2 * MARGIN) * 0.75)
    height = MARGIN * 2 + LINE * (len(title) + len(wrapped)) + sum(_height(row, in_row) + GAP for row in rows)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    yield ' role="img" aria-labelledby="title description">'
    yield f'<title id="title">{escape(scene.title)}</title>'
    yield f'<desc id="description">{escape(alternative(scene))}</desc>'
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="paper" width="{width}" height="{height}"/>'
    top = MARGIN
    for line in title:
        yield f'<text class="title" x="{MARGIN}" y="{top + 14}">{escape(line)}</text>'
        top += LINE
    for row in rows:
        for number, box in enumerate(row):
            yield from _box(box, MARGIN + number * (box_width + GAP), top, box_width, _height(row, in_row), in_row)
        top += _height(row, in_row) + GAP
    for line, crosses in wrapped:
        style = ' class="crosses"' if crosses else ""
        yield f'<text{style} x="{MARGIN}" y="{top + 14}">{escape(line)}</text>'
        top += LINE
    yield "</svg>"


def _height(row: tuple[Box, ...], in_row: int) -> int:
    lines = max(-(-len(box.cells) // in_row) for box in row)
    return TITLE + lines * (CELL_HEIGHT + GAP) + GAP


def _box(box: Box, left: int, top: int, width: int, height: int, in_row: int) -> Iterator[str]:
    yield f'<rect class="node" x="{left}" y="{top}" width="{width}" height="{height}" rx="6"/>'
    yield f'<text x="{left + GAP}" y="{top + 18}">{escape(box.title)}</text>'
    for number, cell in enumerate(box.cells):
        line, column = divmod(number, in_row)
        x = left + GAP + column * (CELL_WIDTH + GAP)
        y = top + TITLE + line * (CELL_HEIGHT + GAP) + GAP // 2
        yield from _cell(cell, x, y)


def _cell(cell: Cell, x: int, y: int) -> Iterator[str]:
    if cell.rank is None:
        yield f'<g class="idle"><rect x="{x}" y="{y}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" rx="4"/>'
        yield f'<text x="{x + 8}" y="{y + 20}">idle</text></g>'
        return
    fill = FILLS[cell.tensor_group % len(FILLS)]
    yield f'<g class="cell"><rect x="{x}" y="{y}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" rx="4" fill="{fill}"/>'
    texts = [f"rank {cell.rank}", *_places(cell), f"layers {cell.layers}" if cell.layers else ""]
    for number, text in enumerate(text for text in texts if text):
        style = ' class="rank"' if number == 0 else ""
        yield f'<text{style} x="{x + 8}" y="{y + 17 + number * 17}">{escape(text)}</text>'
    yield f'<text x="{x + CELL_WIDTH - 8}" y="{y + 17}" text-anchor="end">{letter(cell.tensor_group)}</text></g>'


def _places(cell: Cell) -> list[str]:
    """The place in one line, short enough for a cell."""
    return [cell.place] if len(cell.place) <= 12 else [cell.place.replace(" ", "")]


def _wrapped(text: str, width: float) -> list[str]:
    from textwrap import wrap

    return wrap(text, max(20, int(width / CHARACTER_WIDTH)), subsequent_indent="  ") or [""]


def alternative(scene: Scene) -> str:
    """The picture in words."""
    parts = []
    for box in scene.boxes:
        ranks = [cell for cell in box.cells if cell.rank is not None]
        idle = len(box.cells) - len(ranks)
        named = ", ".join(f"rank {cell.rank}{f' ({cell.place})' if cell.place else ''}" for cell in ranks)
        parts.append(f"{box.title}: {named}" + (f", {idle} idle" if idle else ""))
    return ". ".join([*parts, *scene.stages, *(group.text for group in scene.groups)]) + "."
