"""Picture, bars and numbers as one HTML file without anything from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from shardlint.drawing.bars import Bar
from shardlint.drawing.figures import Figure
from shardlint.drawing.scene import Scene
from shardlint.drawing.svg import svg

GIB = 2**30
COLOURS = {"weights": "#0b5cad", "activations and buffers": "#7b3fa0", "KV cache": "#1d7a3c", "left free": "#8b949e"}

STYLE = """\
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#6b7178}
@media (prefers-color-scheme:dark){:root{--ink:#e8eaed;--paper:#14181d;--line:#8b949e}}
@media print{:root{--ink:#000;--paper:#fff;--line:#000}}
body{font:15px/1.5 DejaVu Sans,Verdana,sans-serif;color:var(--ink);background:var(--paper);margin:24px;max-width:1900px}
svg{max-width:100%;height:auto}
table{border-collapse:collapse;margin:12px 0}
th,td{border:1px solid var(--line);padding:4px 10px;text-align:left;vertical-align:top}
.bar{display:flex;max-width:900px;height:22px;border:1px solid var(--line)}
.bar span{display:block;height:100%;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.key{display:inline-block;width:12px;height:12px;margin:0 4px 0 12px;print-color-adjust:exact}
details{margin:2px 0}
"""


def page(scene: Scene, bars: Sequence[Bar], figures: Sequence[Figure], remarks: Sequence[str]) -> str:
    """The page; every number opens to the sum that it comes from."""
    return "\n".join(_elements(scene, bars, figures, remarks)) + "\n"


def _elements(scene: Scene, bars: Sequence[Bar], figures: Sequence[Figure], remarks: Sequence[str]) -> Iterator[str]:
    title = escape(scene.title)
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>"
    yield svg(scene)
    if bars:
        yield "<h2>Memory of a GPU</h2>"
        yield from _bars(bars)
    yield "<h2>Numbers</h2><table><tr><th>what</th><th>value</th><th>how</th></tr>"
    for figure in figures:
        terms = "".join(
            f"<br>{escape(term.symbol)} = {escape(term.value)} <small>({escape(term.source)})</small>"
            for term in figure.terms
        )
        how = (
            f"<details><summary>{escape(figure.formula)}</summary>{terms}</details>"
            if terms
            else escape(figure.formula)
        )
        yield f"<tr><td>{escape(figure.name)}</td><td>{escape(figure.value)}</td><td>{how}</td></tr>"
    yield "</table>"
    for remark in remarks:
        yield f"<p>{escape(remark)}</p>"
    yield "</body></html>"


def _bars(bars: Sequence[Bar]) -> Iterator[str]:
    keys = "".join(f'<span class="key" style="background:{colour}"></span>{name}' for name, colour in COLOURS.items())
    yield f"<p>{keys}</p>"
    largest = max(bar.bytes for bar in bars)
    for bar in bars:
        said = ", ".join(f"{part.name} {part.bytes / GIB:.1f} GiB" for part in bar.parts)
        parts = "".join(
            f'<span style="width:{part.bytes / largest:.2%};background:{COLOURS[part.name]}"></span>'
            for part in bar.parts
        )
        yield f'<p>{escape(bar.title)}: {said}</p><div class="bar" role="img" aria-label="{said}">{parts}</div>'
