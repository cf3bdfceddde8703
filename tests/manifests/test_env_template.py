"""Manifests that envsubst fills in before they are applied: `${NAME}` anywhere in the YAML."""

from __future__ import annotations

from shardlint.findings import Located, Unknown
from shardlint.text import Source, documents

WORKER = """
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: ${NAME}-worker
      labels: { part-of: ${NAME}, component: worker }
    spec:
      template:
        spec:
          nodeSelector: { node.kubernetes.io/instance-type: ${INSTANCE_TYPE} }
          containers:
            - name: vllm
              image: ${REGISTRY}${IMAGE}
              command: ["/bin/bash", "-c"]
              args:
                - |-
                  for i in ${DOLLAR}(seq 1 3); do echo "${DOLLAR}i { ${NAME} }"; done
                  exec vllm serve --model ${MODEL} --tensor-parallel-size ${GPUS} --max-model-len 4096
              resources:
                limits: { nvidia.com/gpu: "${GPUS}", memory: ${MEMORY} }
    """


def test_placeholders_in_flow_mappings_are_no_mistake_and_their_values_are_unknown(read):
    got = read(WORKER, path="worker.yaml-template")
    launch = got.launches[-1]
    assert launch.name == "Deployment/${NAME}-worker"
    assert [word.spelled for word in launch.argv if isinstance(word, Unknown)] == ["${MODEL}", "${GPUS}"]
    assert launch.argv[-1].value == "4096"
    assert isinstance(launch.gpus_per_pod, Unknown) and "${GPUS}" in launch.gpus_per_pod.spelled
    assert isinstance(launch.gpu, Unknown) and launch.gpu.spelled == "${INSTANCE_TYPE}"
    assert isinstance(launch.image, Unknown) and launch.image.spelled == "${REGISTRY}${IMAGE}"
    assert got.cut(launch.gpu) == "${INSTANCE_TYPE}"


def test_the_escape_for_a_dollar_that_is_to_stay_is_one_for_the_shell(read):
    got = read(WORKER.replace("--max-model-len 4096", "--max-model-len ${DOLLAR}{LENGTH:-2048}"))
    assert got.launches[-1].argv[-1].value == "2048"


def test_only_the_document_that_a_placeholder_breaks_is_read_anew():
    text = "a: { b: ${X} }\n---\nc: ${Y}\n---\nd: [\n"
    parsed = documents(Source("x.yaml", text))
    broken, plain = (document.root for document in parsed.documents)
    assert isinstance(broken.get("a", "b").located(), Unknown)
    assert isinstance(plain.get("c").located(), Located)
    assert [problem.at.line for problem in parsed.problems] == [6]


def test_what_a_placeholder_does_not_explain_stays_a_mistake():
    parsed = documents(Source("x.yaml", "a: { b: ${X} ]\n"))
    assert not parsed.documents and len(parsed.problems) == 1


def test_compose_reads_its_yaml_before_it_fills_placeholders_in():
    parsed = documents(Source("compose.yaml", "services: { llm: { image: ${IMAGE} } }\n"))
    assert not parsed.documents and len(parsed.problems) == 1
