"""The options of each command."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from shardlint._version import __version__
from shardlint.findings import SEVERITIES
from shardlint.front.failures import CannotRun
from shardlint.front.options import HOOK_OPTION

FORMATS = ("text", "json")
LEVELS = ("pre", "quick", "full")
LAUNCHES = ("auto", "ray")
SMOKE_JOBS = ("job", "jobset", "lws-init", "rayjob")
EMITTED = ("command", "kubernetes", "lws")
LEVEL = (
    "pre: look at the hosts alone, without ranks and torch; quick (the default): all claims, each exchange timed 5 "
    "times; full: timed 50 times, and all times printed on a CPU too"
)
FORMAT = "text for people (the default), json for programs"

DESCRIPTION = """\
Finds bad GPU layouts in the manifests of LLM servers before they cost a GPU hour.

commands:
  check PATH...     say what is wrong (this is what `shardlint PATH...` does)
  inspect PATH...   show what was read, and what the files do not tell
  show PATH...      draw the layout of one deployment, with its numbers and their sums
  plan MODEL_OR_FILE
                    list the layouts that would serve a model on given GPUs, the best first
  smoke PATH...     run the layout of one deployment by processes, before any weight is loaded
  model ID_OR_DIR   show the numbers of one model, and how it can be split
  models add ID...  keep what a hub says of a model: config.json and the sizes of its weights
  models list PATH  show which deployment serves which model, and from where its numbers are known
  explain RULE      print the page of one rule, by code or name
  rules             list all rules and families

A path is a file, a folder, or - for standard input. A folder that is called like a command is written ./rules.
"""
DESCRIPTIONS = {
    "check": DESCRIPTION,
    "inspect": "Shows every value that was read, with its place, or why it is not known. Judges nothing.",
    "smoke": "Starts one process for each rank of a layout, on this host or on several, with a scaled-down model, and\n"
    "checks that the ranks form the planned groups and together compute what one process does.\n"
    "Needs torch (the extra smoke); uses the GPUs where each rank has one, else the CPU.",
    "model": "Shows the geometry of a model with the place of every number, its parameters and bytes by part,\n"
    "its KV cache, and which tensor and pipeline parallel sizes are legal, with the reason for each that is not.",
    "show": "Draws the layout of one deployment: nodes, GPUs, ranks, groups; and says what each GPU holds and sends.",
    "models": "Keeps what a hub says of models in the project, and shows from where each model's numbers are known.",
    "plan": "Lists every layout of TP, PP, DP, EP and DCP that a model, or the model of a manifest, can have on given\n"
    "GPUs: what works, the best for an objective first, with what it holds; and what does not, with the reason.",
    "explain": "Prints the page of one rule: what happens, why, when it is quiet, and its test cases.",
    "rules": "Lists all rules with their severity, family and effect, and all families.",
}

EXIT_CODES = """\
exit codes: 0 nothing at or above --fail-on; 1 something; 2 the job could not be done
"""

READING_EXIT_CODES = """\
exit codes: 0 done; 2 the job could not be done
"""

SMOKE_EXIT_CODES = """\
exit codes: 0 every claim held; 1 one did not; 2 it could not be tried; 130 interrupted (128 + the signal)
"""


PLAN_EXIT_CODES = """\
exit codes: 0 a layout holds what is asked for, or it was written; 1 none works, or none holds so much; 2 the job could
not be done
"""

MODELS_EXIT_CODES = """\
exit codes: 0 done; 2 one of the models could not be had, or the job could not be done
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CannotRun(f"{message} (see {self.prog} --help)")


def parse_options(command: str, words: list[str]) -> dict[str, Any]:
    """The fields of Options that the words set. Raises CannotRun for what makes no sense."""
    values: dict[str, Any] = vars(_parser(command).parse_args(words))
    for several in ("paths", "ids"):
        values[several] = tuple(values.get(several, ()))
    return values


def _parser(command: str) -> _Parser:
    if command == "models":
        return _models_parser()
    parser = _Parser(
        prog="shardlint" if command == "check" else f"shardlint {command}",
        description=DESCRIPTIONS.get(command),
        epilog={"check": EXIT_CODES, "smoke": SMOKE_EXIT_CODES, "plan": PLAN_EXIT_CODES}.get(
            command, READING_EXIT_CODES
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if command == "explain":
        parser.add_argument("rule", metavar="RULE", help="a rule's code (SL101) or name (query-heads)")
        _add_plugins(parser)
        return parser
    parser.add_argument("--format", choices=FORMATS, default="text", help=FORMAT)
    if command == "rules":
        _add_plugins(parser)
        return parser
    if command == "model":
        parser.add_argument(
            "model", metavar="ID_OR_DIR", help="such as Qwen/Qwen3-8B, or the folder of its config.json"
        )
    elif command == "plan":
        parser.add_argument("model", metavar="MODEL_OR_FILE", help="a model's id or folder, or a manifest")
        _add_machines(parser)
    else:
        _add_paths(parser)
    _add_world(parser)
    if command == "smoke":
        _add_trial(parser)
    if command in ("check", "inspect"):
        parser.add_argument(
            "--render",
            action="store_true",
            help="have helm, kustomize or kubectl render the charts and kustomizations of the paths, and read that",
        )
    if command == "inspect":
        _add_hardware(parser)
    if command == "show":
        _add_drawing(parser)
    if command == "check":
        _add_judgement(parser)
        parser.add_argument("-V", "--version", action="version", version=f"shardlint {__version__}")
    return parser


def _models_parser() -> _Parser:
    parser = _Parser(
        prog="shardlint models", description=DESCRIPTIONS["models"], epilog=MODELS_EXIT_CODES, allow_abbrev=False
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="add|list")
    add = actions.add_parser(
        "add",
        help="keep what a hub says of a model, in .shardlint/models",
        description="Writes config.json, its side files and the sizes of the weights to .shardlint/models.",
        allow_abbrev=False,
    )
    add.add_argument("ids", metavar="ID[@REVISION]", nargs="+", help="such as Qwen/Qwen3-8B; HF_ENDPOINT names the hub")
    add.add_argument("--timeout", metavar="SECONDS", type=_seconds, help="how long a hub may take (default: 3.5)")
    shown = actions.add_parser(
        "list",
        help="show from where each model's numbers are known",
        description="Shows which deployment serves which model, and from where its numbers are known.",
        allow_abbrev=False,
    )
    shown.add_argument("--format", choices=FORMATS, default="text", help=FORMAT)
    _add_paths(shown)
    _add_models(shown)
    _add_plugins(shown)
    return parser


def _add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a file, a folder, or - for standard input")


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", metavar="PATH", help="config.json files: a folder, or one JSON file {id: config}")


def _add_plugins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-plugins", action="store_true", help="load no plugins of other distributions")


def _add_world(parser: _Parser) -> None:
    """What the manifests do not say."""
    _add_models(parser)
    _add_plugins(parser)
    parser.add_argument("--vllm", metavar="VERSION", help="the vLLM release where a manifest does not tell it")
    parser.add_argument("--config", metavar="FILE", help="the pyproject.toml to use instead of the nearest one")
    parser.add_argument("--no-color", action="store_true", help="no colours, as with NO_COLOR set")


def _add_machines(parser: _Parser) -> None:
    parser.add_argument(
        "--gpus",
        metavar="NAME:COUNT",
        help="the GPUs of a node, such as H100-80GB:8; MYCARD-24GB:8 of a card that is not known",
    )
    parser.add_argument("--nodes", metavar="N", type=_count, help="how many such nodes (default: 1)")
    parser.add_argument("--hardware", metavar="SPEC", help="the same in one word: 2x8xH100:80")
    parser.add_argument("--max-model-len", metavar="N", type=_count, help="tokens of a request (default: the model's)")
    parser.add_argument(
        "--requests",
        metavar="N",
        type=_count,
        help="how many of them at once (default: 1); layouts that hold fewer come last",
    )
    parser.add_argument(
        "--objective",
        choices=("fits", "latency", "throughput"),
        default="fits",
        help="what to prefer: plainly what holds the model (the default), quick answers, or many",
    )
    parser.add_argument("--deployment", metavar="NAME", help="which one, where the file holds several")
    parser.add_argument("--all", action="store_true", help="show every layout that works, not the first five")
    parser.add_argument(
        "--emit",
        choices=EMITTED,
        help="write a script or a manifest that starts a layout instead; shardlint warns of it as the list does",
    )
    parser.add_argument(
        "--choose", metavar="N", type=_count, default=1, help="which of the layouts (default: the first)"
    )


def _add_hardware(parser: _Parser) -> None:
    parser.add_argument("--hardware", metavar="SPEC", help="the GPUs where a manifest does not tell: 2x8xH100:80")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number from 1 on")
    return int(text)


def _index(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is no number from 0 on")
    return int(text)


def _add_drawing(parser: _Parser) -> None:
    _add_hardware(parser)
    parser.add_argument("--deployment", metavar="NAME", help="which one, where the files hold several")
    parser.add_argument("--derive", action="store_true", help="show each number's formula, values and sources")
    parser.add_argument("--tokens", metavar="T", type=_count, help="tokens of a prefill step (default: 2048)")
    parser.add_argument("--requests", metavar="N", type=_count, help="sequences of a decode step (default: 1)")
    parser.add_argument("--svg", metavar="FILE", help="write the picture into this file")
    parser.add_argument("--html", metavar="FILE", help="write picture and numbers into this file")


def _add_trial(parser: _Parser) -> None:
    _add_hardware(parser)
    parser.add_argument("--deployment", metavar="NAME", help="which one, where the files hold several")
    parser.add_argument("--level", choices=LEVELS, default="quick", help=LEVEL)
    parser.add_argument("--deadline", metavar="SECONDS", type=_seconds, help="when to end the run (default: 60)")
    parser.add_argument("--stall", metavar="SECONDS", type=_seconds, help="how long no rank may move (default: 10)")
    parser.add_argument("--allocate", action="store_true", help="take each rank's weights and KV cache from its GPU")
    parser.add_argument(
        "--share-gpu", action="store_true", help="all ranks on the first GPU of this host, by gloo: nothing of NCCL"
    )
    parser.add_argument("--against-vllm", action="store_true", help="compare the groups with those of vLLM here")
    parser.add_argument(
        "--launch",
        choices=LAUNCHES,
        default="auto",
        help="auto: here, or with the processes of torchrun, srun or mpirun; ray: on the nodes of a Ray cluster",
    )
    parser.add_argument("--nodes", metavar="N", type=_count, help="how many nodes run this command together")
    parser.add_argument("--node-rank", metavar="I", type=_index, help="which of them this is, from 0 on")
    parser.add_argument("--master", metavar="HOST:PORT", help="where node 0 waits for the others")
    parser.add_argument("--compare", metavar="FILE", help="the JSON of an earlier run, to say what has changed")
    parser.add_argument("--emit", choices=SMOKE_JOBS, help="write a manifest that runs this beside the serving pods")
    parser.add_argument("--image", metavar="IMAGE", help="of --emit: one with shardlint, in place of the serving one")


def _add_judgement(parser: _Parser) -> None:
    _add_hardware(parser)
    parser.add_argument(
        "--select", metavar="RULES", type=_words, help="only these codes, names, groups (SL1) or families"
    )
    parser.add_argument("--ignore", metavar="RULES", type=_words, help="not these (codes, names, groups or families)")
    parser.add_argument("--fail-on", choices=SEVERITIES, help="the least severity for exit code 1 (default: warning)")
    parser.add_argument("--strict", action="store_true", help="exit code 1 too for what could not be checked")
    parser.add_argument(
        "--against", metavar="VERSION", help="print what an upgrade to this release of vLLM would change"
    )
    parser.add_argument("--diff", action="store_true", help="print what is advised as patches; nothing is written")
    parser.add_argument(
        HOOK_OPTION, action="store_true", help="pass over named files too that a search of their folder would (hooks)"
    )


SHORTEST_SECONDS, LONGEST_SECONDS = 0.1, 7 * 24 * 3600
"""Ranks speak less often than the one; no clock of the kernel's or of torch's minds the other."""


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        range_of = f"{SHORTEST_SECONDS:g} to {LONGEST_SECONDS}"
        raise argparse.ArgumentTypeError(f"{text} is no time to wait: seconds go from {range_of}")
    return seconds


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.replace(",", " ").split() if word)
