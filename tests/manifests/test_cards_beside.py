"""The cards of a launch by the host's names for them, and which launches may run on them at the same time."""

import pytest

RESERVED = "deploy: {{resources: {{reservations: {{devices: [{{{}, capabilities: [gpu]}}]}}}}}}"


def names(cards):
    """The names as one text, all cards of a host shortened."""
    return None if cards is None else " ".join(cards).replace(" ".join(map(str, range(64))), "all")


@pytest.mark.parametrize(
    ("fields", "cards"),
    [
        ([RESERVED.format("device_ids: ['2', '3']")], "2 3"),
        ([RESERVED.format("count: 2")], "0 1"),
        ([RESERVED.format("count: all")], "all"),
        ([RESERVED.format("device_ids: ['${CARD}']")], None),
        ([RESERVED.format("device_ids: ['nvidia.com/gpu=1']")], "1"),
        ([RESERVED.format("device_ids: ['4', '5']"), "environment: {CUDA_VISIBLE_DEVICES: '1'}"], "5"),
        ([RESERVED.format("device_ids: ['4']"), "environment: {CUDA_VISIBLE_DEVICES: '1'}"], None),
        ([RESERVED.format("device_ids: ['4']"), "environment: {CUDA_VISIBLE_DEVICES: '-1'}"], ""),
        (["gpus: all"], "all"),
        (["devices: ['nvidia.com/gpu=1', '/dev/nvidia3', '/dev/fuse']"], "1 3"),
        (["runtime: nvidia", "environment: {NVIDIA_VISIBLE_DEVICES: '4,GPU-a'}"], "4 GPU-a"),
        (["volumes: []"], None),
        (["runtime: nvidia", "environment: {NVIDIA_VISIBLE_DEVICES: '${CARDS:-0}'}"], None),
    ],
)
def test_a_service_has_the_cards_that_it_is_given(read, fields, cards):
    service = "\n".join(["services:", "  a:", *(f"    {line}" for line in ("image: i", "command: x", *fields))])
    assert names(read(service + "\n").only.cards) == cards


@pytest.mark.parametrize(
    ("command", "cards"),
    [
        ("vllm serve m", "all"),
        ("CUDA_VISIBLE_DEVICES=2,3 vllm serve m", "2 3"),
        ("CUDA_VISIBLE_DEVICES=$1 vllm serve m", None),
        ("docker run --gpus '\"device=2,3\"' i --model m", "2 3"),
        ("docker run --gpus device=1,capabilities=utility i --model m", "1"),
        ("docker run --gpus 2 i --model m", "0 1"),
        ("docker run --gpus all -e CUDA_VISIBLE_DEVICES=6 i --model m", "6"),
        ("docker run --device nvidia.com/gpu=all i --model m", "all"),
        ("docker run --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=7 i --model m", "7"),
        ("docker run --gpus device=4,5 i bash -c 'CUDA_VISIBLE_DEVICES=1 vllm serve m'", "5"),
        ("docker run i --model m", None),
    ],
)
def test_a_command_has_the_cards_that_it_can_see(read, command, cards):
    assert names(read(command, "run.sh").only.cards) == cards


def together(launches):
    """Which of the launches stand in one stage, and which go on in the background."""
    stages = list(dict.fromkeys(launch.together for launch in launches))
    return [(stages.index(launch.together), launch.background) for launch in launches]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("vllm serve a &\nvllm serve b", [(0, True), (0, False)]),
        ("vllm serve a > log 2>&1 &\nkill $!\nvllm serve b &", [(0, True), (1, True)]),
        ("docker run -d --name a i\ndocker rm -f b\ndocker run -d --name b i", [(0, True), (0, True)]),
        ("docker run -dit --name a i\ndocker rm -f a\ndocker run --name a i", [(0, True), (1, False)]),
        ("docker run --detach i\ndocker stop $(docker ps -q)\ndocker run --rm i", [(0, True), (1, False)]),
        ("nohup bash -c 'vllm serve a' &\nwait\nvllm serve b", [(0, True), (1, False)]),
    ],
)
def test_commands_of_a_script_run_beside_each_other_until_they_are_stopped(read, words, script, expected):
    launches = read(script, "run.sh").launches
    assert together([launch for launch in launches if launch.image or words(launch)[0] == "vllm"]) == expected


def test_services_of_the_same_profiles_run_together(read):
    services = [f"  {name}: {{image: i, command: x, profiles: [{profile}]}}" for name, profile in ("ap", "bp", "cq")]
    assert together(read("\n".join(["services:", *services, ""])).launches) == [(0, True), (0, True), (1, True)]


def test_two_commands_of_a_container_share_its_cards_and_two_containers_do_not(read):
    script = "vllm serve a & vllm serve b"
    limits = "resources: {limits: {nvidia.com/gpu: 2}}"
    containers = f"[{{name: x, command: [sh, -c, {script!r}], {limits}}}, {{name: y, args: [z], {limits}}}]"
    launches = read(f"kind: Pod\nmetadata: {{name: p}}\nspec: {{containers: {containers}}}\n").launches
    assert together(launches) == [(0, True), (0, False), (1, False)]
    assert [names(launch.cards) for launch in launches] == ["0 1"] * 3
