from shardlint.findings import Unknown

SERVICE = """
kind: StormService
metadata: {name: llm}
spec:
  replicas: 2
  template:
    spec:
      roles:
      - name: router
        template: {spec: {containers: [{command: [python3, -m, sglang_router.launch_router]}]}}
      - name: prefill
        replicas: 3
        podGroupSize: 2
        template:
          spec:
            nodeSelector: {nvidia.com/gpu.product: NVIDIA-L20}
            containers:
            - command: [sh, -c]
              args: ["vllm serve org/model -tp 2 --nnodes $POD_GROUP_SIZE --node-rank $POD_GROUP_INDEX --x $ROLE_NAME"]
              resources: {limits: {nvidia.com/gpu: 1}}
"""


def test_a_role_is_a_launch_of_its_own(read, words):
    router, prefill = (got := read(SERVICE)).launches
    assert got.form == "aibrix"
    assert (router.name, prefill.name) == ("StormService/llm/router", "StormService/llm/prefill")
    assert (prefill.pods.value, got.cut(prefill.pods)) == (2, "2")
    assert prefill.gpus_per_pod.value == 1
    assert prefill.gpu.value == "NVIDIA-L20"
    assert router.pods is None


def test_copies_of_a_role_count_in_all_copies_of_the_service(read):
    router, prefill = read(SERVICE).launches
    assert (prefill.replicas.value, prefill.replicas.source) == (6, "2 x 3")
    assert router.replicas.value == 2


def test_variables_of_the_controller_are_known_as_far_as_the_file_goes(read, words):
    prefill = read(SERVICE).launches[1]
    assert words(prefill)[3:] == ["-tp", "2", "--nnodes", "2", "--node-rank", "<$POD_GROUP_INDEX>", "--x", "prefill"]
    assert prefill.env["POD_GROUP_INDEX"].reason == "set when the pod starts, by AIBrix"


def test_pods_of_a_set_make_one_instance(read):
    got = read(
        "kind: PodSet\nmetadata: {name: x}\nspec: {podGroupSize: 4, template: {spec: {containers: [{args: [--tp=4]}]}}}"
    )
    assert (got.only.name, got.only.pods.value) == ("PodSet/x", 4)


def test_a_set_of_roles_has_them_at_the_top(read):
    got = read(
        "kind: RoleSet\nmetadata: {name: x}\n"
        "spec: {roles: [{name: decode, template: {spec: {containers: [{args: [--tp=4]}]}}}]}"
    )
    assert got.only.name == "RoleSet/x/decode"


FLEET = """
kind: RayClusterFleet
metadata: {name: big}
spec:
  replicas: 1
  template:
    spec:
      headGroupSpec:
        template:
          spec:
            containers:
            - command: [bash, -lc, --]
              args: ["ulimit -n 65536; $KUBERAY_GEN_RAY_START_CMD; vllm serve org/model -tp 16"]
              resources: {limits: {nvidia.com/gpu: 8}}
      workerGroupSpecs:
      - replicas: 1
        template:
          spec:
            containers: [{command: [bash, -c, $KUBERAY_GEN_RAY_START_CMD], resources: {limits: {nvidia.com/gpu: 8}}}]
"""


def test_head_and_workers_of_a_fleet_are_one_group(read, words):
    got = read(FLEET)
    assert {launch.name for launch in got.launches} == {"RayClusterFleet/big"}
    assert len({launch.group for launch in got.launches}) == 1
    assert {launch.pods.value for launch in got.launches} == {2}
    engine = next(launch for launch in got.launches if words(launch)[:2] == ["vllm", "serve"])
    assert (engine.role, engine.gpus_per_pod.value) == ("leader", 8)
    assert got.launches[-1].role == "worker"


def test_a_fleet_without_a_number_of_workers_has_an_unknown_size(read):
    engine = read(FLEET.replace("- replicas: 1", "- groupName: gpu")).launches[0]
    assert isinstance(engine.pods, Unknown)
    assert engine.pods.reason == "the number of workers is not written"


def test_hosts_of_a_worker_count(read):
    engine = read(FLEET.replace("- replicas: 1", "- replicas: 2\n        numOfHosts: 3")).launches[0]
    assert engine.pods.value == 7
