"""How long loading takes: more for more bytes, and for a download, with the margin around it."""

from __future__ import annotations

from shardlint.layout.loading import START_SECONDS, loading_seconds


def test_nothing_to_load_is_the_start_alone() -> None:
    assert loading_seconds(0, downloads=True) == START_SECONDS


def test_a_download_comes_before_the_reading() -> None:
    read, fetched = loading_seconds(30e9, downloads=False), loading_seconds(30e9, downloads=True)
    assert read.likely == START_SECONDS.likely + 30
    assert fetched.likely == read.likely + 100
    assert read.low < read.likely < read.high < fetched.high
