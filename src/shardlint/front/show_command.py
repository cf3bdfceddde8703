"""`shardlint show`: the layout of one deployment as a picture and in numbers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shardlint.check.facts import DeploymentFacts
from shardlint.drawing.bars import Bar, bar_lines, bars
from shardlint.drawing.figures import Figure, Known, figures
from shardlint.drawing.scene import Scene, in_words, scene
from shardlint.findings import Located, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.findings.words import EACH_ITS_OWN
from shardlint.front.failures import CannotRun
from shardlint.front.options import Options
from shardlint.layout import Layout
from shardlint.layout.memory import Memory
from shardlint.report.plain import plain

SCHEMA = 1
TOKENS = 2048
SEQUENCES = 1


class Shown(NamedTuple):
    """All that is shown of one deployment."""

    scene: Scene
    layout: Layout
    memory: Memory | None
    figures: tuple[Figure, ...]
    remarks: tuple[str, ...]

    @property
    def bars(self) -> tuple[Bar, ...]:
        return tuple(bars(self.memory, len(self.layout.stages))) if self.memory is not None else ()


def shown(facts: DeploymentFacts, options: Options) -> Shown:
    """The picture and the numbers of a deployment. Raises CannotRun where it has no ranks."""
    if not facts.engine.laid_out:
        raise CannotRun(f"layouts of {facts.engine.label} are read and not judged")
    layout = facts.layout
    if isinstance(layout, Unknown):
        raise CannotRun(f"the layout is not known: {_with_settling(layout)}")
    if not layout.ranks:
        raise CannotRun(f"the layout has no ranks: {layout.refused or layout.unknown}")
    memory = facts.memory
    experts = facts.answer("num_experts")
    per_node = facts.gpus_per_node
    drawn = scene(
        _title(facts, layout),
        layout,
        gpus_per_node=per_node.value if isinstance(per_node, Located) else None,
        has_experts=isinstance(experts, Located) and bool(experts.value),
    )
    return Shown(
        drawn,
        layout,
        memory.value if isinstance(memory, Located) else None,
        tuple(_figures(facts, layout, options)),
        tuple(_remarks(facts, layout)),
    )


def _title(facts: DeploymentFacts, layout: Layout) -> str:
    model = facts.deployment.model
    named = model.value if isinstance(model, Located) else "unknown model"
    cards = facts.accelerators
    names = " or ".join(sorted({card.name for card in cards.value})) if isinstance(cards, Located) else ""
    where = f" on {names}" if names else ""
    return plain(f"{facts.deployment.name}: {named}, {in_words(layout, layout.sizes)}{where} ({facts.label})")


def _figures(facts: DeploymentFacts, layout: Layout, options: Options) -> Iterator[Figure]:
    rows, geometry, memory = facts.rows, facts.geometry, facts.memory
    if isinstance(rows, Unknown) or isinstance(geometry, Unknown):
        return
    yield from figures(
        Known(
            layout=layout,
            rows=rows,
            geometry=geometry,
            cutting=facts.engine.cutting(facts.engine_version.value),
            memory=memory.value if isinstance(memory, Located) else None,
            memory_unknown=_with_settling(memory) if isinstance(memory, Unknown) else "",
            tokens=options.tokens or TOKENS,
            sequences=options.requests or SEQUENCES,
        )
    )


def _remarks(facts: DeploymentFacts, layout: Layout) -> Iterator[str]:
    if layout.sizes.data_parallel_size > 1:
        yield EACH_ITS_OWN
    if layout.refused:
        yield f"{facts.label} refuses this layout: {layout.refused}"
    for unknown in (facts.geometry, facts.rows):
        if isinstance(unknown, Unknown):
            yield f"no numbers of the model: {_with_settling(unknown)}"
            return


def _with_settling(unknown: Unknown) -> str:
    return f"{unknown.reason}; to settle it: {unknown.settle_by}" if unknown.settle_by else unknown.reason


# What is printed


def as_text(known: Shown, *, colour: bool, derive: bool, columns: int | None = None) -> Iterator[str]:
    """For a terminal."""
    from shardlint.drawing.terminal import lines

    columns = columns or shutil.get_terminal_size((100, 24)).columns
    yield from lines(known.scene, columns, colour)
    if known.memory is not None:
        yield ""
        yield from bar_lines(known.memory, len(known.layout.stages), columns)
    yield ""
    for figure in known.figures:
        yield f"{figure.name}: {plain(figure.value)}"
        if derive:
            yield f"    = {plain(figure.formula)}"
            yield from (
                f"      {plain(term.symbol)} = {plain(term.value)}  ({plain(term.source)})" for term in figure.terms
            )
    yield from (f"note: {plain(remark)}" for remark in known.remarks)


def as_json(known: Shown) -> str:
    """ASCII, as all of shardlint's JSON."""
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "title": known.scene.title,
        "nodes": [
            {"title": box.title, "gpus": [_cell(cell._asdict()) for cell in box.cells]} for box in known.scene.boxes
        ],
        "stages": list(known.scene.stages),
        "groups": [group._asdict() for group in known.scene.groups],
        "memory": [
            {"title": bar.title, "parts": {part.name: round(part.bytes) for part in bar.parts}} for bar in known.bars
        ],
        "figures": [
            figure._asdict() | {"terms": [term._asdict() for term in figure.terms]} for figure in known.figures
        ],
        "remarks": list(known.remarks),
    }
    return json.dumps(data, indent=2)


def _cell(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if fields["rank"] is not None or name == "rank"}


def write_pictures(known: Shown, options: Options) -> None:
    """The files that --svg and --html name. Raises CannotRun where one cannot be written."""
    from shardlint.drawing.page import page
    from shardlint.drawing.svg import svg

    if options.svg is not None:
        _write(options.svg, svg(known.scene))
    if options.html is not None:
        figures, remarks = map(_plain_figure, known.figures), map(plain, known.remarks)
        _write(options.html, page(known.scene, known.bars, tuple(figures), tuple(remarks)))


def _plain_figure(figure: Figure) -> Figure:
    """A figure whose words, some of which are the manifest's, no reader acts on."""
    terms = tuple(term._replace(value=plain(term.value), source=plain(term.source)) for term in figure.terms)
    return figure._replace(value=plain(figure.value), formula=plain(figure.formula), terms=terms)


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotRun(f"{name}: {error.strerror or error}") from error
