"""Shell scripts as commands: what each word is, where it was written, and what cannot be known."""

import subprocess
import sys
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shardlint.findings import Located, Span, Unknown
from shardlint.text import Fragment, Scalar, Source, documents, shell


def read(text, env=None):
    return shell.read(Fragment.whole(Source("run.sh", text)), env or {})


def value(word):
    return word.value if isinstance(word, Located) else "?" + word.reason


def commands(text, env=None):
    return [" ".join(value(word) for word in command.words) for command in read(text, env).commands]


def words(text, env=None):
    """The words of the last command."""
    return [value(word) for word in read(text, env).commands[-1].words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vllm serve 'a b' \"c d\" e\\ f", ["vllm", "serve", "a b", "c d", "e f"]),
        ("x 'a'\"b\"c'd'", ["x", "abcd"]),
        ("x '' \"\"", ["x", "", ""]),
        ('x "a\\"b\\$c\\`d\\e"', ["x", 'a"b$c`d\\e']),
        ("x $'a\\tb\\x41\\u00e9\\'' $\"q\"", ["x", "a\tbAé'", "q"]),
        ("x \\\n  --a \\\n  b", ["x", "--a", "b"]),
        ("x --a\\\n=b", ["x", "--a=b"]),
        ("x \\ --tp 8", ["x", " --tp", "8"]),
        ("x {a,b} *.py ~/y", ["x", "{a,b}", "*.py", "~/y"]),
        ('x --z=\'{"a": 1}\' {"a":1}', ["x", '--z={"a": 1}', "{a:1}"]),
        ("x --f=a b= =c", ["x", "--f=a", "b=", "=c"]),
        ("x # comment\n", ["x"]),
        ("x > log 2>&1 --late 3 < in", ["x", "--late", "3"]),
        ("x --a 1 2>> log | tee y", ["tee", "y"]),
        ('x <<< "$Y" --b', ["x", "--b"]),
        ("x é 😀 --tp 8", ["x", "é", "😀", "--tp", "8"]),
    ],
)
def test_quotes_escapes_and_redirections(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('A=8; x $A ${A} --a=$A --b=${A}c "$A"', ["x", "8", "8", "--a=8", "--b=8c", "8"]),
        ("A='1 2'; x $A \"$A\" '$A'", ["x", "1", "2", "1 2", "$A"]),
        ('A=; x $A "$A" y', ["x", "", "y"]),
        ("x ${A:-8} ${A-9} ${A:=7} $A", ["x", "8", "9", "7", "7"]),
        ("x ${A:-${B:-${C:-3}}}", ["x", "3"]),
        ('x ${A:-"b c"} ${A:-b c}', ["x", "b c", "b", "c"]),
        ("A=; x ${A:-8} ${A-9}end ${A:+no} ${A+yes}", ["x", "8", "end", "yes"]),
        ("A=1; x ${A:+--flag v} ${B:+--no}", ["x", "--flag", "v"]),
        ("A=5; A=${A:-8}; x $A", ["x", "5"]),
        ('A=a; B=$A/b; C="$B/c"; x $C', ["x", "a/b/c"]),
        ('A=--a; A="$A --b"; A+=" --c"; x $A', ["x", "--a", "--b", "--c"]),
        ("A=(--a 'b c' d); A+=(e); x \"${A[@]}\"", ["x", "--a", "b c", "d", "e"]),
        ("A=(a 'b c'); x ${A[@]} \"${A[*]}\" ${A[1]} $A ${#A[@]}", ["x", "a", "b", "c", "a b c", "b", "c", "a", "2"]),
        ('A=(\n --a # why\n 1\n --b\n); x "${A[@]}"', ["x", "--a", "1", "--b"]),
        ('A=(); x "${A[@]}" y', ["x", "y"]),
        ("A=2; x $((A*4)) $(( $A + 1 )) $(((1+2)*3)) $((7/2)) $((-7%3))", ["x", "8", "3", "9", "3", "-1"]),
        (
            "A=org/Model-8B; x ${A##*/} ${A%%/*} ${A#org/} ${A%B} ${A,,}",
            ["x", "Model-8B", "org", "Model-8B", "org/Model-8", "org/model-8b"],
        ),
        ("A=1; unset A; x ${A:-2}", ["x", "2"]),
        ('set -- a \'b c\'; x $1 "$2" "$@"', ["x", "a", "b c", "a", "b c"]),
        ("x ${1:-8}", ["x", "8"]),
        ("declare -r A=1; readonly B=2; local C=3; typeset D=4; x $A $B $C $D", ["x", "1", "2", "3", "4"]),
        ("let A=2*3; ((B=A+1)); x $A $B", ["x", "6", "7"]),
        ("A=1 B=2; x $A $B", ["x", "1", "2"]),
        ("A=1; A=2 x $A", ["x", "1"]),
        ("x ${A:-'b}'}", ["x", "b}"]),
    ],
)
def test_variables(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "reason", "spelled"),
    [
        ("x $A", "$A is not set in this file", "$A"),
        ("x --port=${PORT}", "$PORT is not set in this file", "--port=${PORT}"),
        ("x ${A:?must be set}", "$A is not set in this file", "${A:?must be set}"),
        ("x $1", "$1 is given when it runs", "$1"),
        ('x "$@"', "$@ is given when it runs", '"$@"'),
        ("x $(nvidia-smi | wc -l)", "decided when it runs: $(nvidia-smi | wc -l)", "$(nvidia-smi | wc -l)"),
        ("x `nproc`", "decided when it runs: `nproc`", "`nproc`"),
        ("A=$(nproc); x --tp=$A", "decided when it runs: $(nproc)", "--tp=$A"),
        ("x $((A*2))", "$A is not set in this file", "$((A*2))"),
        ("x $((1/0))", "the arithmetic divides by 0", "$((1/0))"),
        ("read A; x $A", "$A is read when it runs", "$A"),
        ("A=a; x ${A/a/b}", "decided when it runs: ${A/a/b}", "${A/a/b}"),
        ("x ${!A}", "decided when it runs: ${!A}", "${!A}"),
    ],
)
def test_what_cannot_be_known_says_why(text, reason, spelled):
    word = read(text).commands[-1].words[-1]
    assert isinstance(word, Unknown)
    assert (word.reason, word.spelled) == (reason, spelled)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if c; then A=1; else A=2; fi; x $A", "?$A is set only under a condition"),
        ("if c; then A=1; else A=1; fi; x $A", "1"),
        ("A=1; if c; then A=2; fi; x $A", "?$A is set only under a condition"),
        ("if c; then A=2; elif d; then A=2; fi; x $A", "?$A is set only under a condition"),
        ('if [ -z "$A" ]; then A=8; fi; x $A', "8"),
        ('A=4; if [ -z "$A" ]; then A=8; fi; x $A', "4"),
        ("A=4; if [[ $A == 4 ]]; then B=1; else B=2; fi; x $B", "1"),
        ("A=4; if [ $A -gt 4 ]; then B=1; elif [ $A -eq 4 ]; then B=2; else B=3; fi; x $B", "2"),
        ("case $Q in a) A=1;; *) A=2;; esac; x $A", "?$A is set only under a condition"),
        ("Q=b; case $Q in a) A=1;; b|c) A=2;; *) A=3;; esac; x $A", "2"),
        ("A=1; for i in 1 2; do A=$i; done; x $A", "?$i takes several values in a loop"),
        ("for i in 7; do A=$i; done; x $i", "7"),
        ("A=1; while c; do A=$((A+1)); done; x $A", "?$A changes in a loop"),
        ("declare -A A=([one]=1 [two]=2); x ${A[$K]:-3}", "?an array with keys is looked up when it runs"),
        ('[ -n "$A" ] || A=8; x $A', "8"),
        ("c && A=8 && x $A", "8"),
        ("c || A=8; x $A", "?$A is not set in this file"),
        ("(A=1); x $A", "?$A is not set in this file"),
        ("echo 1 | read A; x $A", "?$A is not set in this file"),
        ("{ A=1; }; x $A", "1"),
        ("f() { A=$1; }; f 8; x $A", "8"),
    ],
)
def test_branches_decide_what_is_known(text, expected):
    assert words(text)[-1] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a && b; c & d | e || f", ["a", "b", "c", "d", "e", "f"]),
        ("(a; b); { c; }; ! d", ["a", "b", "c", "d"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done; for i in 1 2; do e; done", list("abcde")),
        ("case $1 in x) a;; *) b;; esac", ["a", "b"]),
        ("exec nohup env A=1 vllm serve x", ["vllm serve x"]),
        ("sudo -u me -E timeout -k 5 60 nice -n 5 vllm x", ["vllm x"]),
        ("numactl --cpunodebind=0 -m 0 stdbuf -oL setsid vllm x", ["vllm x"]),
        ("time vllm x", ["vllm x"]),
        ("command -v vllm", ["command -v vllm"]),
        ("bash -c 'vllm serve x && ray stop'", ["vllm serve x", "ray stop"]),
        ('bash -lc "exec vllm x"', ["vllm x"]),
        ("sh -e -o pipefail -c 'vllm $1' name y", ["vllm y"]),
        ("eval \"vllm --a\" '$B'", ["vllm --a ?$B is not set in this file"]),
        ("bash run.sh", ["bash run.sh"]),
        ("f() { vllm $1; }; f a; f b", ["vllm a", "vllm b"]),
        ("f() { vllm $1; }", ["vllm ?$1 is given when it runs"]),
        ("function f { g; }; g() { vllm; }; f", ["vllm"]),
        ("f() { f; vllm; }; f", ["vllm"]),
        ("trap 'kill 0' EXIT; vllm", ["trap kill 0 EXIT", "vllm"]),
        ("CMD='vllm serve x'; $CMD --tp 8", ["vllm serve x --tp 8"]),
        ('CMD=(vllm serve x); exec "${CMD[@]}" --tp 8', ["vllm serve x --tp 8"]),
        ("exec > log 2>&1; vllm", ["vllm"]),
        ("cat <<EOF | sh -x\nhi\nEOF\nvllm", ["cat", "hi", "vllm"]),
        ("cat <<EOF && vllm\nhi\nEOF", ["cat", "vllm"]),
    ],
)
def test_commands(text, expected):
    assert commands(text) == expected


def test_commands_in_branches_say_so():
    found = read("a\nif b; then c; fi\nd || e\n").commands
    assert [command.conditional for command in found] == [False, False, True, False, True]


def test_a_command_is_told_that_its_script_does_not_wait_for():
    text = "a > log 2>&1 &\n( b & )\nnohup bash -c 'c' &\nd && e &\nf() { g; }\nf &\nfor x in 1 2; do h & done\ni; j"
    found = read(text).commands
    assert [value(command.words[0]) for command in found if not command.background] == ["i", "j"]


def place(word):
    return (word.span.line, word.span.column, word.span.end_column, word.spelled)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x --tp 8", (1, 8, 9, "8")),
        ("x '8'", (1, 4, 5, "8")),
        ("TP=8\nx $TP", (1, 4, 5, "8")),
        ("TP=${TP:-8}\nx ${TP}", (1, 10, 11, "8")),
        ("x --tp=${TP:-8}", (1, 3, 16, "--tp=${TP:-8}")),
        ("TP=8\nx --tp=$TP", (2, 3, 11, "--tp=$TP")),
        ("A='--tp 8'\nx $A", (1, 9, 10, "8")),
        ('T=8\nA="--pp 2 --tp=$T"\nx $A', (2, 11, 18, "--tp=$T")),
        ("A=(--tp\n  8)\nx ${A[@]}", (2, 3, 4, "8")),
        ("é='ü'; x 😀 8", (1, 12, 13, "8")),
        ("bash -c 'x 8'", (1, 12, 13, "8")),
        ("x $((2*4))", (1, 3, 11, "$((2*4))")),
        ("x $Q", (1, 3, 5, "$Q")),
        ('bash -c "x $Q"', (1, 12, 14, "$Q")),
    ],
)
def test_a_word_stands_where_somebody_wrote_it(text, expected):
    assert place(read(text).commands[-1].words[-1]) == expected


def test_the_environment_of_a_command():
    found = read("A=1\nexport B=2 C\nC=$A\nD=4 env E=5 vllm\nexport -n B\nx").commands
    assert {name: value(word) for name, word in found[0].env.items()} == {"B": "2", "C": "1", "D": "4", "E": "5"}
    assert set(found[1].env) == {"C"}


def test_given_variables_stand_where_they_were_given():
    env = {"TP": Located("8", Span("other.env", 3, 4, 3, 5), "8"), "S": Unknown("it is a secret")}
    command = read('x $TP "$S" ${S:-1}', env).commands[0]
    assert [value(word) for word in command.words] == ["x", "8", "?it is a secret", "?it is a secret"]
    assert command.words[1].span == Span("other.env", 3, 4, 3, 5)
    assert value(command.env["TP"]) == "8"


def test_an_inner_shell_knows_only_what_is_exported():
    assert words("A=1; export B=2; bash -c 'x $A $B'") == ["x", "?$A is not set in this file", "2"]


def test_here_documents_are_texts_with_places():
    command = read("cat > x <<EOF\na: $B\nc: 8\nEOF\ny").commands[0]
    heredoc = command.heredocs[0]
    assert heredoc.restored() == "a: $B\nc: 8\n"
    start = heredoc.text.index("8")
    assert heredoc.span(start, start + 1) == Span("run.sh", 3, 4, 3, 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bash <<EOF\nx 1\nEOF", ["x 1"]),
        ("B=2\nsudo bash -s <<EOF\nx $B\nEOF", ["x 2"]),
        ("export B=2\nbash <<'EOF'\nx $B\nEOF", ["x 2"]),
        ("B=2\ncat <<EOF | bash\nx $B\nEOF", ["cat", "x 2"]),
        ("sbatch --parsable <<EOF\nx 1\nEOF", ["x 1"]),
        ("python <<EOF\nx 1\nEOF", ["python"]),
    ],
)
def test_shells_read_here_documents(text, expected):
    assert commands(text) == expected


def test_variables_are_put_into_a_here_document_unless_its_mark_is_quoted():
    text = "B=8\ncat <<%s\na: $B\nEOF\n"
    assert read(text % "EOF").commands[0].heredocs[0].text == "a: 8\n"
    assert read(text % "'EOF'").commands[0].heredocs[0].text == "a: $B\n"


def test_read_takes_words_from_a_text():
    assert words('X=\'--a 1\'; read -r -a A <<<"$X"; x "${A[@]}"') == ["x", "--a", "1"]
    assert words("read -r A <<< 'b c'; x \"$A\"") == ["x", "b c"]
    assert words('read -r -a A <<<"$Y"; x ${A[0]}')[1].startswith("?")


def test_tabs_before_here_document_lines_are_taken_off():
    assert read("if a; then\n\tcat <<-EOF\n\tb: 1\n\t\tc\n\tEOF\nfi").commands[-1].heredocs[0].text == "b: 1\nc\n"


def test_words_can_be_read_as_scripts_in_turn():
    command = read("docker run img bash -c 'vllm \"a b\" 8'").commands[0]
    inner = shell.read(command.texts[-1]).commands[0]
    assert [value(word) for word in inner.words] == ["vllm", "a b", "8"]
    assert place(inner.words[-1]) == (1, 36, 37, "8")


def test_a_script_in_a_yaml_scalar_has_places_in_the_file():
    text = 'a: "vllm \\"x y\\" \\\n  --tp 8"\nb: >-\n  vllm\n  --tp\n  8\n'
    root = documents(Source("x.yaml", text)).documents[0].root
    for key, expected in (("a", (2, 8, 9, "8")), ("b", (6, 3, 4, "8"))):
        scalar = root.get(key)
        assert isinstance(scalar, Scalar)
        assert place(shell.read(scalar.fragment()).commands[0].words[-1]) == expected


def test_templates_are_words_that_are_not_known():
    text = "a: |\n  vllm serve {{ .model }} \\\n  {{- if .tp }}\n    --tp={{ .tp }} \\\n  {{- end }}\n    --pp 2\n"
    scalar = documents(Source("x.yaml", text)).documents[0].root.get("a")
    found = shell.read(scalar.fragment()).commands
    assert len(found) == 1
    assert [value(word) for word in found[0].words] == [
        "vllm", "serve", "?templated", "?templated", "?templated", "?templated", "--pp", "2",
    ]  # fmt: skip
    assert found[0].words[2].spelled == "{{ .model }}"
    assert found[0].words[4].spelled == "--tp={{ .tp }}"


def test_errors_lose_only_what_they_touch():
    assert "vllm serve x --tp 8" in commands("vllm serve x --tp 8\nif [ ; then\n(((\n")


def test_a_text_that_is_no_script_is_a_problem():
    problems = read(")))((( <<<").problems
    assert len(problems) == 1
    assert problems[0].at.line == 1


@pytest.mark.parametrize(
    "text",
    [
        "f() { g; g; }\ng() { h; h; }\nh() { i; i; }\ni() { f; x; }\n" + "f\n" * 50,
        "X=a\n" + "X=$X$X\n" * 60 + "x $X",
        "x " + "${A:-" * 2000 + "1" + "}" * 2000,
        "x $((" + "(" * 3000 + "1" + ")" * 3000 + "))",
        "(" * 3000 + "x" + ")" * 3000,
        "if a; then " * 500 + "x" + "; fi" * 500,
        "bash -c '" * 50,
        "x " + "'" * 9999,
        "eval " * 500 + "x",
        "vllm serve x --tp 8\n" * 100_000,
        "A=1\n" * 30_000 + "x $A",
        'x "$(' * 3000,
        "while " * 1000,
    ],
    ids=range(13),
)
def test_hostile_scripts_end_soon(text):
    start = time.process_time()
    read(text)
    assert time.process_time() - start < 5


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(
    ["x", " ", "\n", "'", '"', "$", "{", "}", "(", ")", "A", "=", ":-", "[", "]", "`", "\\", "if ", "then ", "fi", ";",
     "do ", "done", "for ", "in ", "case ", "esac", "|", "&", "<<EOF", "EOF", "#", "é", "\0", "+=", "@", "$((", "))",
     "export ", "bash -c ", "eval ", "f() ", "set -- ", "\U0010f5a5", "\ud800"]), max_size=25).map("".join))  # fmt: skip
@example('$((x$"))')
@example("$((1)")
def test_no_text_is_too_strange(text):
    script = read(text)
    for command in script.commands:
        for word in (*command.words, *command.env.values()):
            assert isinstance(word, Located | Unknown)
        assert len(command.words) == len(command.texts)


PLAIN = st.text(st.sampled_from("abé-=/.8 '\"$\\"), min_size=1, max_size=8)


@settings(max_examples=200, deadline=None)
@given(st.lists(PLAIN, min_size=1, max_size=5))
def test_single_quoted_words_come_out_as_they_went_in(texts):
    line = "x " + " ".join("'" + text.replace("'", "'\\''") + "'" for text in texts)
    assert words(line)[1:] == texts


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.sampled_from("abé8-="), min_size=1, max_size=5), min_size=1, max_size=6), st.data())
def test_each_word_stands_at_its_own_text(texts, data):
    line = "x"
    for text in texts:
        line += data.draw(st.sampled_from([" ", "  ", " \\\n ", "\t"])) + text
    source = Source("run.sh", line)
    for word in read(line).commands[0].words:
        start = source.offset(word.span.line, word.span.column)
        assert source.text[start : start + len(word.value)] == word.value == word.spelled


def test_characters_beyond_the_grammars_table_do_not_end_the_process():
    """The grammar's own scanner reads past a table for them: about half of such runs crashed."""
    code = (
        "from shardlint.text import Fragment, Source, shell\n"
        "for text in ('{\\U0010f5a5 x', '&[{\\U0010f5a5{:-', 'vllm serve \\U0001f389{\\U0010ffff'):\n"
        "    for _ in range(20):\n"
        "        shell.read(Fragment.whole(Source('a.sh', text)))\n"
    )
    for _ in range(4):
        assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
