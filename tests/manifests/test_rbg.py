GROUP = """
apiVersion: workloads.x-k8s.io/v1alpha2
kind: RoleBasedGroup
metadata: {name: llm}
spec:
  roleTemplates:
  - name: base
    template:
      spec:
        nodeSelector: {nvidia.com/gpu.product: NVIDIA-H20}
        containers: [{name: engine, image: "lmsysorg/sglang:v0.5.9", env: [{name: TP, value: "4"}]}]
  roles:
  - name: %s
    replicas: 2
    %s
"""
SERVE = "command: [python3, -m, sglang.launch_server, --model-path, org/model, --tp, $(TP)]"
GPUS = "resources: {limits: {nvidia.com/gpu: 4}}"


def group(pattern: str, name: str = "backend") -> str:
    return GROUP % (name, pattern)


def test_a_standalone_role_has_a_template(read, words):
    got = read(group("standalonePattern: {template: {spec: {containers: [{args: [--tp=2]}]}}}"))
    assert (got.form, got.only.name) == ("rbg", "RoleBasedGroup/llm/backend")
    assert got.only.replicas.value == 2
    assert words(got.only) == ["--tp=2"]


def test_the_first_version_has_the_template_in_the_role(read, words):
    assert words(read(group("template: {spec: {containers: [{args: [--tp=2]}]}}")).only) == ["--tp=2"]


def test_a_patch_over_a_named_template_fills_it_in(read, words):
    patch = f"{{name: base, patch: {{spec: {{containers: [{{name: engine, {SERVE}, {GPUS}}}]}}}}}}"
    got = read(group(f"standalonePattern: {{templateRef: {patch}}}"))
    assert words(got.only)[-2:] == ["--tp", "4"]
    assert got.only.image.value == "lmsysorg/sglang:v0.5.9"
    assert (got.only.gpus_per_pod.value, got.only.gpu.value) == (4, "NVIDIA-H20")


def test_a_leader_and_its_workers_have_one_template_and_patches(read, words):
    args = "[--nnodes, $(RBG_LWP_GROUP_SIZE), --node-rank, $(LWS_WORKER_INDEX)]"
    template = f"template: {{spec: {{containers: [{{name: engine, args: {args}, {GPUS}}}]}}}}"
    patch = "leaderTemplatePatch: {spec: {containers: [{name: engine, image: leader}]}}"
    leader, worker = (got := read(group(f"leaderWorkerPattern: {{size: 2, {template}, {patch}}}"))).launches
    assert leader.group == worker.group != ""
    assert (leader.pods.value, got.cut(leader.pods)) == (2, "2")
    assert words(leader) == ["--nnodes", "2", "--node-rank", "0"]
    assert words(worker)[-1] == "<$(LWS_WORKER_INDEX)>"
    assert (leader.image.value, worker.image) == ("leader", None)
    assert leader.gpus_per_pod.value == 4


def test_the_first_version_patches_a_leader_worker_set(read, words):
    got = read(
        group(
            "leaderWorkerSet: {size: 2, patchLeaderTemplate: {spec: {containers: [{name: engine, args: [--tp=8]}]}}}\n"
            "    template: {spec: {containers: [{name: engine, args: [wait]}]}}"
        )
    )
    assert [words(launch) for launch in got.launches] == [["--tp=8"], ["wait"]]


def test_components_of_a_role_are_one_group(read):
    one = "{name: %s, size: 1, template: {spec: {containers: [{args: [--tp=8]}]}}}"
    got = read(group(f"customComponentsPattern: {{components: [{one % 'a'}, {one % 'b'}]}}"))
    assert len({launch.group for launch in got.launches}) == 1
    assert [launch.role for launch in got.launches] == ["a", "b"]


def test_a_set_of_groups_holds_roles(read, words):
    got = read(
        "kind: RoleBasedGroupSet\nmetadata: {name: x}\nspec: {groupTemplate: {spec: {roles: ["
        "{name: decode, standalonePattern: {template: {spec: {containers: [{args: [--tp=2]}]}}}}]}}}"
    )
    assert got.only.name == "RoleBasedGroupSet/x/decode"
