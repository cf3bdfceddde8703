SET = """
kind: PodCliqueSet
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
    - name: router
      spec: {replicas: 1, podSpec: {containers: [{command: [route]}]}}
    - name: decode
      spec: {replicas: 2, podSpec: {containers: [{command: [vllm, serve, org/model], resources: {limits: {nvidia.com/gpu: 4}}}]}}
    - name: leader
      spec: {replicas: 1, podSpec: {containers: [{command: [vllm, serve, org/model, -tp, "16"]}]}}
    - name: worker
      spec: {replicas: 3, podSpec: {containers: [{command: [join]}]}}
    podCliqueScalingGroups:
    - {name: prefill, replicas: 2, cliqueNames: [leader, worker]}
"""


def test_cliques_of_a_scaling_group_make_one_instance(read):
    got = read(SET)
    assert got.form == "grove"
    leader, worker = (launch for launch in got.launches if launch.group)
    assert leader.group == worker.group
    assert (leader.name, leader.role, worker.role) == ("PodCliqueSet/llm/prefill", "leader", "worker")
    assert (leader.pods.value, leader.pods.source) == (4, "1 + 3")
    assert leader.replicas.value == 2


def test_a_clique_of_its_own_has_copies(read):
    router, decode = (launch for launch in read(SET).launches if not launch.group)
    assert (router.name, decode.name) == ("PodCliqueSet/llm/router", "PodCliqueSet/llm/decode")
    assert (decode.replicas.value, decode.gpus_per_pod.value, decode.pods) == (2, 4, None)
