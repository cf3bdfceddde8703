"""The manifests that run the smoke test beside the serving pods, or in them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from smoke_plans import DENSE

from shardlint.front.main import main
from shardlint.front.options import parse

POD = """\
        nodeSelector: {{cloud/gpu: h100}}
        tolerations: [{{key: nvidia.com/gpu, operator: Exists}}]
        hostIPC: true
        containers:
        - {{name: proxy, image: nginx}}
        - name: {role}
          image: vllm/vllm-openai:v0.33.0
          command: [sh, -c]
          args:
          - |
            exec vllm serve org/one --tensor-parallel-size 8 --pipeline-parallel-size 2 --nnodes 2 \\
              --node-rank $LWS_WORKER_INDEX --master-addr $LWS_LEADER_ADDRESS {more}
          env:
          - {{name: NCCL_SOCKET_IFNAME, value: eth0}}
          - {{name: GLOO_SOCKET_IFNAME, value: eth0}}
          resources: {{limits: {{nvidia.com/gpu: 8, rdma/ib: 1}}}}
          securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}
          volumeMounts: [{{name: shm, mountPath: /dev/shm}}]
        volumes: [{{name: shm, emptyDir: {{medium: Memory, sizeLimit: 32Gi}}}}]
"""
LWS = (
    """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big, namespace: serving}
spec:
  startupPolicy: POLICY
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      spec:
"""
    + POD.format(role="leader", more="")
    + "    workerTemplate:\n      spec:\n"
    + POD.format(role="worker", more="--headless")
)
ONE_POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  template:
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.33.0
        command: [vllm, serve, org/one, --tensor-parallel-size=2]
        resources: {limits: {nvidia.com/gpu: 2}}
        volumeMounts: [{name: shm, mountPath: /dev/shm}]
        livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 6000}
        ports: [{containerPort: 8000}]
      volumes: [{name: shm, emptyDir: {medium: Memory}}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models.json").write_text(json.dumps({"org/one": DENSE}))
    (tmp_path / "big.yaml").write_text(LWS.replace("POLICY", "LeaderCreated"))
    (tmp_path / "ready.yaml").write_text(LWS.replace("POLICY", "LeaderReady"))
    (tmp_path / "chat.yaml").write_text(ONE_POD)
    (tmp_path / "serve.sh").write_text("vllm serve org/one -tp 2\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _emitted(capsys: pytest.CaptureFixture[str], kind: str, file: str, *words: str) -> tuple[list[Any], str]:
    assert main(["smoke", file, "--models", "models.json", "--emit", kind, *words]) == 0
    said = capsys.readouterr()
    Path("out.yaml").write_text(said.out)
    return list(yaml.safe_load_all(said.out)), said.err


def _words(container: dict[str, Any]) -> list[str]:
    words: list[str] = container["command"] + container["args"]
    return words


def test_a_job_has_a_pod_for_each_node_in_the_surroundings_of_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    (config, service, job), warnings = _emitted(capsys, "job", "big.yaml")
    assert warnings == ""
    assert config["data"]["manifest.yaml"] == Path("big.yaml").read_text()
    assert json.loads(config["data"]["models.json"])["org/one"]["config.json"]["hidden_size"] == 4096
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert job["metadata"] == {"name": "big-smoke", "namespace": "serving"}
    spec = job["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"], spec["backoffLimit"]) == (
        2,
        2,
        "Indexed",
        0,
    )
    pod = spec["template"]["spec"]
    assert pod["nodeSelector"] == {"cloud/gpu": "h100"}
    assert pod["hostIPC"] is True
    assert pod["subdomain"] == "big-smoke"
    (container,) = pod["containers"]
    assert container["image"] == "vllm/vllm-openai:v0.33.0"
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 8, "rdma/ib": 1}}
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert {"name": "shm", "mountPath": "/dev/shm"} in container["volumeMounts"]
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "32Gi"}} in pod["volumes"]
    assert _words(container)[-6:] == [
        "--nodes", "2", "--node-rank", "$(JOB_COMPLETION_INDEX)", "--master", "big-smoke-0.big-smoke:29571",
    ]  # fmt: skip


def test_a_job_of_one_pod_needs_no_service_and_leaves_probes_and_ports_behind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (_config, job), _ = _emitted(capsys, "job", "chat.yaml", "--image", "registry/with-shardlint:1")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry/with-shardlint:1"
    assert not {"livenessProbe", "ports"} & set(container)
    assert "--nodes" not in _words(container)


@pytest.mark.parametrize(("kind", "phases"), [("job", 2), ("jobset", 2), ("rayjob", 3)])
def test_there_is_time_to_pull_the_image_of_a_server(
    kind: str, phases: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _emitted(capsys, kind, "big.yaml", "--deadline", "90")
    text = Path("out.yaml").read_text()
    (seconds,) = re.findall(r"activeDeadlineSeconds: (\d+)", text)
    assert int(seconds) >= 10e9 / 10e6 + phases * 90
    assert text.splitlines()[1].startswith("# The image has to hold shardlint, which servers' images do not bring; ")


def test_a_job_set_names_its_first_pod(capsys: pytest.CaptureFixture[str]) -> None:
    (_config, job_set), _ = _emitted(capsys, "jobset", "big.yaml")
    spec = job_set["spec"]
    assert spec["network"]["enableDNSHostnames"] is True
    (replicated,) = spec["replicatedJobs"]
    (container,) = replicated["template"]["spec"]["template"]["spec"]["containers"]
    assert _words(container)[-1] == "big-smoke-nodes-0-0.big-smoke:29571"


def test_init_containers_try_the_very_pods_that_will_serve(capsys: pytest.CaptureFixture[str]) -> None:
    (_config, lws), warnings = _emitted(capsys, "lws-init", "big.yaml")
    assert warnings == ""
    for role in ("leaderTemplate", "workerTemplate"):
        pod = lws["spec"]["leaderWorkerTemplate"][role]["spec"]
        (init,) = pod["initContainers"]
        assert init["resources"] == {"limits": {"nvidia.com/gpu": 8, "rdma/ib": 1}}
        assert _words(init)[-3:] == ["$(LWS_WORKER_INDEX)", "--master", "$(LWS_LEADER_ADDRESS):29571"]
        assert [container["name"] for container in pod["containers"]][1] == role.removesuffix("Template")


def test_a_leader_that_must_be_ready_first_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    (_config, lws), warnings = _emitted(capsys, "lws-init", "ready.yaml")
    assert warnings.startswith("shardlint: warning: startupPolicy LeaderReady makes the workers only once the leader")
    assert lws["spec"]["startupPolicy"] == "LeaderCreated"


def test_a_ray_job_has_ray_place_the_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    (_config, ray), _ = _emitted(capsys, "rayjob", "big.yaml", "--deadline", "90")
    words = shlex.split(ray["spec"]["entrypoint"])
    assert words[:3] == ["python3", "-m", "shardlint"]
    options = parse(words[3:])
    assert (options.command, options.launch, options.nodes, options.deadline) == ("smoke", "ray", None, 90)
    assert (options.deployment, options.models) == ("LeaderWorkerSet/big", "/shardlint/models.json")
    (group,) = ray["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert group["replicas"] == 1


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("job", "big.yaml"),
        ("job", "chat.yaml"),
        ("jobset", "big.yaml"),
        ("lws-init", "ready.yaml"),
        ("rayjob", "big.yaml"),
    ],
)
def test_shardlint_finds_nothing_wrong_with_what_it_emits(
    kind: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _emitted(capsys, kind, file)
    assert main(["check", "out.yaml", "--models", "models.json", "--fail-on", "note", "--hardware", "2x8xH100"]) == 0


@pytest.mark.parametrize(
    ("kind", "file", "why"),
    [
        ("lws-init", "chat.yaml", "Deployment/chat is no LeaderWorkerSet; --emit job tries it in pods beside it"),
        ("job", "serve.sh", "the manifest does not say how many GPUs there are; to settle it: "),
    ],
)
def test_what_cannot_be_emitted_ends_with_2(kind: str, file: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smoke", file, "--models", "models.json", "--emit", kind]) == 2
    assert capsys.readouterr().err.startswith(f"shardlint: --emit {kind}: {why}")


SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: hub}\nstringData: {token: hf_hidden}\n"


def _indented(text: str) -> str:
    return "- " + text.rstrip("\n").replace("\n", "\n  ") + "\n"


SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: door}  # the one\n"
LIST = "apiVersion: v1\nkind: List\nitems:\n"


@pytest.mark.parametrize(
    "text",
    [
        f"# token: hf_hidden\n{SECRET}---\n{ONE_POD}---\n{SERVICE}",
        f"{ONE_POD}---\n# token: hf_hidden\n{SECRET}# hf_hidden\n---\n{SERVICE}",
        f"{ONE_POD}---\n{SERVICE}---\n{SECRET}",
        f"{ONE_POD}---\n{SERVICE}...\n---\n{SECRET}...\n",
        f"{ONE_POD}---\n---\n{SERVICE}---\n{{'kind': 'Secret', stringData: {{token: hf_hidden}}}}",
        LIST + _indented(SECRET) + "# hf_hidden\n" + _indented(ONE_POD) + _indented(SERVICE),
        LIST + _indented(SERVICE) + _indented(ONE_POD) + _indented(SECRET),
        f"{LIST}{_indented(LIST + _indented(SECRET))}---\n{ONE_POD}---\n{SERVICE}",
        json.dumps(
            {"kind": "List", "items": [yaml.safe_load(each) for each in (ONE_POD, SECRET, SERVICE)]}, indent=1
        ).replace("door", "door # the one"),
    ],
)
def test_no_secret_is_published_and_the_deployment_is_read_as_before(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("with.yaml").write_text(text)
    (config, _job), _ = _emitted(capsys, "job", "with.yaml")
    published = config["data"]["manifest.yaml"]
    assert "hf_hidden" not in Path("out.yaml").read_text()
    assert "# the one" in published
    Path("again.yaml").write_text(published)
    (again, _job), _ = _emitted(capsys, "job", "again.yaml")
    assert again == config


def test_what_needs_a_part_of_a_secret_is_not_emitted(capsys: pytest.CaptureFixture[str]) -> None:
    secret = _indented(SECRET.replace("{name: hub}", "&meta {name: hub}"))
    Path("with.yaml").write_text(LIST + secret + _indented(ONE_POD.replace("{name: chat}", "*meta")))
    assert main(["smoke", "with.yaml", "--models", "models.json", "--emit", "job"]) == 2
    assert capsys.readouterr().err.startswith("shardlint: --emit job: ")


@pytest.mark.parametrize(
    "value",
    [
        *(
            "1e3",
            "12e5",
            "-1E+3",
            "0o17",
            "0x1F",
            "0b1",
            "1_000",
            "1:30",
            "010",
            "+7",
            ".5",
            "5.",
            ".inf",
            "-.Inf",
            ".NaN",
        ),
        *("y", "N", "yes", "No", "on", "OFF", "true", "False", "null", "~", "2024-01-01", "2024-01-01T00:00:00Z"),
    ],
)
def test_a_text_that_some_reader_of_yaml_takes_for_something_else_is_quoted(
    value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    env = f'        env: [{{name: SAID, value: "{value}"}}]\n        resources:'
    Path("quoted.yaml").write_text(ONE_POD.replace("        resources:", env))
    (_config, job), _ = _emitted(capsys, "job", "quoted.yaml")
    assert {"name": "SAID", "value": value} in job["spec"]["template"]["spec"]["containers"][0]["env"]
    assert f"value: '{value}'" in Path("out.yaml").read_text()


def test_words_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    _emitted(capsys, "job", "chat.yaml")
    text = Path("out.yaml").read_text()
    assert "- -m\n" in text
    assert "- --models\n" in text
    assert "image: vllm/vllm-openai:v0.33.0\n" in text


LABEL = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")


@pytest.mark.parametrize(
    ("name", "emitted"),
    [
        ("chat", "chat-smoke"),
        ("my.chat", "my-chat-smoke"),
        ("8b-chat", "server-8b-chat-smoke"),
        (f"{'a' * 39}.b", f"{'a' * 39}-smoke"),
        ("a" * 250, f"{'a' * 40}-smoke"),
        ("My_Chat-", "my-chat-smoke"),
    ],
)
def test_names_are_labels_with_room_for_what_is_hung_on_to_them(
    name: str, emitted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("named.yaml").write_text(ONE_POD.replace("name: chat", f"name: {name}"))
    (config, job), _ = _emitted(capsys, "job", "named.yaml")
    assert config["metadata"]["name"] == job["metadata"]["name"] == emitted
    assert LABEL.fullmatch(emitted)
    assert len(f"{emitted}-nodes-0-0") <= 63


@pytest.mark.parametrize("place", ["name: chat", "image: vllm/vllm-openai:v0.33.0"])
def test_a_template_in_quotes_is_not_emitted(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    key = place.partition(":")[0]
    Path("template.yaml").write_text(ONE_POD.replace(place, f'{key}: "{{{{ .Release.Name }}}}"', 1))
    assert main(["smoke", "template.yaml", "--models", "models.json", "--emit", "job"]) == 2
    assert capsys.readouterr().err.startswith("shardlint: ")


@pytest.mark.parametrize(
    ("place", "empty"),
    [
        ("metadata: {name: chat}", "metadata:"),
        ("volumes: [{name: shm, emptyDir: {medium: Memory}}]", "volumes:"),
        ("volumes: [{name: shm, emptyDir: {medium: Memory}}]", "volumes: [null]"),
        ("volumeMounts: [{name: shm, mountPath: /dev/shm}]", "volumeMounts:"),
        ("volumeMounts: [{name: shm, mountPath: /dev/shm}]", "volumeMounts: {}"),
        ("      containers:", "      affinity:\n      initContainers:\n      containers:"),
    ],
)
def test_what_is_empty_is_as_if_it_were_not_there(place: str, empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert place in ONE_POD
    Path("empty.yaml").write_text(ONE_POD.replace(place, empty))
    (_config, job), _ = _emitted(capsys, "job", "empty.yaml")
    pod = job["spec"]["template"]["spec"]
    assert pod["volumes"][-1]["configMap"] == {"name": job["metadata"]["name"]}
    assert None not in [*pod.values(), *pod["containers"][0].values(), *pod["volumes"]]


def test_init_containers_and_volumes_of_an_lws_may_be_empty(capsys: pytest.CaptureFixture[str]) -> None:
    text = LWS.replace("POLICY", "LeaderCreated").replace("        hostIPC: true", "        initContainers:")
    Path("empty.yaml").write_text(re.sub("volumes: .*", "volumes:", text))
    (_config, lws), _ = _emitted(capsys, "lws-init", "empty.yaml")
    pod = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    assert [volume["name"] for volume in pod["volumes"]] == ["shardlint"]
    assert [container["name"] for container in pod["initContainers"]] == ["try-layout"]


def test_a_volume_that_a_stateful_set_claims_is_empty_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    text = ONE_POD.replace("kind: Deployment", "kind: StatefulSet")
    text = text.replace("[{name: shm, mountPath: /dev/shm}]", "[{name: weights, mountPath: /models}]")
    Path("set.yaml").write_text(text + "  volumeClaimTemplates: [{metadata: {name: weights}}]\n")
    (_config, job), warnings = _emitted(capsys, "job", "set.yaml")
    assert warnings == "shardlint: warning: not among the volumes of the pod, so empty here: weights\n"
    volumes = job["spec"]["template"]["spec"]["volumes"]
    assert {"name": "weights", "emptyDir": {}} in volumes


@pytest.mark.parametrize("kind", ["job", "jobset", "rayjob", "lws-init"])
def test_names_and_folders_that_the_pod_has_are_not_taken_again(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = LWS.replace("POLICY", "LeaderCreated").replace("/dev/shm", "/shardlint/cache").replace("shm", "shardlint")
    init = "        initContainers: [{name: try-layout, image: busybox}]"
    Path("own.yaml").write_text(text.replace("        hostIPC: true", init))
    emitted, _ = _emitted(capsys, kind, "own.yaml")
    text = Path("out.yaml").read_text()
    assert "mountPath: /shardlint-2\n" in text
    assert "/shardlint-2/manifest.yaml" in text
    assert "/shardlint/manifest.yaml" not in text
    for pod in _pods(emitted):
        for things in (pod["volumes"], pod.get("initContainers", [])):
            names = [each["name"] for each in things]
            assert len(names) == len(set(names))
        assert {"name": "shardlint-2", "configMap": {"name": "big-smoke"}} in pod["volumes"]


def _pods(data: Any) -> list[dict[str, Any]]:
    if isinstance(data, dict) and "containers" in data:
        return [data]
    within = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [pod for each in within for pod in _pods(each)]


def test_a_container_whose_words_stand_elsewhere_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    words = "[vllm, serve, org/one, --tensor-parallel-size=2]"
    text = ONE_POD.replace(words, "*words").replace("spec:\n", f"x-words: &words {words}\nspec:\n", 1)
    Path("alias.yaml").write_text(text)
    (_config, job), _ = _emitted(capsys, "job", "alias.yaml")
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "vllm/vllm-openai:v0.33.0"


@pytest.mark.parametrize("kind", ["job", "lws-init"])
def test_an_object_of_a_list_is_emitted_under_its_own_name(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("list.yaml").write_text(LIST + _indented(SERVICE) + _indented(LWS.replace("POLICY", "LeaderCreated")))
    emitted, _ = _emitted(capsys, kind, "list.yaml")
    assert emitted[0]["metadata"] == {"name": "big-smoke", "namespace": "serving"}
    assert emitted[-1]["kind"] == {"job": "Job", "lws-init": "LeaderWorkerSet"}[kind]


@pytest.mark.parametrize("loop", ["x-loop: &loop [*loop]\n", "---\n&loop\nkind: List\nitems: [*loop]\n"])
def test_an_object_that_holds_itself_is_not_emitted(loop: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("loop.yaml").write_text(ONE_POD + loop)
    assert main(["smoke", "loop.yaml", "--models", "models.json", "--emit", "job"]) == 2
    assert capsys.readouterr().err.startswith("shardlint: ")
