"""Files of variables that a Compose file or a script names."""

from __future__ import annotations

import pytest

from shardlint.findings import Located, Unknown


def values(launch) -> dict[str, str | None]:
    return {name: word.value if isinstance(word, Located) else None for name, word in launch.env.items()}


def compose(lines: str) -> str:
    return "services:\n  llm:\n" + "".join(f"    {line}\n" for line in lines.splitlines())


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=8", "8"),
        ("export A = 8 # cards", "8"),
        ("A=8\r", "8"),
        ("A=", ""),
        ("A='$X # y'", "$X # y"),
        ('A="a\\"b\\\\c\\nd"', 'a"b\\c\nd'),
        ('A="\\$X"', "$X"),
        ("X=1\nA=${X}2", "12"),
        ("A=${Y:-3}", "3"),
        ("A=$PROJECT", "p"),
        ("A=$FIRST", "first"),
        ("PROJECT=own\nA=$PROJECT", "own"),
        ("A=$NOWHERE", None),
        ("A=1\nA=2", "2"),
        ("#A=1\nA=2", "2"),
    ],
)
def test_a_line_of_an_env_file_is_read_as_compose_does(read, line, value):
    files = {"deploy/.env": "PROJECT=p\nFIRST=no\n", "deploy/first.env": "FIRST=first\n", "deploy/a.env": line + "\n"}
    assert values(read(compose("env_file: [first.env, ./a.env]"), **files).only)["A"] == value


def test_the_format_raw_takes_all_behind_the_sign(read):
    got = read(compose("env_file: [{path: a.env, format: raw}]"), **{"deploy/a.env": 'A="$X" # y\n'})
    assert values(got.only) == {"A": '"$X" # y'}


def test_a_path_may_hold_variables_and_a_file_may_be_missing(read):
    got = read(
        compose("env_file: ['${STAGE:-dev}.env', {path: gone.env, required: false}]"), **{"deploy/dev.env": "A=1\n"}
    )
    assert values(got.only) == {"A": "1"}


def test_what_the_service_says_itself_wins_and_env_files_replace_nothing_in_the_command(read, words):
    got = read(
        compose("env_file: a.env\nenvironment: {A: mine}\ncommand: [$A, $B]"),
        **{"deploy/a.env": "A=file\nB=file\n", "deploy/.env": "B=project\n"},
    )
    assert values(got.only) == {"A": "mine", "B": "file"}
    assert words(got.only) == ["<$A>", "project"]


SERVE = "vllm serve $MODEL -tp $TP\n"


@pytest.mark.parametrize(
    "source",
    [
        "source ./serve.env",
        ". serve.env",
        "set -a; source serve.env; set +a",
        'source "$(dirname "$0")/serve.env"',
        'HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nsource "$HERE/serve.env"',
        'source "${0%/*}/serve.env"',
        "[ -f serve.env ] && source serve.env",
        "if [[ -f serve.env ]]; then\n  set -a\n  . ./serve.env\nfi",
        "FILE=serve.env\nif [ ! -f $FILE ]; then exit 1; fi\nsource $FILE",
        "export $(grep -v '^#' serve.env | xargs)",
        "export $(cat ./serve.env)",
    ],
)
def test_a_script_takes_the_variables_of_a_file(read, words, source):
    files = {"bin/serve.env": "# ours\nMODEL=org/model\nTP=${TP:-4}\n"}
    launch = read(f"{source}\n{SERVE}", "bin/run.sh", **files).launches[-1]
    assert words(launch) == ["vllm", "serve", "org/model", "-tp", "4"]
    assert (launch.argv[4].span.path, launch.argv[4].span.line) == ("bin/serve.env", 3)


def test_only_what_is_exported_reaches_the_engine(read):
    files = {"x.env": "export A=1\nB=2\n"}
    assert values(read("source x.env\nvllm serve m\n", "run.sh", **files).launches[-1]) == {"A": "1"}
    assert values(read("set -a\n. x.env\nset +a\nC=3\nvllm serve m\n", "run.sh", **files).launches[-1]) == {
        "A": "1",
        "B": "2",
    }


@pytest.mark.parametrize("source", ["source gone.env", "source $WHERE/x.env", 'source "$(pwd)/x.env"', "source"])
def test_a_file_that_is_not_there_sets_nothing(read, words, source):
    got = read(f"{source}\nvllm serve m -tp $TP\n", "run.sh", **{"x.env": "TP=2\n"})
    assert words(got.launches[-1])[-1] == "<$TP>"


def test_commands_of_a_file_that_is_sourced_are_its_own(read, words):
    got = read("source lib.sh\nvllm serve m\n", "run.sh", **{"lib.sh": "vllm serve other\nf() { exit 1; }\n"})
    assert [words(launch) for launch in got.launches] == [["source", "lib.sh"], ["vllm", "serve", "m"]]


def test_files_that_source_each_other_end(read):
    files = {"a.sh": "source b.sh\n" * 50 + "A=1\n", "b.sh": "source a.sh\n" * 50 + "B=1\n"}
    assert read("source a.sh\nvllm serve m\n", "run.sh", **files).launches


def test_a_file_of_docker_run_is_taken_as_it_stands_and_gives_way(read):
    got = read(
        "export D=outer\ndocker run --env-file x.env -e B=mine vllm/vllm-openai --model m\n",
        "bin/run.sh",
        **{"bin/x.env": '# no\nA="1" # y\nB=2\nC\nD\n\n'},
    ).launches[-1]
    assert values(got) == {"A": '"1" # y', "B": "mine", "C": None, "D": "outer"}
    assert isinstance(got.env["C"], Unknown)
    assert (got.env["A"].span.path, got.env["A"].span.line) == ("bin/x.env", 2)
