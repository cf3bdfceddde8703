"""What one GPU can show of `shardlint smoke`, with NCCL and without: four runs, held against what is to come of them.

    python scripts/try_one_gpu.py [FOLDER]

It needs torch, what shardlint depends on, and the GPU. Printed is a line for each run; FOLDER (one-gpu) keeps the JSON
of each, and what it wrote to standard error. Exit codes: 0 all as expected, 1 something else, 2 there is no GPU. What
has not ended after 75 s is ended, so that all of it takes less than 6 minutes.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

LOOK_SECONDS = 45.0
DEADLINE_SECONDS = 35.0
"""Of a run: for torch to be imported, and once more for its ranks."""
MOST_SECONDS = 75.0
"""Of a part, whatever keeps its runs from ending themselves."""
HERE = Path(__file__).resolve().parents[1]

MODEL = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
EXPERTS = MODEL | {
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}

LOOK = """
import json, torch
there = torch.cuda.is_available()
name, total = (torch.cuda.get_device_name(0), torch.cuda.mem_get_info(0)[1]) if there else ("", 0)
print(json.dumps([torch.__version__, name, total]))
"""

Report = dict[str, Any]
"""The JSON of a run."""


class NoGpu(Exception):
    """Why nothing can be tried."""


class Gpu(NamedTuple):
    torch: str
    name: str
    bytes: int


class Part(NamedTuple):
    """One run, by one command or by one for each of its nodes, all at once."""

    name: str
    commands: Sequence[Sequence[str]]
    fails: bool
    """It is to fail."""
    wrong: Callable[[Sequence[Report]], str]
    """What is not as expected of the reports; empty where all is."""


def main(words: Sequence[str]) -> int:
    folder = Path(words[0] if words else "one-gpu")
    try:
        gpu = look()
    except NoGpu as reason:
        print(f"nothing was tried: {reason}")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{gpu.name}, {gpu.bytes / 2**30:.1f} GiB, torch {gpu.torch}; reports in {folder}")
    (folder / "models.json").write_text(json.dumps({"org/dense": MODEL, "org/experts": EXPERTS}))
    right = [try_out(part, folder) for part in parts(gpu, folder)]
    return 0 if all(right) else 1


def look() -> Gpu:
    """The first GPU, as a process of its own sees it. Raises NoGpu."""
    command = [sys.executable, "-W", "ignore", "-c", LOOK]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LOOK_SECONDS)
    except subprocess.TimeoutExpired as slow:
        raise NoGpu(f"torch has not told of a GPU after {LOOK_SECONDS:g} s") from slow
    if run.returncode:
        said = run.stderr.strip().splitlines() or ["it says nothing"]
        raise NoGpu(f"torch does not run here: {said[-1]}")
    gpu = Gpu(*json.loads(run.stdout.splitlines()[-1]))
    if not gpu.bytes:
        raise NoGpu(f"torch {gpu.torch} sees no GPU here")
    return gpu


def parts(gpu: Gpu, folder: Path) -> tuple[Part, ...]:
    """The four runs."""

    def smoke(name: str, serve: str, *options: str) -> list[str]:
        manifest = folder / f"{name}.sh"
        manifest.write_text(f"vllm serve {serve} --dtype bfloat16\n")
        models = str(folder / "models.json")
        limit = f"{DEADLINE_SECONDS:g}"
        return ["smoke", str(manifest), "--models", models, "--format", "json", "--deadline", limit, *options]

    take = ("--allocate", "--hardware", f"1x{gpu.name}")
    node = ("--nodes", "2", "--master", f"127.0.0.1:{_free_port()}", "--node-rank")
    replicas = "org/experts -tp 2 -pp 2 -dp 2 --enable-expert-parallel"
    beyond = f"org/dense --kv-cache-memory-bytes {2 * gpu.bytes}"
    return (
        Part("one-rank", [smoke("one-rank", "org/dense", *take)], False, wrong_alone),
        Part("shared-by-gloo", [smoke("shared-by-gloo", replicas, "--share-gpu")], False, wrong_shared),
        Part("shared-by-nccl", [smoke("two-ranks", "org/dense -tp 2", *node, rank) for rank in "01"], True, wrong_pair),
        Part("beyond-memory", [smoke("beyond-memory", beyond, *take)], True, wrong_memory),
    )


def try_out(part: Part, folder: Path) -> bool:
    """Run a part, keep and judge what it says, print a line. Whether it was as expected."""
    until = time.monotonic() + MOST_SECONDS
    names = [part.name] if len(part.commands) == 1 else [f"{part.name}-{node}" for node in range(len(part.commands))]
    started = [_start(words, folder / name) for words, name in zip(part.commands, names, strict=True)]
    reports = [_report(run, until) for run in started]
    told = [report for report in reports if not isinstance(report, str)]
    wrong = next((report for report in reports if isinstance(report, str)), "") or part.wrong(told)
    if wrong:
        print(f"{part.name}: NOT as expected: {wrong}")
    elif part.fails:
        print(f"{part.name}: failed as expected: {told[0]['first_cause']}")
    else:
        print(f"{part.name}: held: {told[0]['headline']}")
    return not wrong


class _Run(NamedTuple):
    process: subprocess.Popen[bytes]
    kept: Path
    """Its JSON; beside it, what it wrote to standard error."""


def _start(words: Sequence[str], kept: Path) -> _Run:
    path = os.pathsep.join(filter(None, (str(HERE / "src"), os.environ.get("PYTHONPATH"))))
    json_file = kept.with_suffix(".json")
    with json_file.open("wb") as out, kept.with_suffix(".stderr").open("wb") as err:
        command = [sys.executable, "-W", "ignore", "-m", "shardlint", *words]
        process = subprocess.Popen(
            command, stdout=out, stderr=err, env={**os.environ, "PYTHONPATH": path}, start_new_session=True
        )
    return _Run(process, json_file)


def _report(run: _Run, until: float) -> Report | str:
    """What a run wrote, or why that is nothing."""
    try:
        run.process.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(run.process.pid, signal.SIGKILL)  # its ranks end when it does
        run.process.wait()
        return f"had not ended after {MOST_SECONDS:g} s"
    try:
        report: Report = json.loads(run.kept.read_text())
    except ValueError:
        said = run.kept.with_suffix(".stderr").read_text(errors="replace").strip().splitlines() or ["nothing"]
        return f"exit code {run.process.returncode} and no JSON: {said[-1]}"
    return report


def wrong_alone(reports: Sequence[Report]) -> str:
    """A rank alone over NCCL: everything holds, the planned memory and the replayed graph too."""
    return _not_held(reports[0], "nccl", "memory", "graph-replay", "all-layers", "ranks")


def wrong_shared(reports: Sequence[Report]) -> str:
    """Eight ranks on one card: every claim of the layout holds, and NCCL is not among what is proven."""
    tensor = ("split-mlp", "attention", "embedding", "output-head")
    found = _not_held(reports[0], "gloo-cuda", *tensor, "experts", "experts-all-to-all", "stage-hand-off", "replicas")
    return found or ("" if "NCCL" in reports[0]["not_proven"] else "NCCL is not among what is not proven")


def wrong_pair(reports: Sequence[Report]) -> str:
    """Two ranks of NCCL on one card: told before NCCL is asked, and NCCL's own refusal is quoted."""
    for report in reports:
        if (code := report["exit_code"]) != 1:
            return f"exit code {code}: {report['headline']}"
        if not any(seen["name"] == "same-gpu" for seen in report["observations"]):
            return "no observation same-gpu"
        if not any("Duplicate GPU detected" in claim["message"] for claim in report["claims"]):
            return f"NCCL's refusal is not quoted: {report['first_cause']}"
    return ""


def wrong_memory(reports: Sequence[Report]) -> str:
    """Twice the memory that the card has: that claim alone fails, with what is free."""
    report = reports[0]
    if (report["exit_code"], report["failed"]) != (1, ["memory"]):
        return f"exit code {report['exit_code']}, failed {report['failed']}: {report['headline']}"
    message = next(claim["message"] for claim in report["claims"] if claim["name"] == "memory")
    return "" if "GiB are free" in message else f"what is free is not said: {message}"


def _not_held(report: Report, backend: str, *claims: str) -> str:
    if report["exit_code"]:
        return f"exit code {report['exit_code']}: {report['first_cause'] or report['headline']}"
    if (used := report["environment"]["backend"]) != backend:
        return f"it ran with {used}, not with {backend}"
    missing = [claim for claim in claims if claim not in report["proven"]]
    return f"not proven: {', '.join(missing)}" if missing else ""


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
