"""Terraform: resources that start engines, with the variables and locals of their folder."""

from __future__ import annotations

import pytest

from shardlint.findings import Located, Unknown


def value(maybe):
    return maybe.value if isinstance(maybe, Located) else maybe and "unknown"


DEPLOYMENT = """
variable "tp" {
  type    = number
  default = 2
}
variable "model" {}
locals {
  image = "vllm/vllm-openai:${local.tag}"
  tag   = "v0.33.0"
}
resource "kubernetes_deployment_v1" "llm" {
  metadata {
    name = "llm"
  }
  spec {
    replicas = 3
    template {
      spec {
        node_selector = {
          "cloud.google.com/gke-accelerator" = "nvidia-l4"
        }
        container {
          name  = "server"
          image = local.image
          args  = concat(["--model", var.model, "--tensor-parallel-size=${var.tp}"], ["--max-model-len", tostring(4 * 1024)])
          env {
            name  = "CUDA_VISIBLE_DEVICES"
            value = "0,1"
          }
          resources {
            limits = {
              "nvidia.com/gpu" = var.tp + 2
            }
          }
        }
      }
    }
  }
}
"""


def test_a_deployment_in_blocks_is_read_as_the_object_it_makes(read, words):
    got = read(DEPLOYMENT, "main.tf")
    only = got.only
    assert (got.form, only.name) == ("terraform", "kubernetes_deployment_v1.llm")
    assert words(only) == ["--model", "<var.model>", "--tensor-parallel-size=2", "--max-model-len", "4096"]
    assert isinstance(only.argv[1], Unknown) and "model" in only.argv[1].reason
    assert (value(only.image), value(only.gpu)) == ("vllm/vllm-openai:v0.33.0", "nvidia-l4")
    assert (value(only.replicas), value(only.gpus_per_pod)) == (3, 2)
    assert got.cut(only.argv[2]) == "--tensor-parallel-size=${var.tp}"


def test_a_variable_comes_from_the_files_of_the_folder(read, words):
    got = read(DEPLOYMENT, "infra/main.tf", **{"infra__terraform.tfvars": 'model = "org/m"\ntp = 1\n'})
    assert words(got.only)[:3] == ["--model", "org/m", "--tensor-parallel-size=1"]
    assert got.only.argv[1].span.path == "infra/terraform.tfvars"


def with_args(expression: str, more: str = "") -> str:
    return (
        f'{more}\nresource "kubernetes_pod" "llm" {{\n  spec {{\n    container {{\n      image = "vllm/vllm-openai"\n'
        f"      args = {expression}\n    }}\n  }}\n}}\n"
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('["--model", format("%s/%s", "a", "b")]', ["--model", "a/b"]),
        ('true ? ["x"] : ["y"]', ["x"]),
        ('[for name in ["a", "b"] : "--${name}"]', ["--a", "--b"]),
        ('[for k, v in { tp = 2 } : "--${k}=${v}"]', ["--tp=2"]),
        ('compact(["a", "", "b"])', ["a", "b"]),
        ('flatten([["a"], ["b"]])', ["a", "b"]),
        ('[lookup({ a = "x" }, "a", "y"), lookup({ a = "x" }, "b", "y")]', ["x", "y"]),
        ('["${join(",", ["a", "b"])}"]', ["a,b"]),
        ('["\\"q\\""]', ['"q"']),
        ('[coalesce("", "b"), "${1 + 1}", upper("x")]', ["b", "2", "X"]),
        ('["a", data.x.y.z]', ["a", "<data.x.y.z>"]),
        ('["a", var.missing]', ["a", "<var.missing>"]),
        ('["a", local.loop]', ["a", "<local.loop>"]),
        ('["a", unknown_function(1)]', ["a", "<unknown_function(1)>"]),
        ('[merge({ a = "x" }, { a = "y" }).a]', ["y"]),
    ],
)
def test_expressions_are_worked_out_as_far_as_the_files_tell(read, words, expression, expected):
    assert words(read(with_args(expression, "locals {\n  loop = local.loop\n}"), "a.tf").only) == expected


def test_a_script_in_a_here_document_is_looked_into(read, words):
    got = read(
        'resource "kubernetes_pod" "llm" {\n  spec {\n    container {\n      image = "x"\n      command = ["bash", "-c"]\n'
        "      args = [<<-EOT\n        vllm serve org/m \\\n          -tp 4\n      EOT\n      ]\n    }\n  }\n}\n",
        "a.tf",
    )
    assert words(got.only) == ["vllm", "serve", "org/m", "-tp", "4"]
    assert got.cut(got.only.argv[4]) == "4"


def test_variables_from_a_config_map_of_the_file(read):
    got = read(
        'resource "kubernetes_config_map" "c" {\n  metadata {\n    name = "cfg"\n  }\n  data = {\n    TP = "4"\n  }\n}\n'
        'resource "kubernetes_pod" "llm" {\n  spec {\n    container {\n      image = "x"\n      command = ["vllm", "serve"]\n'
        '      env {\n        name = "A"\n        value_from {\n          config_map_key_ref {\n'
        '            name = kubernetes_config_map.c.metadata[0].name\n            key = "TP"\n          }\n        }\n      }\n'
        "    }\n  }\n}\n",
        "a.tf",
    )
    assert value(got.only.env["A"]) == "4"


def test_dynamic_blocks_and_copies(read):
    got = read(
        'resource "kubernetes_pod" "llm" {\n  for_each = { a = "org/a", b = "org/b" }\n  spec {\n    container {\n'
        '      image = "x"\n      command = ["vllm", "serve", each.value]\n      dynamic "env" {\n'
        '        for_each = { X = "1" }\n        content {\n          name = env.key\n          value = env.value\n'
        "        }\n      }\n    }\n  }\n}\n",
        "a.tf",
    )
    assert [launch.name for launch in got.launches] == ['kubernetes_pod.llm["a"]', 'kubernetes_pod.llm["b"]']
    assert [value(launch.argv[2]) for launch in got.launches] == ["org/a", "org/b"]
    assert value(got.launches[0].env["X"]) == "1"
    assert not read('resource "kubernetes_pod" "llm" {\n  count = 0\n}\n', "a.tf").launches


def test_objects_as_text_and_as_expressions(read, words):
    pod = 'apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{image: vllm/vllm-openai, args: ["--model", "m"]}]\n'
    text = read(f'resource "kubectl_manifest" "p" {{\n  yaml_body = <<YAML\n{pod}YAML\n}}\n', "a.tf")
    assert (text.only.name, words(text.only)) == ("Pod/p", ["--model", "m"])
    assert text.cut(text.only.argv[1]).strip('"') == "m"
    expression = read(
        'resource "kubernetes_manifest" "p" {\n  manifest = {\n    kind = "Pod"\n    spec = { containers = [{ image = "vllm/x",'
        ' args = ["--model=m"] }] }\n  }\n}\n',
        "a.tf",
    )
    assert words(expression.only) == ["--model=m"]


def test_a_container_of_docker(read, words):
    got = read(
        'resource "docker_container" "llm" {\n  image   = "vllm/vllm-openai:v0.33.0"\n  gpus    = "all"\n'
        '  command = ["--model", "m"]\n  env     = ["NVIDIA_VISIBLE_DEVICES=0,1"]\n}\n',
        "a.tf",
    )
    assert (words(got.only), value(got.only.gpus_per_pod)) == (["--model", "m"], 2)


def test_a_startup_script_runs_on_its_machine(read, words):
    got = read(
        'resource "aws_instance" "gpu" {\n  instance_type = "g5.12xlarge"\n  user_data = <<-EOF\n    #!/bin/bash\n'
        "    MODEL=org/m\n    vllm serve $MODEL --tensor-parallel-size $${TP:-4}\n  EOF\n}\n",
        "a.tf",
    )
    launch = got.launches[-1]
    assert words(launch) == ["vllm", "serve", "org/m", "--tensor-parallel-size", "4"]
    assert (value(launch.gpu), launch.name) == ("g5.12xlarge", "aws_instance.gpu")


def test_cloud_run_and_tasks(read, words):
    run = read(
        'resource "google_cloud_run_v2_service" "llm" {\n  template {\n    containers {\n      image = "vllm/vllm-openai"\n'
        '      args = ["--model=m"]\n      resources {\n        limits = { "nvidia.com/gpu" = "1" }\n      }\n    }\n'
        '    node_selector {\n      accelerator = "nvidia-l4"\n    }\n  }\n}\n',
        "a.tf",
    )
    assert (words(run.only), value(run.only.gpus_per_pod), value(run.only.gpu)) == (["--model=m"], 1, "nvidia-l4")
    task = read(
        'resource "aws_ecs_task_definition" "llm" {\n  container_definitions = jsonencode([{\n    image = "vllm/vllm-openai"\n'
        '    command = ["--model", "m"]\n    resourceRequirements = [{ type = "GPU", value = "4" }]\n  }])\n}\n',
        "a.tf",
    )
    assert (words(task.only), value(task.only.gpus_per_pod)) == (["--model", "m"], 4)


def test_an_image_that_its_variables_tell_what_to_serve(read):
    got = read(
        'resource "kubernetes_pod" "llm" {\n  spec {\n    container {\n      image = "${var.r}/team/vllm-own:1.2"\n'
        '      env {\n        name = "MODEL_NAME"\n        value = "org/m"\n      }\n'
        '      env {\n        name = "MAX_MODEL_LEN"\n        value = "4096"\n      }\n    }\n  }\n}\n',
        "a.tf",
    )
    assert {entry.key.value: entry.value.value for entry in got.only.settings} == {
        "model": "org/m",
        "max-model-len": "4096",
    }


@pytest.mark.parametrize("text", ['resource "kubernetes_pod" "vllm" {', "vllm = {{{", "resource {}", "vllm <<EOT", ""])
def test_a_broken_file_is_no_crash(read, text):
    read(text, "a.tf")
