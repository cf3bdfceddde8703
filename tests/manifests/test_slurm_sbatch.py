"""Slurm: directives, steps, and the recipes of srt-slurm."""

from __future__ import annotations

import pytest

from shardlint.findings import Located, Unknown


def value(maybe):
    return maybe.value if isinstance(maybe, Located) else maybe and "unknown"


def script(*directives: str, command: str = "vllm serve m") -> str:
    return "#!/bin/bash\n" + "".join(f"#SBATCH {line}\n" for line in directives) + f"{command}\n"


@pytest.mark.parametrize(
    ("directives", "cards", "kind"),
    [
        (("--gres=gpu:4",), 4, None),
        (("--gres=gpu:a100:2,nvme:1",), 2, "a100"),
        (("--gres gpu",), 1, None),
        (("--gpus-per-node=h100:8", "--nodes=2"), 8, "h100"),
        (("--gpus=8", "-N 2"), 4, None),
        (("-G8", "-N2"), 4, None),
        (("--gpus=7", "-N 2"), "unknown", None),
        (("--gpus-per-task=4", "--ntasks-per-node=1", "--nodes=2"), 4, None),
        (("--gpus-per-task=1", "--ntasks=8", "--nodes=2"), 4, None),
        (("--gpus-per-node=2   # two of them",), 2, None),
        (("--gpus-per-node=4", "--constraint=a100-80gb"), 4, "a100-80gb"),
        (("--gpus-per-node=4", "-C nvme"), 4, None),
        (("--gpus-per-node=4", '--constraint="a100|h100"'), 4, "unknown"),
        (("--gpus-per-node=4", "--partition=gpu_h100"), 4, "gpu_h100"),
        (("--partition=batch4",), None, None),
    ],
)
def test_directives_tell_a_nodes_cards(read, directives, cards, kind):
    got = read(script(*directives), "job.sh")
    assert got.form == "slurm-sbatch"
    assert (value(got.only.gpus_per_pod), value(got.only.gpu)) == (cards, kind)


def test_a_count_stands_where_the_directive_has_it(read):
    got = read(script("--gres=gpu:a100:2"), "job.sh")
    assert got.cut(got.only.gpus_per_pod) == "gpu:a100:2"


def test_directives_end_with_the_first_command(read):
    assert (
        read("#!/bin/bash\n#SBATCH -N 1\nmodule load x\n#SBATCH --gres=gpu:4\nvllm serve m\n", "a.sbatch")
        .launches[-1]
        .gpus_per_pod
        is None
    )


@pytest.mark.parametrize(
    ("command", "cards", "nodes"),
    [
        ("vllm serve m", 8, None),
        ("srun -N1 -n1 -c56 -G4 vllm serve m", 4, 1),
        ("srun --nodes=1 --gpus-per-node=2 --export=ALL,A=b vllm serve m", 2, 1),
        ("CUDA_VISIBLE_DEVICES=0,1 srun --exclusive vllm serve m", 2, None),
        ("srun bash -c 'vllm serve m --nnodes 2'", 8, 2),
        ("srun --ntasks=2 vllm serve m --nnodes=$SLURM_NNODES", 8, 2),
        ("srun -w n1 ray start --head &\nsrun -w n2 ray start --address x\nvllm serve m", 8, 2),
    ],
)
def test_steps_run_on_what_they_are_given(read, command, cards, nodes):
    launch = read(script("--nodes=2", "--gpus-per-node=8", command=command), "job.slurm").launches[-1]
    assert [value(word) for word in launch.argv[:3]] == ["vllm", "serve", "m"]
    assert (value(launch.gpus_per_pod), value(launch.pods)) == (cards, nodes)


def test_slurms_variables_come_from_the_directives(read, words):
    got = read(
        script("-N 2", "--gpus-per-node=4", command="vllm serve m -tp $((SLURM_NNODES * SLURM_GPUS_ON_NODE))"),
        "j.sbatch",
    )
    assert words(got.only)[-1] == "8"
    open_number = read(script("-N 2", command="vllm serve m -tp $SLURM_GPUS_ON_NODE"), "j.sbatch").only
    assert isinstance(open_number.argv[-1], Unknown)


@pytest.mark.parametrize(
    ("command", "image"),
    [
        ("srun --container-image=vllm/vllm-openai:v0.33.0 vllm serve m", "vllm/vllm-openai:v0.33.0"),
        ("srun --container-image nvcr.io#nvidia/vllm:26.01 --mpi=pmix vllm serve m", "nvcr.io/nvidia/vllm:26.01"),
        ("apptainer exec --nv --bind a:b docker://vllm/vllm-openai:v0.33.0 vllm serve m", "vllm/vllm-openai:v0.33.0"),
        ("singularity exec --nv /images/vllm.sif vllm serve m", None),
        ("srun -n1 apptainer exec --rocm x.sif bash -c 'vllm serve m'", None),
    ],
)
def test_containers_are_looked_into(read, words, command, image):
    launch = read(script(command=command), "job.sh").only
    assert words(launch) == ["vllm", "serve", "m"]
    assert value(launch.image) == image


def test_a_launcher_is_given_the_engines_arguments(read, words):
    got = read(
        'sml advanced --system s --nodes-per-replica 4 --replicas 2 --framework vllm \\\n --framework-args "--model m \\\n'
        '   --tensor-parallel-size 16"\n',
        "launch.sh",
    )
    assert words(got.only) == ["vllm", "serve", "--model", "m", "--tensor-parallel-size", "16"]
    assert (value(got.only.pods), value(got.only.replicas)) == (4, 2)
    assert got.cut(got.only.argv[-1]) == "16"


RECIPE = """
name: big
model: {path: alias, container: "vllm/vllm-openai:v0.33.0", precision: fp8}
resources:
  gpu_type: gb200
  gpus_per_node: 4
  prefill_nodes: 4
  prefill_workers: 2
  decode_nodes: 3
  decode_workers: 1
  gpus_per_decode: 12
backend:
  type: vllm
  prefill_environment: {A: b}
  vllm_config:
    prefill: {tensor-parallel-size: 8, max-model-len: 9216}
    decode: {tensor-parallel-size: 12}
"""


def settings(launch):
    return {entry.key.value: entry.value.value for entry in launch.settings}


def test_a_recipe_has_a_launch_for_each_kind_of_workers(read, words):
    got = read(RECIPE, "recipe.yaml")
    prefill, decode = got.launches
    assert (prefill.name, decode.name) == ("srt/big/prefill", "srt/big/decode")
    assert words(prefill) == ["python3", "-m", "dynamo.vllm"]
    assert settings(prefill) == {"model": "alias", "tensor-parallel-size": 8, "max-model-len": 9216}
    assert [value(number) for number in (prefill.gpus_per_pod, prefill.pods, prefill.replicas)] == [4, 2, 2]
    assert [value(number) for number in (decode.gpus_per_pod, decode.pods, decode.replicas)] == [4, 3, 1]
    assert (value(prefill.gpu), value(prefill.image), value(prefill.env["A"])) == (
        "gb200",
        "vllm/vllm-openai:v0.33.0",
        "b",
    )
    assert got.cut(decode.pods) == "3"


def test_workers_that_share_a_node_have_a_part_of_its_cards(read):
    recipe = RECIPE.replace("prefill_nodes: 4", "prefill_nodes: 1")
    prefill = read(recipe, "recipe.yaml").launches[0]
    assert [value(number) for number in (prefill.gpus_per_pod, prefill.pods)] == [2, 1]


def test_a_recipe_with_roles_is_read_too(read):
    got = read(
        """
schema: 2
model: {path: /m, container: "lmsysorg+sglang+v0.5.5.sqsh"}
resources: {gpu_type: h100, gpus_per_node: 8}
engine: sglang
roles:
  agg: {nodes: 2, workers: 1, args: {tensor-parallel-size: 16}}
  decode: {nodes: colocate, workers: 1, gpus: 4, args: {tp-size: 4, model-path: /other}}
""",
        "recipe.yaml",
    )
    decode, aggregated = got.launches
    assert settings(aggregated) == {"tensor-parallel-size": 16, "model-path": "/m"}
    assert settings(decode)["model-path"] == "/other"
    assert [value(number) for number in (aggregated.gpus_per_pod, aggregated.pods)] == [8, 2]
    assert [value(number) for number in (decode.gpus_per_pod, decode.pods)] == [4, 1]
    assert value(aggregated.image) == "lmsysorg/sglang:v0.5.5"


def test_a_recipe_whose_frontend_is_the_engine_starts_that_itself(read, words):
    prefill, _decode = read(RECIPE + "frontend: {type: vllm}\n", "recipe.yaml").launches
    assert words(prefill) == ["vllm", "serve", "alias"]
    assert settings(prefill) == {"tensor-parallel-size": 8, "max-model-len": 9216}
