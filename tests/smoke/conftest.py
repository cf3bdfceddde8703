"""Runs of real processes leave neither a process nor a file behind: checked after every test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from smoke_processes import processes_of


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder below which runs keep their files; empty, and nobody's, when the test is over."""
    folder = tmp_path / "room"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert processes_of(folder) == []
    assert list(folder.iterdir()) == []
