import pytest

from shardlint.findings import Located, Unknown


def test_every_command_is_a_launch_named_after_the_file(read, words):
    got = read("#!/bin/bash\nMODEL=org/model\npip install vllm\nvllm serve $MODEL \\\n  --tp 2\n", "bin/start.sh")
    assert got.form == "shell-script"
    assert [words(launch) for launch in got.launches] == [
        ["pip", "install", "vllm"],
        ["vllm", "serve", "org/model", "--tp", "2"],
    ]
    assert {(launch.name, launch.kind) for launch in got.launches} == {("start.sh", "script")}
    assert got.cut(got.launches[1].at) == "vllm"
    assert got.cut(got.launches[1].argv[4]) == "2"


def test_a_command_named_by_a_variable_stands_where_it_is_run(read):
    got = read('BIN=/opt/vllm\n"$BIN" serve m\n', "x.sh")
    assert got.only.at.line == 2


@pytest.mark.parametrize(
    ("script", "cards"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1 vllm serve m", 2),
        ("export CUDA_VISIBLE_DEVICES=2\nvllm serve m", 1),
        ("CUDA_VISIBLE_DEVICES=0,1\nvllm serve m", None),
        ("HIP_VISIBLE_DEVICES=0,1,2,3 vllm serve m", 4),
        ("vllm serve m", None),
    ],
)
def test_visible_devices_in_force_are_counted(read, script, cards):
    got = read(script, "x.sh").launches[-1].gpus_per_pod
    assert (got and got.value) == cards


def test_docker_run_is_looked_into(read, words):
    got = read(
        "docker run -d --rm -it --name llm --gpus '\"device=0,1\"' -p8000:8000 --shm-size=8g \\\n"
        "  -e HF_TOKEN=$TOKEN --env=A=b -v $(pwd):/app --ipc host vllm/vllm-openai:v0.33.0 --model org/model -tp 2\n",
        "x.sh",
    )
    only = got.only
    assert (words(only), only.entrypoint_of_image) == (["--model", "org/model", "-tp", "2"], True)
    assert only.image.value == "vllm/vllm-openai:v0.33.0" and got.cut(only.image) == "vllm/vllm-openai:v0.33.0"
    assert only.gpus_per_pod.value == 2
    assert only.env["A"].value == "b" and isinstance(only.env["HF_TOKEN"], Unknown)
    assert got.cut(only.at) == "docker"


@pytest.mark.parametrize(
    "options", ["-it", "-d -e X", "--name x", "--gpus=all", "--privileged", "-u 0:0", "-v a:b -w /x"]
)
def test_the_image_is_found_behind_any_options(read, options):
    assert read(f"podman run {options} image:tag serve", "x.sh").only.image.value == "image:tag"


def test_unknown_words_are_options_or_the_image_by_their_names(read, words):
    image = read('docker run --rm "$IMAGE" --model m', "x.sh").only
    assert (image.image.spelled, words(image)) == ('"$IMAGE"', ["--model", "m"])
    options = read("docker run $DOCKER_ARGS image:tag --model m", "x.sh").only
    assert (options.image.value, words(options)) == ("image:tag", ["--model", "m"])


@pytest.mark.parametrize(
    ("options", "cards"),
    [
        ("--gpus all", "all"),
        ("--gpus 2", 2),
        ("--gpus device=0", 1),
        ("--gpus '\"device=6, 7\"'", 2),
        ("--gpus '\"device=0,1\",capabilities=utility'", 2),
        ("--gpus all -e CUDA_VISIBLE_DEVICES=1", 1),
        ("--device nvidia.com/gpu=all", "all"),
        ("--device nvidia.com/gpu=0 --device nvidia.com/gpu=1", 2),
        ("--runtime=nvidia", "all"),
        ("--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=0,1", 2),
        ("--ipc host", None),
    ],
)
def test_cards_of_docker_run_are_counted(read, options, cards):
    got = read(f"docker run {options} image --model m", "x.sh").only.gpus_per_pod
    if cards == "all":
        assert isinstance(got, Unknown)
    else:
        assert (got.value if isinstance(got, Located) else got) == cards


def test_variables_of_the_caller_reach_a_container_only_by_name(read):
    got = read("export A=1 B=2\ndocker run -e A image x", "x.sh").only
    assert {name: word.value for name, word in got.env.items()} == {"A": "1"}


def test_an_entrypoint_replaces_the_one_of_the_image(read, words):
    got = read("docker run --entrypoint python3 image -m vllm.entrypoints.openai.api_server", "x.sh").only
    assert (words(got), got.entrypoint_of_image) == (["python3", "-m", "vllm.entrypoints.openai.api_server"], False)


@pytest.mark.parametrize("how", ["image bash -c", "--entrypoint /bin/bash image -c"])
def test_a_script_in_a_container_is_read(read, words, how):
    got = read(f"docker run --gpus 2 -e TP=2 {how} 'pip install x && vllm serve m --tp $TP'", "x.sh")
    assert [words(launch)[0] for launch in got.launches] == ["pip", "vllm"]
    engine = got.launches[1]
    assert (words(engine)[-1], engine.gpus_per_pod.value, engine.image.value) == ("2", 2, "image")
    assert not engine.entrypoint_of_image


def test_two_containers_are_two_units(read):
    got = read("docker run a x\ndocker run b x\nsleep 1\n", "x.sh")
    assert len({launch.unit for launch in got.launches}) == 3


@pytest.mark.parametrize(
    "command", ["docker ps -a", "docker", "docker compose up -d", "docker build -t run .", "docker --context a run"]
)
def test_other_docker_commands_are_left_as_they_are(read, words, command):
    assert words(read(command, "x.sh").only) == command.split()


def test_manifests_in_here_documents_are_read(read, words):
    got = read(
        "cat <<'EOF' | kubectl apply -f -\n"
        "kind: Pod\nmetadata: {name: llm}\nspec:\n  containers:\n  - {args: [--tp=2]}\nEOF\n"
        "cat > compose.yml <<EOF\nservices:\n  llm:\n    command: --tp 4\nEOF\n",
        "x.sh",
    )
    pod, llm = (launch for launch in got.launches if launch.kind != "script")
    assert (pod.name, pod.form, words(pod)) == ("Pod/llm", "k8s-pod", ["--tp=2"])
    assert (llm.name, words(llm), got.cut(llm.argv[1])) == ("service/llm", ["--tp", "4"], "4")


def test_yaml_is_no_script(read):
    assert read("vllm: serve\n").form is None


def test_a_count_of_all_gpus_is_that_of_the_pod(read, words):
    script = "N=$(nvidia-smi -L | wc -l)\nCUDA_VISIBLE_DEVICES=0,1 vllm serve m -tp $N"
    assert words(read(script, "x.sh").only)[-1] == "2"
    assert isinstance(read("vllm serve m -tp $(nvidia-smi -L | wc -l)", "x.sh").only.argv[-1], Unknown)


@pytest.mark.parametrize(
    "script",
    [
        'ssh -p 22 node1 "vllm serve m"',
        "ssh node1 vllm serve m",
        'tmux new-session -d -s x "vllm serve m"',
        'screen -dmS x bash -c "vllm serve m"',
        "mpirun -np 2 --allow-run-as-root -x A vllm serve m",
        "cat > run.sh <<'EOF'\n#!/bin/bash\nvllm serve m\nEOF",
    ],
)
def test_commands_on_other_hosts_and_in_written_scripts(read, words, script):
    assert words(read(script, "x.sh").launches[-1]) == ["vllm", "serve", "m"]


def test_a_manifest_in_a_here_document_gets_the_variables_of_the_script(read, words):
    got = read(
        "M=org/m\nkubectl apply -f - <<EOF\nkind: Pod\nspec:\n  containers:\n  - image: vllm/vllm-openai\n"
        '    args: ["--model", "$M", "--seed", "$S"]\nEOF\n',
        "x.sh",
    )
    launch = got.launches[-1]
    assert words(launch)[:2] == ["--model", "org/m"]
    assert isinstance(launch.argv[3], Unknown)


def test_a_unit_that_a_script_writes_is_looked_into(read, words):
    got = read(
        "M=org/m\nsudo tee /etc/systemd/system/llm.service <<EOF\n[Unit]\nDescription=x\n[Service]\n"
        "ExecStart=/usr/bin/vllm serve $M \\\\\n  -tp 2\nEOF\n",
        "x.sh",
    )
    assert words(got.launches[-1]) == ["/usr/bin/vllm", "serve", "org/m", "-tp", "2"]
    assert got.launches[-1].name == "x.sh"


def test_a_command_in_a_running_container_has_what_that_was_started_with(read, words):
    script = """
        docker run -d --name node --gpus 4 --shm-size 2g -e A=1 vllm/vllm-openai:v0.9.2 sleep infinity
        docker exec -it -e B=2 node vllm serve org/model -tp 4
        docker exec node bash -c 'CUDA_VISIBLE_DEVICES=0,1 vllm serve org/other -tp 2'
        docker exec stranger vllm serve org/third
    """
    _, first, second, third = read(script, "serve.sh").launches
    assert words(first) == ["vllm", "serve", "org/model", "-tp", "4"]
    assert (first.image.value, first.gpus_per_pod.value, first.container.shared_memory.value) == (
        "vllm/vllm-openai:v0.9.2", 4, 2 * 2**30,
    )  # fmt: skip
    assert {name: value.value for name, value in first.env.items()} == {"A": "1", "B": "2"}
    assert (words(second)[-1], second.gpus_per_pod.value) == ("2", 2)
    assert third.image is None
