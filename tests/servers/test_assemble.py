from __future__ import annotations

from shardlint.deployment import Launch
from shardlint.findings import Located, Span, Unknown
from shardlint.servers import assemble

AT = Span("run.sh", 1, 1, 1, 5)


def launch(command: str, **changes) -> Launch:
    argv = tuple(
        Unknown("not set", AT, word) if word.startswith("$") else Located(word, AT, word) for word in command.split()
    )
    return Launch("run.sh", "script", "shell-script", AT, argv, unit="run.sh")._replace(**changes)


def recognise(launch: Launch) -> str | None:
    words = [word.value if isinstance(word, Located) else word.spelled for word in launch.argv]
    return "vllm" if words[:1] == ["vllm"] else None


def servers(*launches: Launch):
    return assemble(launches, recognise)


def number(value: int, spelled: str = "") -> Located[int]:
    return Located(value, AT, spelled or str(value))


def test_commands_that_are_no_engine_make_no_server():
    assert servers(launch("nginx -g daemon"), launch("ray start --head")) == ()


def test_each_engine_command_is_a_server_of_its_own():
    first, second = launch("vllm serve a"), launch("vllm serve b", env={"CUDA_VISIBLE_DEVICES": Located("1")})
    got = servers(first, second)
    assert [server.primary for server in got] == [first, second]
    assert [server.others for server in got] == [(), ()]


def test_copies_on_other_cards_are_servers_and_repetitions_are_not():
    one = launch("vllm serve a", gpus_per_pod=number(1, "0"))
    assert len(servers(one, one._replace(gpus_per_pod=number(1, "1")))) == 2
    assert len(servers(one, one)) == 1
    assert len(servers(one, one._replace(unit="other"))) == 2


def test_ranks_of_one_command_line_are_one_server():
    head = launch("vllm serve a --nnodes 2 --node-rank 0")
    worker = launch("vllm serve a --nnodes=2 --node-rank=1 --headless")
    (got,) = servers(worker, head)
    assert (got.primary, got.others) == (head, (worker,))


def test_a_headless_data_parallel_node_follows_the_server_with_its_model():
    head = launch("vllm serve a --data-parallel-size 4 --data-parallel-size-local 2")
    other = launch("vllm serve b --data-parallel-size 4 --data-parallel-size-local 2")
    worker = launch("vllm serve a --data-parallel-size 4 --data-parallel-start-rank 2 --headless", unit="worker")
    first, second = servers(head, other, worker)
    assert (first.others, second.others) == ((worker,), ())


def test_a_follower_with_other_sizes_is_still_one():
    head = launch("vllm serve a --nnodes 2 --node-rank 0 -tp 8")
    (got,) = servers(head, launch("vllm serve a --nnodes 2 --node-rank 1 -tp 4"))
    assert got.primary == head and len(got.others) == 1


def test_a_lone_follower_is_still_read():
    (got,) = servers(launch("vllm serve a --nnodes 2 --node-rank 1 --headless"))
    assert got.others == ()


def test_a_rank_that_the_file_does_not_tell_is_one_server():
    (got,) = servers(launch("vllm serve a --nnodes 2 --node-rank $RANK"))
    assert got.primary.argv[-1].spelled == "$RANK"


def test_a_group_is_one_server_whatever_its_pods_run():
    lws = {"group": "LeaderWorkerSet/x:1:1", "kind": "LeaderWorkerSet", "pods": number(4), "replicas": number(2)}
    ray = launch("ray start --head", role="leader", **lws)
    leader = launch("vllm serve a -tp 8", role="leader", gpus_per_pod=number(2), **lws)
    worker = launch("ray start --address $LEADER", role="worker", gpu=Located("h100", AT, "h100"), **lws)
    (got,) = servers(ray, leader, worker)
    assert (got.pods.value, got.replicas.value, got.primary.gpus_per_pod.value) == (4, 2, 2)
    assert got.primary.argv == leader.argv
    assert got.others == (ray, worker)
    assert got.primary.gpu.value == "h100"


def test_sidecars_help_no_engine():
    pod = {"group": "g", "role": "worker"}
    install, leader = (launch(words, group="g", role="leader") for words in ("pip install x", "vllm serve a"))
    worker = launch("run.sh", unit="worker", gpus_per_pod=number(8), **pod)
    exporter = launch("exporter", unit="exporter", **pod)
    (got,) = servers(install, leader, leader._replace(unit="log", argv=exporter.argv), worker, exporter)
    assert got.others == (install, worker)
    (got,) = servers(leader, worker, exporter._replace(gpus_per_pod=number(0)))
    assert got.others == (worker,)
    untold = worker._replace(gpus_per_pod=None)
    (got,) = servers(leader, untold, exporter)
    assert got.others == (untold, exporter), "either may be the one that runs ranks"
    joins = launch("ray start --address x", unit="worker", **pod)
    (got,) = servers(leader, joins, exporter)
    assert got.others == (joins,)


def test_unequal_cards_in_a_group_are_no_number():
    leader = launch("vllm serve a", group="g", role="leader", gpus_per_pod=number(8))
    worker = launch("ray start --address x", group="g", role="worker", gpus_per_pod=number(4))
    (unequal,) = servers(leader, worker)
    assert unequal.primary.gpus_per_pod.reason == "the leader has 8 cards and other pods of its group have 4"
    (bare,) = servers(leader._replace(gpus_per_pod=None), worker)
    assert bare.primary.gpus_per_pod.reason == "the leader has no cards and other pods of its group have 4"


def test_a_group_without_an_engine_is_none():
    assert servers(launch("nginx", group="g", pods=number(4))) == ()


def test_the_worker_makes_the_server_where_the_leader_has_no_engine():
    (got,) = servers(launch("router", group="g", role="leader"), launch("vllm serve a", group="g", role="worker"))
    assert got.primary.role == "worker"


def test_groups_and_files_beside_each_other_stay_apart():
    got = servers(launch("vllm serve a", group="g"), launch("vllm serve a"), launch("vllm serve a", group="h"))
    assert [server.primary.group for server in got] == ["g", "", "h"]


def test_stateful_pods_with_ranks_are_pods_and_not_copies():
    shape = {"kind": "StatefulSet", "replicas": number(2)}
    (got,) = servers(launch("vllm serve a --nnodes 2 --node-rank $POD_INDEX", **shape))
    assert (got.pods.value, got.replicas.value, got.replicas.origin) == (2, 1, "derived")
    (copies,) = servers(launch("vllm serve a -tp 2", **shape))
    assert (copies.pods, copies.replicas.value) == (None, 2)


def test_stateful_pods_that_join_a_ray_cluster_are_pods():
    shape = {"kind": "StatefulSet", "replicas": number(3), "conditional": True}
    (got,) = servers(
        launch("ray start --head", **shape), launch("vllm serve a", **shape), launch("ray start --address x", **shape)
    )
    assert got.pods.value == 3


def test_ray_nodes_of_a_script_are_counted():
    head = launch("ray start --head --port 5678", gpus_per_pod=number(4, "0,1,2,3"))
    worker = launch("ray start --address=h", gpus_per_pod=number(2, "0,1"))
    (got,) = servers(head, worker, launch("vllm serve a -tp 4 -pp 2", gpus_per_pod=number(2, "0,1")))
    assert got.pods.value == 2
    assert got.primary.gpus_per_pod.reason == "the nodes have different numbers of cards: 4, 2"
    assert got.others == (head, worker)


def test_equal_ray_nodes_keep_their_number_of_cards():
    starts = [launch(f"ray start {flag}", gpus_per_pod=number(4)) for flag in ("--head", "--address=h", "--address=h")]
    (got,) = servers(*starts, launch("vllm serve a"))
    assert (got.pods.value, got.primary.gpus_per_pod.value) == (3, 4)


def test_a_ray_head_alone_leaves_the_nodes_open():
    (got,) = servers(launch("ray start --head"), launch("vllm serve a"))
    assert got.pods.reason == "other nodes join the Ray cluster from elsewhere"


def test_ray_in_branches_leaves_the_nodes_open():
    starts = [launch(f"ray start {flag}", conditional=True) for flag in ("--head", "--address=h")]
    (got,) = servers(*starts, launch("vllm serve a"))
    assert isinstance(got.pods, Unknown)


def test_other_commands_of_the_unit_stand_beside_the_server():
    install = launch("pip install vllm==0.8.5")
    (got,) = servers(install, launch("vllm serve a"), launch("curl localhost", unit="probe"))
    assert got.others == (install,)
