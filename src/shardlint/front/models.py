"""A model's files in its folder."""

from __future__ import annotations

import os
import stat

from shardlint.findings import Unknown
from shardlint.front.files import is_inside
from shardlint.text import ModelFiles, Source

CONFIG = "config.json"
SIZES_FILE = "safetensors_sizes.json"
"""Not the repository's: what `shardlint models add` read in the headers of its weights."""
SIDE_FILES = ("hf_quant_config.json", "quantize_config.json", "quant_config.json", "generation_config.json", SIZES_FILE)
"""What is said beside config.json that has a bearing on the layout, the memory or the quantisation."""

MOST_BYTES = 4 * 1024 * 1024  # the largest config.json met (per-layer quantisation lists) has some 600 KiB


def read_text(path: str, most_bytes: int = MOST_BYTES) -> str | Unknown:
    """A regular UTF-8 file of bearable size."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
                return Unknown(f"{path} is no regular file of at most {most_bytes // 1024 // 1024} MiB")
            return file.read(most_bytes).decode("utf-8-sig")
    except OSError as failure:
        return Unknown(f"{path} cannot be read: {failure.strerror}")
    except UnicodeDecodeError:
        return Unknown(f"{path} is no UTF-8 text")


def _without_waiting(path: str, flags: int) -> int:
    """A named pipe that nobody writes to must not hold up the run."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def files_in(model_id: str, folder: str, *, within: str, origin: str) -> ModelFiles | None:
    """The model's files in a folder; none of them may lie outside of `within`, links followed."""
    config = source_in(os.path.join(folder, CONFIG), within)
    if config is None:
        return None
    beside = ((name, source_in(os.path.join(folder, name), within)) for name in SIDE_FILES)
    return ModelFiles(model_id, config, tuple((name, source) for name, source in beside if source), origin)


def source_in(path: str, within: str) -> Source | None:
    """A file that lies, links followed, inside of `within`."""
    if not is_inside(os.path.realpath(path), os.path.realpath(within)):
        return None
    text = read_text(path)
    return Source(path, text) if isinstance(text, str) else None
