"""The JSON of a run is held against its published schema, and against that of an earlier run."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from smoke_plans import DENSE, EXPERTS, plan

from shardlint.front.main import main
from shardlint.smoke import Claim, SmokeResult
from shardlint.smoke.claims import expected
from shardlint.smoke.comparison import is_report
from shardlint.smoke.exchanges import Exchange, Mode, Timing, bus_factor, exchanges
from shardlint.smoke.links import link_observations
from shardlint.smoke.observations import Observation
from shardlint.smoke.report import json_data, nccl_tests_split, text
from shardlint.smoke.surroundings import Port, Surroundings, read
from shardlint.smoke.trial import Host

SUM = Exchange("all-reduce", "tp", "layer", "decode", 1, 73, 8192)
PREFILL = Exchange("all-reduce", "tp", "layer", "prefill", 2048, 73, 2**24)
AROUND = Surroundings(
    "a",
    addresses=("10.0.0.1",),
    interfaces={"lo": "127.0.0.1", "eth0": "10.0.0.1", "tun0": ""},
    shared_memory_free=2**30,
    gpus=(0, 1),
    gpu_models=("NVIDIA H200", "NVIDIA H200"),
    driver="570.86.15",
    ports=(Port("mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)"),),
    environment={"NCCL_ALGO": "Ring"},
)


def _timing(exchange: Exchange, group: tuple[int, ...], microseconds: float, mode: Mode = "alone") -> Timing:
    return Timing(exchange, group, mode, exchange.bytes, microseconds, 2 * microseconds)


def _result(**otherwise: Any) -> SmokeResult:
    of = plan(DENSE, tp=2, pp=2)
    claims = tuple(
        Claim(name, kind, of.group_of(kind, rank), rank, True)
        for name, judges in expected(of).items()
        for kind, rank in sorted(judges)
    )
    timings = (_timing(SUM, (0, 1), 20.0), _timing(SUM, (2, 3), 25.0), _timing(PREFILL, (0, 1), 700.0))
    hosts = tuple(Host(node, AROUND._replace(host=name), "2.13.0", "2.28.9") for node, name in enumerate("ab"))
    result = SmokeResult(of, claims, "", "nccl", "2.13.0", 1.5, hosts=hosts, timings=timings)
    return result._replace(**otherwise)


def _schema() -> Any:
    return json.loads(files("shardlint.report").joinpath("schemas/smoke-1.json").read_text())


@pytest.mark.parametrize(
    "result",
    [
        _result(),
        _result(observations=(Observation("hostname", "error", "a", "why", "what"),), claims=(), timings=()),
        SmokeResult(plan(EXPERTS, tp=2, dp=2), could_not_run="torch is not installed"),
    ],
)
def test_every_end_of_a_run_fits_the_schema(result: SmokeResult) -> None:
    data = json.loads(json.dumps(json_data(result, "Deployment/x")))
    Draft202012Validator(_schema()).validate(data)
    assert not Draft202012Validator(_schema()).is_valid({**data, "more": 1})


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--nodes", "3", "--node-rank", "0", "--master", "localhost:1"), "the plan needs 2 ranks"),
        (("--node-rank", "0"), "--node-rank and --master go with --nodes N"),
        (("--compare", "none.json"), "--compare none.json: No such file or directory"),
    ],
)
def test_a_run_that_cannot_be_planned_is_told_in_json(
    words: tuple[str, ...],
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("serve.sh").write_text("vllm serve org/one -tp 2\n")
    Path("models.json").write_text(json.dumps({"org/one": DENSE}))
    assert main(["smoke", "serve.sh", "--models", "models.json", "--format", "json", *words]) == 2
    data = json.loads(capsys.readouterr().out)
    Draft202012Validator(_schema()).validate(data)
    assert data["could_not_run"].startswith(why)
    assert not is_report(data)


def test_a_model_that_is_not_known_is_told_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "serve.sh").write_text("vllm serve org/unknown -tp 2\n")
    (tmp_path / "models.json").write_text("{}")
    words = ["smoke", str(tmp_path / "serve.sh"), "--models", str(tmp_path / "models.json"), "--format", "json"]
    assert main(words) == 2
    data = json.loads(capsys.readouterr().out)
    Draft202012Validator(_schema()).validate(data)
    assert data["could_not_run"].startswith(f"{data['deployment']} cannot be tried: ")
    assert data["headline"].startswith(f"{data['deployment']} was not tried: ")


def test_what_a_host_offers_is_written_down() -> None:
    host, other = json_data(_result())["hosts"]
    assert (host["name"], other["name"], other["node"]) == ("a", "b", 1)
    assert host["environment"] == {"NCCL_ALGO": "Ring"}
    assert host["interfaces"] == {"lo": "127.0.0.1", "eth0": "10.0.0.1", "tun0": None}
    assert host["rdma"] == [{"device": "mlx5_0", "state": "4: ACTIVE", "rate": "400 Gb/sec (4X NDR)"}]
    assert [host[name] for name in ("torch", "nccl", "driver")] == ["2.13.0", "2.28.9", "570.86.15"]


def test_this_host_fits_the_schema() -> None:
    here = Host(0, read({"NCCL_ALGO": "Ring"}))
    Draft202012Validator(_schema()).validate(json.loads(json.dumps(json_data(_result(hosts=(here,))))))


def test_another_node_takes_a_result_as_it_was_sent() -> None:
    result = _result(observations=(Observation("hostname", "warning", "a", "why", "what"),))
    assert SmokeResult.from_json(result.plan, json.loads(json.dumps(result.to_json()))) == result


def test_links_are_told_in_time_bandwidth_and_milliseconds_of_a_step() -> None:
    lines = text(_result()).splitlines()
    assert (
        "      decode of 1 token: tp [2,3] all-reduce (layer) of 8 KiB: median 25 us, p99 50 us, "
        "0.328 GB/s of algorithm, 0.328 GB/s of bus; 73 times in a step: 1.82 ms"
    ) in lines
    assert "      decode: 1.82 ms per token are spent in these exchanges" in lines
    assert "bandwidth" not in lines[0]


@pytest.mark.parametrize(
    ("microseconds", "figure"), [(1.19e6, "86870"), (13.7, "1"), (1e-3, "below 0.001"), (0.1, "0.0073")]
)
def test_no_figure_is_a_power_of_ten(microseconds: float, figure: str) -> None:
    timings = tuple(_timing(SUM, group, microseconds) for group in ((0, 1), (2, 3)))
    assert f"      decode: {figure} ms per token are spent in these exchanges\n" in text(_result(timings=timings))


def test_on_a_cpu_one_line_tells_of_links_until_all_of_them_are_asked_for() -> None:
    result = _result(backend="gloo")
    (line,) = (line for line in text(result).splitlines() if " us" in line or "links" in line)
    assert line.startswith("links: 1 exchange of a step timed by gloo, which says nothing of links between GPUs (")
    full = text(result._replace(level="full"))
    assert "links: the slowest group of each class (by gloo, whose speed says nothing of links between GPUs)" in full
    assert "median 25 us, p99 50 us" in full
    assert len(json_data(result)["timings"]) == 3


def test_of_messages_that_are_cut_no_step_is_summed() -> None:
    timings = tuple(_timing(PREFILL, group, 700.0)._replace(bytes=2**18) for group in ((0, 1), (2, 3)))
    lines = text(_result(backend="gloo", level="full", timings=timings)).splitlines()
    (line,) = (line for line in lines if "of 16 MiB cut to 256 KiB: median 700 us" in line)
    assert line.endswith(" GB/s of bus")
    assert "      prefill: no sum of a step, whose messages are larger than what was sent here" in lines


def test_bus_bandwidth_has_the_factors_of_nccl_tests() -> None:
    eight = [bus_factor(operation, 8) for operation in ("all-reduce", "all-gather", "reduce-scatter", "send")]
    assert eight == [1.75, 0.875, 0.875, 1.0]
    assert _timing(PREFILL, tuple(range(8)), 1000.0).bus_bandwidth == pytest.approx(16.777216 * 1.75)


def test_exchanges_are_counted_over_all_stages_and_purposes() -> None:
    from shardlint.layout.traffic import Collective

    made = [
        Collective("all-reduce", "tp", "embedding", 0, 1, 4096),
        Collective("all-reduce", "tp", "layer", 0, 6, 4096),
        Collective("all-reduce", "tp", "layer", 1, 6, 4096),
    ]
    assert exchanges(made, 2, 100) == (
        Exchange("all-reduce", "tp", "embedding, layer", "decode", 1, 13, 8192),
        Exchange("all-reduce", "tp", "embedding, layer", "prefill", 100, 13, 819200),
    )


def test_a_group_that_falls_behind_is_named_on_gpus_soon_and_on_cpus_only_when_gross() -> None:
    def of(microseconds: float) -> list[Timing]:
        return [_timing(PREFILL, group, 1000.0) for group in ((0, 1), (2, 3))] + [
            _timing(PREFILL, (4, 5), microseconds)
        ]

    assert not list(link_observations(of(1400.0), on_gpus=True))
    (seen,) = link_observations(of(1500.0), on_gpus=True)
    assert seen.message.startswith(
        "all-reduce of tp [4,5]: 16777216 bytes in 1500 us (11.2 GB/s), 1.5 times the median"
    )
    apart = {rank: rank // 4 for rank in range(6)}
    assert not list(link_observations(of(20_000.0), False, apart))
    (seen,) = link_observations(of(30_000.0), False, apart)
    assert seen.name == "slow-group"
    assert not list(link_observations(of(30_000.0), False, dict.fromkeys(range(6), 0)))


def test_processes_of_a_cpu_are_held_against_groups_of_as_many_ranks_on_the_other_side_of_a_network() -> None:
    hop = PREFILL._replace(operation="send", kind="pp")
    timings = [_timing(PREFILL, group, 1000.0) for group in ((0, 1), (2, 3))]
    timings += [_timing(hop, group, 50_000.0) for group in ((0, 2), (1, 3))]
    (seen,) = link_observations(timings, False, {0: 0, 1: 0, 2: 1, 3: 1})
    assert seen.message.startswith("send of pp [0,2]: 16777216 bytes in 50000 us (0.336 GB/s), 50 times slower than ")
    assert seen.message.endswith("groups of 2 inside of a host")
    assert not list(link_observations(timings, False, dict.fromkeys(range(4), 0)))
    wide = [_timing(PREFILL._replace(kind="ep"), tuple(range(4)), 90_000.0)]  # as many ranks as no other group
    assert not list(link_observations([*timings[:2], *wide], False, {0: 0, 1: 0, 2: 1, 3: 1}))


def test_masks_of_nccl_tests_are_those_that_make_the_same_groups() -> None:
    assert nccl_tests_split(((0, 1), (2, 3))) == '"DIV 2"'
    assert nccl_tests_split(((0, 2), (1, 3))) == '"MOD 2"'
    assert nccl_tests_split(((0, 2), (1, 3), (4, 6), (5, 7))) == '"MASK 0x5"'
    assert nccl_tests_split(((0, 3), (1, 2))) == ""
    assert 'nccl-tests for tp: NCCL_TESTS_SPLIT="DIV 2" mpirun -n 4 all_reduce_perf' in text(_result())


def test_what_has_changed_since_an_earlier_run_is_told() -> None:
    before = json.loads(json.dumps(json_data(_result())))
    slower = (_timing(SUM, (0, 1), 40.0), _timing(SUM, (2, 3), 50.0), _timing(PREFILL, (0, 1), 710.0))
    claims = tuple(claim._replace(ok=claim.name != "split-mlp") for claim in _result().claims)
    lines = text(_result(claims=claims, timings=slower), before=before).splitlines()
    assert [line for line in lines if line.startswith("since the earlier run")] == [
        "since the earlier run, split-mlp: proven, now failed",
        "since the earlier run, decode tp all-reduce layer alone: 22 us, now 45 us (2 times)",
    ]


def test_other_surroundings_than_in_the_earlier_run_are_told() -> None:
    hosts = _result().hosts
    before = json.loads(json.dumps(json_data(_result())))
    other = {"torch": "2.9.0", "nccl": "2.27.7"}
    around = [host.around._replace(driver="580.1", environment={"NCCL_DEBUG": "WARN"}) for host in hosts]
    around[1] = around[1]._replace(gpus=(0,), ports=(), shared_memory_free=2**20)
    changed = tuple(host._replace(around=now, **other) for host, now in zip(hosts, around, strict=True))
    lines = text(_result(hosts=changed, backend="gloo"), before=before).splitlines()
    assert [line.removeprefix("since the earlier run, ") for line in lines if line.startswith("since")] == [
        "the backend: nccl, now gloo",
        "torch: 2.13.0, now 2.9.0",
        "NCCL: 2.28.9, now 2.27.7",
        "the driver: 570.86.15, now 580.1",
        "NCCL_ALGO: Ring, now unset",
        "NCCL_DEBUG: unset, now WARN",
        "the GPUs of b: 0, 1, now 0",
        "RDMA of b: mlx5_0 4: ACTIVE 400 Gb/sec (4X NDR), now none",
    ]
    assert "since the earlier run, nothing has changed\n" in text(_result(), before=before)


def test_a_run_that_told_less_of_its_hosts_can_be_compared() -> None:
    before = json_data(_result())
    before["hosts"] = [{"node": 0, "name": "a"}]
    assert "since the earlier run, nodes: 1, now 2\n" in text(_result(), before=before)


def test_of_another_plan_only_what_both_have_is_compared() -> None:
    before = json.loads(json.dumps(json_data(_result(), "Deployment/a")))
    wide = plan(DENSE | {"hidden_size": 8192}, tp=4)
    slow = _timing(SUM._replace(bytes=16384), (0, 1), 900.0)
    now = SmokeResult(wide, (), "", "nccl", "2.13.0", hosts=_result().hosts, timings=(slow,))
    other = [
        {"what": "pipeline_parallel_size", "before": "2", "now": "1"},
        {"what": "tensor_parallel_size", "before": "2", "now": "4"},
        {"what": "hidden", "before": "hidden_size 4096", "now": "hidden_size 8192"},
        {"what": "stages", "before": "0, 3, 3, 6", "now": "0, 6"},
    ]
    data = json.loads(json.dumps(json_data(now, "Deployment/a", before)))
    Draft202012Validator(_schema()).validate(data)
    assert data["comparison"] == {"other_plan": other, "changes": []}
    assert (
        "the earlier run was of another plan (pipeline_parallel_size: 2, now 1; tensor_parallel_size: 2, now 4; "
        in text(now, "Deployment/a", before)
    )
    same = now._replace(timings=(_timing(SUM, (0, 1), 900.0),))
    (change,) = json_data(same, "Deployment/a", before)["comparison"]["changes"]
    assert change == {"what": "decode tp all-reduce layer alone", "before": "20 us", "now": "900 us (45 times)"}


def test_json_has_the_comparison_and_none_where_nobody_asks() -> None:
    before = json.loads(json.dumps(json_data(_result(), "Deployment/a")))
    assert before["comparison"] is None
    data = json.loads(json.dumps(json_data(_result(backend="gloo"), "Deployment/b", before)))
    Draft202012Validator(_schema()).validate(data)
    assert data["comparison"]["changes"] == [
        {"what": "the deployment", "before": "Deployment/a", "now": "Deployment/b"},
        {"what": "the backend", "before": "nccl", "now": "gloo"},
    ]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (None, "No such file or directory"),
        ("{}", "no report of an earlier run"),
        ("ok    membership", "no report of an earlier run"),
        ("[1]", "no report of an earlier run"),
        ('{"schema": 1, "timings": [{}], "hosts": 3, "plan": {}}', "no report of an earlier run"),
        ('{"schema": 1, "timings": []}', "no report of an earlier run"),
        ('{"schema": 1, "plan": ' + "[" * 100_000 + "]" * 100_000 + "}", "no report of an earlier run"),
    ],
)
def test_a_file_that_is_no_earlier_run_is_refused(
    written: str | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if written is not None:
        (tmp_path / "old.json").write_text(written)
    _is_refused(tmp_path, why, capsys)


def _is_refused(tmp_path: Path, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "serve.sh").write_text("vllm serve org/one -tp 2\n")
    (tmp_path / "models.json").write_text(json.dumps({"org/one": DENSE}))
    words = ["smoke", str(tmp_path / "serve.sh"), "--models", str(tmp_path / "models.json")]
    assert main([*words, "--compare", str(tmp_path / "old.json")]) == 2
    assert capsys.readouterr().err.startswith(f"shardlint: --compare {tmp_path / 'old.json'}: {why}")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("hosts",), None),
        (("hosts", 0), {}),
        (("hosts", 0, "node"), []),
        (("hosts", 0, "environment"), ["A"]),
        (("environment",), None),
        (("plan",), {}),
        (("plan", "sizes"), [1]),
        (("plan", "sizes", "more"), json.loads("[" * 50 + "]" * 50)),
        (("timings", 0), {}),
        (("timings", 0, "median_us"), 0),
        (("timings", 0, "median_us"), "x"),
        (("timings", 0, "median_us"), float("nan")),
        (("timings", 0, "median_us"), 10**400),
        (("proven",), 3),
    ],
)
def test_a_report_with_something_else_in_a_place_is_refused_before_the_ranks_run(
    place: tuple[Any, ...], value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(json.dumps(json_data(_result())))
    assert is_report(data)
    within = data
    for key in place[:-1]:
        within = within[key]
    within[place[-1]] = value
    (tmp_path / "old.json").write_text(json.dumps(data))
    _is_refused(tmp_path, "no report of an earlier run", capsys)


def test_settings_that_are_no_texts_are_compared_as_texts() -> None:
    before = json.loads(json.dumps(json_data(_result())))
    before["hosts"][0]["environment"] = {"NCCL_ALGO": ["Ring"]}
    assert is_report(before)
    assert "since the earlier run, NCCL_ALGO of a: ['Ring'], now Ring\n" in text(_result(), before=before)
