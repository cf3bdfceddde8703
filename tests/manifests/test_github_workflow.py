"""GitHub workflows whose steps start servers."""

from __future__ import annotations

from shardlint.findings import Unknown

WORKFLOW = """
on: [push]
env: {TP: "2"}
jobs:
  test:
    runs-on: gpu
    steps:
      - uses: actions/checkout@v4
      - name: serve
        env: {MODEL: org/m}
        run: |
          pkill -f "vllm serve" || true
          vllm serve $MODEL -tp $TP --port ${{ inputs.port }} &
      - run: echo "vllm serve"
"""


def test_the_steps_of_a_job_are_scripts(read, words):
    got = read(WORKFLOW, "ci.yml")
    assert got.form == "github-workflow"
    serve = next(launch for launch in got.launches if words(launch)[0] == "vllm")
    assert words(serve)[:6] == ["vllm", "serve", "org/m", "-tp", "2", "--port"]
    assert isinstance(serve.argv[6], Unknown)
    assert serve.name == "job/test"


def test_other_files_with_jobs_are_none(read):
    assert not read("jobs: {a: {steps: [{run: vllm serve m}]}}\n", "a.yml").launches
