from shardlint import engines
from shardlint.deployment import Server
from shardlint.findings import Unknown

RECIPE = """
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: prefill-filter}]
prefill:
  tp: 1
  enable-expert-parallel: true
  extra-args: >-
    --max-model-len 4096
    --compilation-config {"mode":0}
  env: {A: "1"}
decode:
  tp: 8
  enable-expert-parallel: false
"""


def told(launch):
    return engines.read(Server(engines.recognise(launch), launch))


def test_each_role_is_a_deployment(read, words):
    prefill, decode = (got := read(RECIPE)).launches
    assert (got.form, prefill.name, decode.name) == (
        *("llmd-recipe", "EndpointPickerConfig/prefill", "EndpointPickerConfig/decode"),
    )
    assert words(prefill)[3:] == ["--max-model-len", "4096", "--compilation-config", '{"mode":0}']
    assert got.cut(prefill.argv[4]) == "4096"
    knobs = told(prefill).knobs
    assert (knobs["tensor_parallel_size"].value, knobs["enable_expert_parallel"].value) == (1, True)
    assert told(decode).knobs["tensor_parallel_size"].value == 8
    assert prefill.env["A"].value == "1"
    assert not told(prefill).flag_problems and not told(decode).flag_problems


def test_what_the_script_decides_is_unknown(read):
    prefill, decode = (told(launch) for launch in read(RECIPE).launches)
    assert isinstance(prefill.model, Unknown)
    assert isinstance(read(RECIPE).launches[0].pods, Unknown)
    assert isinstance(prefill.knobs["data_parallel_size"], Unknown)
    assert "data_parallel_size" not in decode.knobs


def test_a_configuration_alone_starts_nothing(read):
    assert read("kind: EndpointPickerConfig\nplugins: []\nschedulingProfiles: [{name: prefill}]\n").launches == ()
