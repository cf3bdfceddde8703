"""Findings and deployments made by hand."""

from shardlint.deployment import Deployment, Launch, Server
from shardlint.findings import FileNote, Finding, Located, NotChecked, Related, Report, Span, Unknown

TEXT = """\
args:
  - --model=org/model
  - --tensor-parallel-size=6
limits:
  nvidia.com/gpu: 4
"""
TEXTS = {"a.yaml": TEXT}


def span(line: int, column: int, end_column: int, path: str = "a.yaml") -> Span:
    return Span(path, line, column, line, end_column)


HEADS = Finding(
    code="SL101",
    rule="query-heads",
    family="tp-heads",
    severity="error",
    effect="refuses-at-start",
    certainty="exact",
    span=span(3, 28, 29),
    message="32 query heads do not divide by tensor_parallel_size 6",
    sum="32 / 6 = 5 remainder 2",
    help=("--tensor-parallel-size=4", "--tensor-parallel-size=8"),
    url="shardlint/rules/query_heads.md",
    related=(
        Related(span(5, 19, 20), "4 GPUs"),
        Related(Span("catalogue:org/model", 1, 1, 1, 1), "num_attention_heads is 32"),
        Related(span(1, 1, 3, path="b.env"), "set here"),
    ),
    deployment="Deployment/chat",
)
NOTE = Finding(
    code="SL103",
    rule="kv-heads-replicated",
    family="kv-replication",
    severity="note",
    effect="wastes",
    certainty="estimate",
    span=span(2, 13, 22),
    message="each KV head is stored twice",
)
MISSING = tuple(
    NotChecked(f"Deployment/{name}", rule, "geometry", "no config.json of x is here", "--models")
    for name in ("a", "b")
    for rule in ("query-heads", "kv-heads")
)
REPORT = Report(
    findings=(HEADS, NOTE),
    ignored=(NOTE,),
    not_checked=MISSING,
    files=(FileNote("a.yaml", "k8s-deployment", None), FileNote("big.yaml", None, "larger than 4 MiB")),
)

AT = span(2, 5, 20)
LAUNCH = Launch("Deployment/chat", "Deployment", "k8s-deployment", AT)


def deployment(**fields: object) -> Deployment:
    """vLLM 0.10.0 with nothing else written, but for `fields`."""
    known = {
        "name": LAUNCH.name,
        "kind": LAUNCH.kind,
        "form": LAUNCH.form,
        "at": AT,
        "engine": "vllm",
        "server": Server("vllm", LAUNCH),
        "engine_version": Located("0.10.0", span(1, 1, 2)),
    }
    return Deployment(**{**known, **fields})  # type: ignore[arg-type]


OPEN_WORD = Unknown("EXTRA is not set in this file", span(4, 3, 9), "$EXTRA")
