"""What an image starts, by the rules of `docker build` and `docker run`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardlint import manifests
from shardlint.findings import Located, Unknown
from shardlint.text import Source, documents

SERVE = "FROM vllm/vllm-openai:v0.8.5\n"


@pytest.fixture
def docker(read):
    return lambda text, path="image/Dockerfile": read(text, path)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("Dockerfile", "dockerfile"),
        ("a/vllm.Dockerfile", "dockerfile"),
        ("Dockerfile.gpu", "dockerfile"),
        ("Containerfile", "dockerfile"),
        ("gpu.dockerfile", "dockerfile"),
        ("Dockerfile.j2", "dockerfile"),
        ("Dockerfile.yaml", None),
        ("mydockerfiles.sh", "shell-script"),
    ],
)
def test_files_are_told_by_their_names(docker, path, form):
    assert docker(f'{SERVE}CMD ["--model", "m"]\n', path).form == form


def test_arguments_go_to_the_entrypoint_of_the_image(docker, words):
    got = docker(f'{SERVE}CMD ["--model", "org/model", "-tp", "2"]\n')
    only = got.only
    assert (words(only), only.entrypoint_of_image) == (["--model", "org/model", "-tp", "2"], True)
    assert (only.image.value, got.cut(only.image)) == ("vllm/vllm-openai:v0.8.5", "vllm/vllm-openai:v0.8.5")
    assert (only.name, only.kind, got.cut(only.at), got.cut(only.argv[3])) == (
        "Dockerfile",
        "dockerfile",
        "--model",
        "2",
    )


@pytest.mark.parametrize(
    ("lines", "argv"),
    [
        ('ENTRYPOINT ["vllm", "serve"]\nCMD ["m", "-tp", "2"]', ["vllm", "serve", "m", "-tp", "2"]),
        ('ENTRYPOINT ["vllm"]\nCMD ["old"]\nCMD ["serve", "m"]', ["vllm", "serve", "m"]),
        ('CMD ["m"]\nENTRYPOINT ["vllm", "serve"]', ["vllm", "serve", "m"]),
        ("ENTRYPOINT vllm serve m\nCMD [\"-tp\", \"2\"]", ["vllm", "serve", "m"]),
        ("CMD vllm serve m -tp 2", ["vllm", "serve", "m", "-tp", "2"]),
        ("cmd exec vllm serve m", ["vllm", "serve", "m"]),
        ('ENTRYPOINT ["/bin/bash", "-c"]\nCMD ["vllm serve m"]', ["vllm", "serve", "m"]),
        ('CMD ["sh", "-c", "vllm serve $0 -tp $1", "m", "2"]', ["vllm", "serve", "<$0>", "-tp", "2"]),
        ('CMD ["vllm", "serve", "a\\"b\\u00e9"]', ["vllm", "serve", 'a"bé']),
        ('CMD ["--model", "$MODEL"]', ["--model", "$MODEL"]),
        ('CMD ["vllm", \\\n  # the model\n\n  "serve", \\\n  "m"]', ["vllm", "serve", "m"]),
        ("CMD vllm serve m \\\n# why\n    -tp 2\n", ["vllm", "serve", "m", "-tp", "2"]),
        ('ENTRYPOINT ["vllm", "serve", "m"]', ["vllm", "serve", "m", '<"$@">']),
        ('ENTRYPOINT ["tini", "--", "vllm", "serve"]\nCMD ["m"]', ["tini", "--", "vllm", "serve", "m"]),
        ('HEALTHCHECK CMD curl x\nCMD ["m"]', ["m"]),
    ],
)  # fmt: skip
def test_what_is_started(docker, words, lines, argv):
    assert words(docker(f"FROM ubuntu\n{lines}\n").only) == argv


def test_variables_are_the_shells_in_one_form_and_text_in_the_other(docker, words):
    got = docker(
        'FROM x\nARG GONE=9\nENV TP=2 MODEL="org/my model"\nCMD vllm serve "$MODEL" -tp ${TP} -pp ${PP:-3} $GONE\n'
    )
    assert words(got.only) == ["vllm", "serve", "org/my model", "-tp", "2", "-pp", "3", "<$GONE>"]
    assert got.cut(got.only.argv[4]) == "2" and got.only.argv[4].span.line == 3
    assert got.only.env["TP"].value == "2" and "GONE" not in got.only.env


@pytest.mark.parametrize(
    ("lines", "name", "value"),
    [
        ("ENV A=1 B=$A", "B", None),
        ("ENV A=1\nENV A=2 B=$A", "B", "1"),
        ("ENV A one two", "A", "one two"),
        ("ENV A=one\\ two B='x y'", "A", "one two"),
        ('ENV A="x=\\"y\\""', "A", 'x="y"'),
        ("ENV A=a&b;c|d", "A", "a&b;c|d"),
        ("ARG A=1\nENV B=${A}", "B", "1"),
        ("ARG A\nENV B=${A}", "B", None),
        ("ARG A\nENV B=${A:-2}", "B", None),
        ("ENV B=${A:-2}", "B", "2"),
        ("ARG TAG\nENV B=$TAG", "B", "v1"),
        ("ENV A=1 \\\n    B=2", "B", "2"),
        ("ENV PATH=/x:$PATH", "PATH", None),
    ],
)
def test_variables_of_the_build(docker, lines, name, value):
    found = docker(f"ARG TAG=v1\nFROM x\n{lines}\nCMD x\n").only.env[name]
    assert (found.value if isinstance(found, Located) else None) == value


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("ARG TAG=v0.8.5\nFROM vllm/vllm-openai:${TAG}\n", "vllm/vllm-openai:v0.8.5"),
        ("ARG BASE=a:1\nARG IMAGE=$BASE\nFROM --platform=linux/amd64 $IMAGE AS serve\n", "a:1"),
        ("FROM a:1 AS base\nFROM b:2\n", "b:2"),
        ("FROM a:1 AS base\nFROM b:2 AS other\nFROM Base\n", "a:1"),
        ("ARG BASE\nFROM $BASE\n", None),
    ],
)
def test_the_image_is_the_last_stages(docker, text, image):
    found = docker(f"{text}CMD x\n").only.image
    assert (found.value if isinstance(found, Located) else None) == image


def test_a_stage_has_what_the_one_that_it_builds_on_has(docker, words):
    got = docker('FROM x AS base\nENV TP=2\nENTRYPOINT ["vllm", "serve"]\nFROM y AS z\nFROM base\nCMD ["m"]\n')
    assert words(got.only) == ["vllm", "serve", "m"] and got.only.env["TP"].value == "2"


def test_an_entrypoint_takes_away_the_command_that_came_with_the_image(docker, words):
    got = docker('FROM x AS base\nCMD ["m"]\nFROM base\nENTRYPOINT ["vllm", "serve"]\n')
    assert words(got.only) == ["vllm", "serve", '<"$@">']


def test_a_script_that_the_file_holds_is_read(docker, words):
    got = docker(
        "FROM x\nENV TP=2\nRUN <<EOF\nCMD nothing\nEOF\nCOPY --chmod=755 <<-'EOF' /start.sh\n\tpip install x\n"
        '\texec vllm serve m -tp $TP "$@"\n\tEOF\nENTRYPOINT ["bash", "/start.sh"]\nCMD ["--port", "80"]\n'
    )
    assert [words(launch) for launch in got.launches] == [
        ["pip", "install", "x"],
        ["vllm", "serve", "m", "-tp", "2", "--port", "80"],
    ]
    assert got.cut(got.launches[1].at) == "vllm" and got.cut(got.launches[1].argv[-1]) == "80"


def test_pins_of_installers_stand_before_what_is_started(docker, words):
    got = docker(
        'FROM python:3.12\nRUN --mount=type=cache,target=/x pip install vllm==0.10.0\nCMD ["vllm", "serve", "m"]\n'
    )
    assert [words(launch) for launch in got.launches] == [["pip", "install", "vllm==0.10.0"], ["vllm", "serve", "m"]]
    assert len({launch.unit for launch in got.launches}) == 1


def test_visible_devices_are_counted(docker):
    assert docker("FROM x\nENV CUDA_VISIBLE_DEVICES=0,1\nCMD vllm serve m\n").only.gpus_per_pod.value == 2


def test_another_escape_character_joins_lines(docker, words):
    got = docker("# escape=`\nFROM x\nCMD vllm serve m `\n  -tp 2\n")
    assert words(got.only) == ["vllm", "serve", "m", "-tp", "2"]


@pytest.mark.parametrize("text", ["", "FROM x\n", "FROM x\nRUN pip install vllm==0.1\n", "CMD x\n", "FROM\nCMD x\n"])
def test_an_image_that_starts_nothing_of_its_own_has_no_launch(docker, text):
    assert docker(text).launches == ()


LINES = st.sampled_from(
    ["FROM x", "FROM $A AS b", "from b", "ARG A=$A$A", "ARG A", "ENV A=1 B='", 'ENV A "$B', "ENV A=$B\\", "CMD [", 'CMD ["a", 1]',
     'CMD ["\\ud800"]', "CMD vllm serve $A \\", "# x", "", "ENTRYPOINT", "ENTRYPOINT []", "COPY <<EOF", "COPY --a=<<EOF", "COPY a /b/", "ADD --from=x / /", "RUN <<EOF == ", "EOF",
     "RUN pip install '==", "\\", "é\x00", "ENV", "FROM --x"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_nothing_raises_and_every_place_lies_in_the_file(lines, end):
    source = Source("Dockerfile", end.join(lines))
    count = source.text.count("\n") + 1
    for document in documents(source).documents:
        for launch in manifests.launches(document, library=None).launches:
            for word in (launch.image, *launch.argv):
                assert word is None or word.span is None or word.span.end_line <= count
                assert isinstance(word, Located | Unknown | None)
