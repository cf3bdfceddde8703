"""`shardlint models list`: which deployment serves which model, and from where its numbers are known."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from shardlint.check.facts import DeploymentFacts
from shardlint.findings import Located, Unknown
from shardlint.findings.records import NamedTuple
from shardlint.front.library import HUB_CACHE
from shardlint.front.model_store import revision_in
from shardlint.front.models import CONFIG
from shardlint.report.plain import plain
from shardlint.text import ModelFiles

if TYPE_CHECKING:
    from shardlint.facts.geometry import Geometry
    from shardlint.front.library import DiskLibrary

SCHEMA = 1


class Use(NamedTuple):
    """A deployment, its model, and where that model's facts come from."""

    deployment: str
    path: str
    line: int
    column: int
    model: str | None
    source: str
    """`--models`, `.shardlint/models`, `local folder`, `Hugging Face cache`, `catalogue`, `catalogue, second-hand`,
    `a plugin`, `assumption` or `unknown`."""
    where: str | None = None
    """The file, or the catalogue's own source."""
    revision: str | None = None
    reason: str | None = None
    """What was assumed, or why nothing is known."""
    settle_by: str | None = None


def uses(all_facts: Iterable[DeploymentFacts], library: DiskLibrary) -> list[Use]:
    """Of each deployment, which model it serves and from where that is known."""
    return [_use(facts, library) for facts in all_facts]


def _use(facts: DeploymentFacts, library: DiskLibrary) -> Use:
    deployment, at, geometry = facts.deployment, facts.deployment.at, facts.geometry
    model = deployment.model.value if isinstance(deployment.model, Located) else None
    use = Use(deployment.name, at.path, at.line, at.column, model, "unknown")
    files = library.model(model) if model else None
    if isinstance(files, ModelFiles) and model:
        place, path = library.place_of(model) or "", files.config.path
        use = use._replace(source=place, where=path, revision=_revision(place, path))
    elif not isinstance(geometry, Unknown):
        return _of_catalogue(use, geometry)
    if isinstance(geometry, Unknown):
        return use._replace(reason=geometry.reason, settle_by=geometry.settle_by or None)
    return use


def _of_catalogue(use: Use, geometry: Geometry) -> Use:
    kind, _, source = geometry.origin.partition(": ")
    if geometry.assumption:
        return use._replace(source="assumption", where=geometry.origin, reason=geometry.assumption)
    return use._replace(source=kind, where=source or None)


def _revision(place: str, config: str) -> str | None:
    folder = os.path.dirname(config)
    if place == HUB_CACHE:
        return os.path.basename(folder)
    return revision_in(folder) if os.path.basename(config) == CONFIG else None


def as_json(listed: Sequence[Use]) -> str:
    """ASCII, as all of shardlint's JSON."""
    models = [use._asdict() for use in listed]
    return json.dumps({"schema": SCHEMA, "models": models}, indent=2)


def as_text(listed: Sequence[Use]) -> str:
    """A paragraph for each deployment."""
    return "\n".join(line for use in listed for line in _lines(use)) or "no deployment"


def _lines(use: Use) -> Iterator[str]:
    yield f"{plain(use.path)}:{use.line}:{use.column}: {plain(use.deployment)}"
    where = f": {plain(use.where)}" if use.where else ""
    at = f" at {use.revision}" if use.revision else ""
    yield f"  {plain(use.model or 'no model that the file tells')}  from {use.source}{where}{at}"
    if use.reason:
        settle = f"; to settle it: {plain(use.settle_by)}" if use.settle_by else ""
        yield f"    {plain(use.reason)}{settle}"
