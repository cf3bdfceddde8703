"""What a file says beside its deployments, and what becomes of it."""

from shardlint.check import Settings, check
from shardlint.findings import Report, Unknown
from shardlint.text import Source


class Nothing:
    def model(self, model_id: str) -> Unknown:
        return Unknown("no models here")

    def sibling(self, path: str) -> Unknown:
        return Unknown("no files here")


def checked(text: str, path: str = "run.sh") -> Report:
    return check([Source(path, text)], Nothing(), Settings())


def test_a_comment_that_is_not_understood_is_a_warning() -> None:
    (finding,) = checked("vllm serve Qwen/Qwen3-8B # shardlint: ignore everything\n").findings
    assert (finding.rule, finding.severity, finding.column) == ("unreadable-file", "warning", 26)


def test_a_script_that_is_too_long_to_read_says_so() -> None:
    report = checked("true\n" * 100_000 + "vllm serve Qwen/Qwen3-8B -tp 3\n")
    assert {(finding.rule, finding.severity) for finding in report.findings} == {("unreadable-file", "note")}


def test_an_unused_comment_is_a_note_and_a_used_one_hides_its_finding() -> None:
    used = checked(
        "vllm serve Qwen/Qwen3-8B -tp 3 # shardlint: ignore[tp-heads, tp-kv-heads, tp-vocab] as the vendor has it\n"
    )
    assert ({finding.rule for finding in used.findings}, len(used.ignored)) == (set(), 3)
    unused = checked("# shardlint: ignore[query-heads]\nvllm serve Qwen/Qwen3-8B -tp 2\n")
    assert [(finding.rule, finding.severity, finding.line) for finding in unused.findings] == [
        ("unused-ignore", "note", 1)
    ]


def test_an_engine_that_is_read_and_not_judged_is_said() -> None:
    report = checked("text-generation-launcher --model-id Qwen/Qwen3-8B --num-shard 3\n")
    assert report.findings == ()
    assert [(missed.missing, "not judged" in missed.reason) for missed in report.not_checked] == [("engine", True)]


def test_a_broken_document_leaves_the_others_to_be_read() -> None:
    good = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: a, image: vllm/vllm-openai:v0.10.0, args: [--model, Qwen/Qwen3-8B, -tp, "3"]}]}
"""
    report = checked(f"a: [\n---\n{good}", "two.yaml")
    assert {"unreadable-file", "query-heads"} <= {finding.rule for finding in report.findings}


def test_a_comment_is_not_unused_where_its_rule_did_not_speak() -> None:
    source = Source("run.sh", "vllm serve own/model -tp 3 # shardlint: ignore[query-heads] it has 12\n")
    assert check([source], Nothing(), Settings()).findings == ()
    known = Source("run.sh", "vllm serve Qwen/Qwen3-8B -tp 2 # shardlint: ignore[query-heads]\n")
    assert check([known], Nothing(), Settings(select=("world-size", "unused-ignore"))).findings == ()
    assert [finding.rule for finding in check([known], Nothing(), Settings()).findings] == ["unused-ignore"]
