"""Ask an installed vLLM again for every verdict of tests/conformance/verdicts.jsonl.

Usage: python scripts/record_verdicts.py > verdicts.jsonl, with an interpreter that has vLLM, on a machine where vLLM
finds the CUDA platform. No server is started and no weights are read: the command goes through vLLM's own parser, its
checks of launch options and `create_engine_config`, with the number of GPUs that the row says, each row in a process of
its own.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from vllm import version
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.cli import serve
from vllm.entrypoints.common.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.platforms import current_platform
from vllm.usage.usage_lib import UsageContext
from vllm.utils.argparse_utils import FlexibleArgumentParser

DATA = Path(__file__).resolve().parent.parent / "tests" / "conformance"

Row = dict[str, Any]


class Configured(Exception):
    """vLLM has come to where it would start its server."""


def configure(args: Any) -> None:
    """What every way of starting begins with, and no more."""
    try:
        engine_args = AsyncEngineArgs.from_cli_args(args)
        engine_args.create_engine_config(UsageContext.OPENAI_API_SERVER, headless=args.headless)
    except Exception as refusal:
        raise Configured("config", str(refusal)) from refusal
    raise Configured("config", "")


async def configure_later(args: Any) -> None:
    configure(args)


def answer(row: Row, folder: str) -> Row:
    """The verdict on one row: accept, or reject with the stage (args or config) and vLLM's own words."""
    os.environ.update(row.get("env") or {})
    type(current_platform).device_count = classmethod(lambda _: row["gpus"])
    serve.run_server = configure_later
    for name in ("run_multi_api_server", "run_headless"):
        setattr(serve, name, configure)
    try:
        args = make_arg_parser(FlexibleArgumentParser()).parse_args([folder, *row["args"]])
        validate_parsed_serve_args(args)
        serve.ServeSubcommand.cmd(args)
    except Configured as reached:
        stage, message = reached.args
    except (Exception, SystemExit) as refusal:
        stage, message = "args", str(refusal) or "usage"
    else:
        stage, message = "", ""
    if not message:
        return {"verdict": "accept"}
    first = message.strip().splitlines()[0]
    return {"verdict": "reject", "stage": stage, "message": first[:160]}


def asked(row: Row, folder: str, answers: Any) -> None:
    answers.put(answer(row, folder))


def main() -> None:
    models = json.loads((DATA / "models.json").read_text(encoding="utf-8"))
    context = multiprocessing.get_context("fork")
    for line in (DATA / "verdicts.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "config.json").write_text(json.dumps(models[row["model"]]), encoding="utf-8")
            answers = context.SimpleQueue()
            process = context.Process(target=asked, args=(row, folder, answers))
            process.start()
            process.join()
        given = {key: row[key] for key in ("model", "args", "gpus", "env") if key in row}
        found = {"verdict": "error"} if answers.empty() else answers.get()
        sys.stdout.write(json.dumps({"vllm": version.__version__, **given, **found}) + "\n")


if __name__ == "__main__":
    main()
