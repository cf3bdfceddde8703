"""SGLang: its heads, sizes and nodes are judged. Data parallel attention and experts lie inside its tensor ranks."""

from __future__ import annotations

import os

from shardlint.engines.engine import Command, Engine
from shardlint.engines.sglang.cutting import cutting

SERVER = Command("sglang.launch_server", is_module=True)

ENGINES = (
    Engine(
        name="sglang",
        label="SGLang",
        newest="0.5.0",
        judged=True,
        unjudged="of SGLang heads, widths, blocks, sizes, nodes and GPUs are judged; memory and flags are not",
        folder=os.path.dirname(__file__),  # noqa: PTH120 pathlib costs 5 ms
        commands=(
            SERVER,
            Command("sglang", "serve", takes_model=True),
            Command("dynamo.sglang", is_module=True),
            Command("dynamo.sglang.worker", is_module=True),
        ),
        images=r"(?!)",  # the entrypoint of lmsysorg/sglang is a shell
        kin=r"(?<![a-z])sglang",
        release_images=r"(?:^|/)(?:lmsysorg|aibrix|sgl-project)/sglang$|(?:^|/)sglang$",
        marks=frozenset(
            {
                "--mem-fraction-static",
                "--tp-size",
                "--dp-size",
                "--ep-size",
                "--enable-dp-attention",
                "--context-length",
            }
        ),
        packages=("sglang",),
        model_flags=("--model-path",),
        file_flags=("--config",),
        cut=cutting,
    ),
)
