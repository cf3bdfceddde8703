import pytest

from shardlint.findings import Unknown

BOTH = """
kind: LeaderWorkerSet
metadata: {name: big}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 4
    leaderTemplate:
      spec:
        containers:
        - name: leader
          command: [sh, -c, "bash multi-node-serving.sh leader --ray_cluster_size=$(LWS_GROUP_SIZE);
            vllm serve org/model -tp 8 --pipeline-parallel-size $(LWS_GROUP_SIZE)"]
          resources: {limits: {nvidia.com/gpu: "8"}}
    workerTemplate:
      spec:
        nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}
        containers:
        - name: worker
          command: [bash, multi-node-serving.sh, worker, --ray_address=$(LWS_LEADER_ADDRESS)]
          resources: {limits: {nvidia.com/gpu: "8"}}
"""


def test_leader_and_workers_are_one_group(read, words):
    got = read(BOTH)
    assert got.form == "lws"
    assert [launch.role for launch in got.launches] == ["leader", "leader", "worker"]
    assert len({launch.group for launch in got.launches}) == 1
    assert {launch.pods.value for launch in got.launches} == {4}
    assert {launch.replicas.value for launch in got.launches} == {2}
    assert [launch.gpus_per_pod.value for launch in got.launches] == [8, 8, 8]
    assert got.cut(got.launches[0].pods) == "4"


def test_variables_of_the_controller_are_known_as_far_as_the_file_goes(read, words):
    ray, engine, worker = read(BOTH).launches
    assert words(ray) == ["bash", "multi-node-serving.sh", "leader", "--ray_cluster_size=4"]
    assert words(engine)[-2:] == ["--pipeline-parallel-size", "4"]
    assert words(worker)[-1] == "<--ray_address=$(LWS_LEADER_ADDRESS)>"
    assert worker.argv[-1].reason == "set when the pod starts, by the LeaderWorkerSet controller"


def test_only_the_leader_knows_its_index(read):
    leader, _, worker = read(BOTH).launches
    assert leader.env["LWS_WORKER_INDEX"].value == "0"
    assert isinstance(worker.env["LWS_WORKER_INDEX"], Unknown)


def test_a_worker_template_alone_serves_both(read, words):
    got = read(
        """
        kind: LeaderWorkerSet
        metadata: {name: big}
        spec:
          leaderWorkerTemplate:
            size: 2
            workerTemplate:
              spec:
                containers: [{command: [vllm, serve, m, --nnodes, $(LWS_GROUP_SIZE), --node-rank, $(LWS_WORKER_INDEX)]}]
        """
    )
    assert got.only.role == ""
    assert words(got.only)[3:] == ["--nnodes", "2", "--node-rank", "<$(LWS_WORKER_INDEX)>"]
    assert got.cut(got.only.argv[4]) == "2"


def test_two_sets_are_two_groups(read):
    got = read(BOTH + "---" + BOTH)
    assert len({launch.group for launch in got.launches}) == 2


@pytest.mark.parametrize("spec", ["{}", "[]", "{leaderWorkerTemplate: {size: 2}}", "{leaderWorkerTemplate: x}"])
def test_a_set_without_pods_starts_nothing(read, spec):
    assert read(f"kind: LeaderWorkerSet\nmetadata: {{name: x}}\nspec: {spec}\n").launches == ()


def test_a_set_without_a_size_has_one_pod(read):
    got = read(
        "kind: LeaderWorkerSet\nspec: {leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{args: [x]}]}}}}\n"
    )
    assert (got.only.pods.value, got.only.pods.origin) == (1, "default")
