import json

RECIPE = {
    "recipe_id": "llm_inference_nvidia",
    "deployment_name": "chat",
    "recipe_image_uri": "docker.io/vllm/vllm-openai:v0.9.1",
    "recipe_node_shape": "BM.GPU.H100.8",
    "recipe_replica_count": 2,
    "recipe_nvidia_gpu_count": 4,
    "recipe_container_env": [{"key": "tp", "value": "4"}],
    "recipe_container_command_args": ["--model", "org/model", "--tensor-parallel-size", "$(tp)"],
}


def read_as(read, recipe):
    return read(json.dumps(recipe, indent=1), "blueprint.json")


def test_a_recipe_is_a_deployment(read, words):
    got = read_as(read, RECIPE)
    assert (got.form, got.only.name, got.only.replicas.value) == ("oci-blueprint", "blueprint/chat", 2)
    assert words(got.only) == ["--model", "org/model", "--tensor-parallel-size", "4"]
    assert got.only.entrypoint_of_image
    assert got.cut(got.only.argv[3]) == "4"
    assert (got.only.gpus_per_pod.value, got.only.gpu.value, got.only.pods) == (4, "BM.GPU.H100.8", None)


def test_nodes_may_serve_together(read):
    shared = read_as(read, RECIPE | {"multinode_num_nodes_to_use_from_shared_pool": 2})
    assert shared.only.pods.value == 2
    cluster = read_as(read, RECIPE | {"recipe_raycluster_params": {"num_worker_nodes": 3}})
    assert (cluster.only.pods.value, cluster.only.pods.source) == (4, "a head + 3 workers")


def test_a_group_holds_recipes(read):
    group = {
        "deployment_group": {
            "name": "g",
            "deployments": [{"name": "db", "recipe": {}}, {"name": "llm", "recipe": RECIPE}],
        }
    }
    assert [launch.name for launch in read_as(read, group).launches] == ["blueprint/db", "blueprint/llm"]


def test_a_job_serves_nothing(read):
    assert read_as(read, RECIPE | {"recipe_mode": "job"}).launches == ()
