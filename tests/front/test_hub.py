"""`shardlint models add` against a real hub on the loopback interface, in all its moods."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from loopback_hub import COMMIT, Answer, Asked, Loopback, Reply, as_json, listening, refused, repository, safetensors

from shardlint.front.hub import Hub
from shardlint.front.library import DiskLibrary
from shardlint.front.main import main
from shardlint.text import ModelFiles

MOST_SECONDS = 5.0
TOKEN = "hf_AbCdEfGhIjKlMnOp"
CONFIG = {"model_type": "llama", "num_attention_heads": 32, "architectures": ["LlamaForCausalLM"], "x": float("inf")}
PARTS = {
    "model-00001-of-00002.safetensors": safetensors({"a": ("BF16", [4, 8], 64), "b": ("F32", [2], 8)}),
    "model-00002-of-00002.safetensors": safetensors({"c": ("BF16", [10], 20)}, padding=150_000),
}
FILES = {
    "config.json": json.dumps(CONFIG).encode(),
    "generation_config.json": b'{"eos_token_id": 2}',
    "README.md": b"words",
    **PARTS,
}

RESOLVER = """\
import socket, sys, time
def resolve(*_arguments, **_more):
    if sys.argv[1] == "stuck":
        time.sleep(60)
    raise socket.gaierror(-2, "Name or service not known")
socket.getaddrinfo = resolve
from shardlint.front.main import main
sys.exit(main(sys.argv[2:]))
"""


class Run(NamedTuple):
    code: int
    out: str
    err: str
    seconds: float


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def run(*words: str, endpoint: str, start: tuple[str, ...] = ("-m", "shardlint"), **environ: str) -> Run:
    """One command in a process of its own, with nothing of the caller's environment but what finds programs."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    home = str(Path.cwd().parent / "home")
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, *start, *words],
        env={**kept, "HOME": home, "HF_ENDPOINT": endpoint, "NO_PROXY": "*", **environ},
        capture_output=True,
        text=True,
        timeout=30,
    )
    return Run(done.returncode, done.stdout, done.stderr, time.monotonic() - begun)


def add(*ids: str, hub: Loopback, **environ: str) -> Run:
    return run("models", "add", *ids, endpoint=hub.endpoint, **environ)


def failing(answer: Answer, word: str = "org/name", **environ: str) -> str:
    """What is said of a hub in that mood: one line, in time, and nothing is kept."""
    with listening(answer) as hub:
        done = add(word, hub=hub, **environ)
        said = done.err.replace(hub.host, "HUB")
    assert (done.code, done.out) == (2, "")
    assert done.seconds < MOST_SECONDS
    assert not Path(".shardlint").exists()
    assert said.startswith(f"shardlint: {word}: ")
    assert said.count("\n") == 1 and said.endswith("\n")
    assert "words of the hub" not in said
    return said.removeprefix(f"shardlint: {word}: ").rstrip("\n")


@pytest.fixture
def hub() -> Iterator[Loopback]:
    with listening(repository(FILES)) as hub:
        yield hub


def kept(name: str) -> object:
    return json.loads(Path(".shardlint/models/org--name", name).read_text())


class TestWhatIsKept:
    def test_each_file_at_the_commit_that_was_resolved_first(self, hub: Loopback) -> None:
        done = add("org/name", hub=hub)
        assert (done.code, done.err) == (0, "")
        assert done.out == (
            f"org/name at {COMMIT}: .shardlint/models/org--name (config.json, generation_config.json, source.json)\n"
            "  weights: 92 bytes in 2 files: BF16 84, F32 8 (safetensors_sizes.json)\n"
        )
        assert hub.paths[0] == "/api/models/org/name?expand=sha&expand=siblings"
        assert all(path.startswith(f"/org/name/resolve/{COMMIT}/") for path in hub.paths[1:])
        assert not any("README" in path for path in hub.paths)
        assert kept("config.json") == CONFIG
        assert kept("generation_config.json") == {"eos_token_id": 2}
        assert kept("source.json") == {"id": "org/name", "revision": COMMIT}

    def test_the_sizes_by_dtype_and_file(self, hub: Loopback) -> None:
        add("org/name", hub=hub)
        assert kept("safetensors_sizes.json") == {
            "total_bytes": 92,
            "total_elements": 44,
            "dtypes": {"BF16": {"bytes": 84, "elements": 42}, "F32": {"bytes": 8, "elements": 2}},
            "files": {"model-00001-of-00002.safetensors": 72, "model-00002-of-00002.safetensors": 20},
        }

    def test_the_text_is_for_people_and_the_same_each_time(self, hub: Loopback, here: Path) -> None:
        add("org/name", hub=hub)
        folder = here / ".shardlint/models/org--name"
        first = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert first["config.json"].startswith(b'{\n  "model_type": "llama",\n')
        add("org/name", hub=hub)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == first

    def test_a_check_reads_it(self, hub: Loopback) -> None:
        add("org/name", hub=hub)
        found = DiskLibrary(["."], models=None, project=".", environ={}).model("org/name")
        assert isinstance(found, ModelFiles)
        assert [name for name, _ in found.side_files] == ["generation_config.json", "safetensors_sizes.json"]

    def test_what_the_repository_has_no_more_goes_away(self, hub: Loopback) -> None:
        add("org/name", hub=hub)
        with listening(repository({"config.json": b"{}"}, commit="f" * 40)) as later:
            done = add("org/name", hub=later)
        assert done.code == 0
        assert "no safetensors files" in done.out
        assert sorted(path.name for path in Path(".shardlint/models/org--name").iterdir()) == [
            "config.json",
            "source.json",
        ]

    def test_a_revision_is_asked_for(self, hub: Loopback) -> None:
        assert add("org/name@v1", hub=hub).code == 0
        assert hub.paths[0].startswith("/api/models/org/name/revision/v1?")

    def test_several_ids_are_told_one_by_one(self, hub: Loopback) -> None:
        done = add("org/gone", "org/name", "../x", hub=hub)
        assert done.code == 2
        assert done.out.startswith("org/name at ")
        assert [line.split(": ")[1] for line in done.err.splitlines()] == ["org/gone", "../x"]

    def test_the_folder_is_the_projects_from_wherever_it_is_called(
        self, hub: Loopback, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (here / "k8s").mkdir()
        monkeypatch.chdir(here / "k8s")
        assert "../.shardlint/models/org--name" in add("org/name", hub=hub).out
        assert (here / ".shardlint/models/org--name/config.json").is_file()

    def test_an_endpoint_below_a_path_serves_too(self, hub: Loopback) -> None:
        inner = repository(FILES)

        def below(asked: Asked) -> Reply:
            return inner(Asked(asked.path.removeprefix("/mirror"), asked.headers))

        with listening(below) as mirror:
            done = run("models", "add", "org/name", endpoint=f"{mirror.endpoint}/mirror")
        assert done.code == 0
        assert all(path.startswith("/mirror/") for path in mirror.paths)


class TestRefusals:
    @pytest.mark.parametrize("status", [401, 403])
    def test_gated(self, status: int) -> None:
        files = repository(FILES)

        def gated(asked: Asked) -> Reply:
            return files(asked) if asked.path.startswith("/api/") else refused(status, "GatedRepo")

        assert failing(gated) == "the model is gated: ask for access at HUB/org/name, and set HF_TOKEN"
        said = failing(gated, HF_TOKEN=TOKEN)
        assert said == "the model is gated, and the token's account has no access: ask for it at HUB/org/name"

    @pytest.mark.parametrize("reply", [refused(404, "RepoNotFound"), refused(401, "RepoNotFound"), refused(401)])
    def test_missing_or_private(self, reply: Reply) -> None:
        assert failing(lambda _: reply) == "HUB has no such model, or it is private (no token was sent)"

    @pytest.mark.parametrize(
        "reply", [refused(401), refused(401, X_Error_Message="Invalid credentials in Authorization header")]
    )
    def test_a_bad_token(self, reply: Reply) -> None:
        said = failing(lambda _: reply, HF_TOKEN=TOKEN)
        assert said == "HUB does not accept the token (HTTP 401): it may be wrong or expired"

    def test_missing_for_a_token(self) -> None:
        said = failing(lambda _: refused(404, "RepoNotFound"), HF_TOKEN=TOKEN)
        assert said == "HUB has no such model, or the token's account may not see it"

    def test_a_revision_that_is_not_there(self) -> None:
        said = failing(repository(FILES), word="org/name@v2")
        assert said == "HUB knows the model, but no revision v2 of it"

    @pytest.mark.parametrize(
        ("headers", "when"),
        [
            ({}, "later"),
            ({"Retry_After": "120"}, "in 120 s"),
            ({"RateLimit": '"api";r=0;t=55'}, "in 55 s"),
            ({"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}, "later"),
        ],
    )
    def test_rate_limited(self, headers: dict[str, str], when: str) -> None:
        said = failing(lambda _: refused(429, **headers))
        assert said == (
            f"HUB limits the rate of requests (HTTP 429): try again {when}; with HF_TOKEN set the limit is higher"
        )

    @pytest.mark.parametrize("status", [500, 503])
    def test_a_hub_in_trouble(self, status: int) -> None:
        assert failing(lambda _: refused(status)) == f"HUB is in trouble (HTTP {status}): try again later"

    def test_disabled_forbidden_and_odd(self) -> None:
        disabled = refused(403, X_Error_Message="Access to this resource is disabled.")
        assert failing(lambda _: disabled) == "HUB has disabled the model"
        assert failing(lambda _: refused(403)) == "HUB forbids it (HTTP 403)"
        assert failing(lambda _: refused(418)) == "HUB answers with HTTP 418"

    def test_no_config(self) -> None:
        said = failing(repository({"model.gguf": b""}))
        assert said == f"the repository has no config.json at {COMMIT}"

    @pytest.mark.parametrize(
        "body", [b"<html>log in</html>", b"[]", b"\xff", b"[" * 100_000, b'{"sha": ' + b"9" * 5000 + b"}"]
    )
    def test_a_reply_that_is_no_json_object(self, body: bytes) -> None:
        said = failing(lambda _: Reply(200, body))
        assert said == "HUB answers with no JSON object where it was asked for its files"

    @pytest.mark.parametrize(
        "listing", [{}, {"sha": "../../x", "siblings": []}, {"sha": COMMIT}, {"sha": 1, "siblings": []}]
    )
    def test_a_reply_of_no_hub(self, listing: object) -> None:
        said = failing(lambda _: as_json(listing))
        assert said == "HUB does not answer as a hub does: no commit, or no list of files"

    def test_a_config_that_is_no_json(self) -> None:
        said = failing(repository({"config.json": b"version https://git-lfs"}))
        assert said == "HUB answers with no JSON object where it was asked for config.json"

    def test_a_config_without_end(self) -> None:
        said = failing(repository({"config.json": b'{"a": "' + b"x" * 5_000_000}))
        assert said == "HUB answers with more than 4 MiB"

    def test_a_compressed_reply_is_not_unpacked(self) -> None:
        said = failing(lambda _: Reply(200, b"x", {"Content-Encoding": "gzip"}))
        assert said == "HUB answers in an encoding that was not asked for"

    def test_offline(self) -> None:
        said = failing(repository(FILES), HF_HUB_OFFLINE="1")
        assert said == "HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) is set, so no hub is asked"


class TestUnreachable:
    def test_nobody_listens(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            host = f"127.0.0.1:{taken.getsockname()[1]}"
            done = run("models", "add", "org/name", endpoint=f"http://{host}")
        assert done.code == 2
        assert done.err == f"shardlint: org/name: {host} cannot be reached: [Errno 111] Connection refused\n"
        assert done.seconds < MOST_SECONDS

    def test_a_name_that_no_resolver_knows(self) -> None:
        done = run("unknown", "models", "add", "org/name", endpoint="http://hub.invalid", start=("-c", RESOLVER))
        assert done.err == (
            "shardlint: org/name: hub.invalid cannot be reached: [Errno -2] Name or service not known\n"
        )
        assert done.seconds < MOST_SECONDS

    def test_a_resolver_that_does_not_answer(self) -> None:
        done = run("stuck", "models", "add", "org/name", endpoint="http://hub.invalid", start=("-c", RESOLVER))
        assert done.err.startswith("shardlint: org/name: hub.invalid does not answer within 3.5 s")
        assert done.code == 2
        assert done.seconds < MOST_SECONDS

    @pytest.mark.parametrize(
        "reply", [Reply(silent_seconds=20), Reply(200, b" " * 1000, byte_seconds=0.5)], ids=["silent", "trickling"]
    )
    def test_a_slow_hub(self, reply: Reply) -> None:
        assert failing(lambda _: reply) == "HUB does not answer within 3.5 s; --timeout SECONDS gives it longer"

    def test_a_hub_that_is_slow_a_little_with_each_file(self) -> None:
        files = repository({**FILES, "hf_quant_config.json": b"{}"})

        def slow(asked: Asked) -> Reply:
            reply = files(asked)
            return Reply(reply.status, reply.body, reply.headers, silent_seconds=1.5)

        assert failing(slow) == "HUB does not answer within 3.5 s; --timeout SECONDS gives it longer"

    def test_the_time_can_be_chosen(self) -> None:
        with listening(lambda _: Reply(silent_seconds=20)) as hub:
            done = run("models", "add", "--timeout", "0.6", "org/name", endpoint=hub.endpoint)
        assert "within 0.6 s" in done.err
        assert done.seconds < 3.5

    @pytest.mark.parametrize("endpoint", ["hub", "ftp://hub", "file:///etc/passwd", "http://", "http://x:99999999"])
    def test_what_is_no_address(self, endpoint: str) -> None:
        done = run("models", "add", "org/name", endpoint=endpoint)
        assert done.err == "shardlint: org/name: HF_ENDPOINT is no http or https address\n"
        assert done.code == 2

    def test_a_connection_that_breaks_off(self) -> None:
        said = failing(lambda _: Reply(200, b"{", {"Content-Length": "100", "Connection": "close"}))
        assert said == "the connection to HUB broke off (RemoteProtocolError)"


class TestWeights:
    """The config is kept and told of first; what becomes of the sizes is told after it."""

    def after_the_config(self, answer: Answer) -> Run:
        with listening(answer) as hub:
            done = add("org/name", hub=hub)
        assert done.out.startswith(f"org/name at {COMMIT}")
        assert kept("config.json") == CONFIG
        return done

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"\x02",
            b"version https://git-lfs.github.com/spec/v1",
            (2).to_bytes(8, "little") + b"[]",
            (2).to_bytes(8, "little") + b"{",
            safetensors({"a": ("BF16", [2], -4)}),
            safetensors({"a": ("BF16", [-2], 4)}),
            safetensors({"a": ("BF16\x1b[31m", [2], 4)}),
            safetensors({"a": ("BF16", [2], 2**60)}),
            (100_002).to_bytes(8, "little") + b"[" * 100_002,
        ],
    )
    def test_a_file_that_is_none(self, body: bytes) -> None:
        done = self.after_the_config(repository({**FILES, "model-00002-of-00002.safetensors": body}))
        assert done.err == "shardlint: org/name: model-00002-of-00002.safetensors is no safetensors file\n"
        assert done.code == 2
        assert not Path(".shardlint/models/org--name/safetensors_sizes.json").exists()

    def test_a_hub_that_limits_the_rate_in_the_middle(self) -> None:
        files = repository(FILES)
        done = self.after_the_config(
            lambda asked: refused(429, Retry_After="9") if "00002-of" in asked.path else files(asked)
        )
        assert "try again in 9 s" in done.err
        assert (done.code, done.seconds < MOST_SECONDS) == (2, True)

    def test_a_server_that_knows_no_ranges_is_not_read_to_the_end(self) -> None:
        files = repository(FILES)

        def whole(asked: Asked) -> Reply:
            reply = files(Asked(asked.path, {}))
            endless = Reply(200, reply.body + b"\0" * 50_000_000)
            return endless if ".safetensors" in asked.path else reply

        done = self.after_the_config(whole)
        assert (done.code, done.err) == (0, "")

    def test_a_hub_that_falls_silent_is_told_of_in_time(self) -> None:
        files = repository(FILES)
        done = self.after_the_config(
            lambda asked: Reply(silent_seconds=20) if "00002-of" in asked.path else files(asked)
        )
        assert "does not answer within 3.5 s" in done.err
        assert done.seconds < MOST_SECONDS


class TestToken:
    def test_it_goes_to_the_hub_and_to_no_other_host(self) -> None:
        files = repository(FILES)
        with listening(files) as elsewhere:

            def pointing(asked: Asked) -> Reply:
                if asked.path.startswith("/api/"):
                    return files(asked)
                return Reply(302, headers={"Location": elsewhere.endpoint + asked.path})

            with listening(pointing) as hub:
                done = add("org/name", hub=hub, HF_TOKEN=TOKEN)
        assert done.code == 0
        assert {asked.token for asked in hub.asked} == {f"Bearer {TOKEN}"}
        assert len(elsewhere.asked) >= 4
        assert {asked.token for asked in elsewhere.asked} == {None}
        assert not any(TOKEN in str(asked) for asked in elsewhere.asked)

    def test_it_does_not_come_back_with_a_request_that_left(self) -> None:
        files = repository(FILES)
        homes: list[str] = []
        with listening(lambda asked: Reply(302, headers={"Location": homes[0] + "/back" + asked.path})) as elsewhere:

            def pointing(asked: Asked) -> Reply:
                if asked.path.startswith("/back"):
                    return files(Asked(asked.path.removeprefix("/back"), asked.headers))
                return Reply(307, headers={"Location": elsewhere.endpoint + asked.path})

            with listening(pointing) as hub:
                homes.append(hub.endpoint)
                done = add("org/name", hub=hub, HF_TOKEN=TOKEN)
        assert done.code == 0
        assert {asked.token for asked in hub.asked if asked.path.startswith("/back")} == {None}

    def test_a_redirect_on_the_hub_itself_keeps_it(self) -> None:
        files = repository(FILES)

        def moved(asked: Asked) -> Reply:
            if asked.path.startswith("/moved"):
                return files(Asked(asked.path.removeprefix("/moved"), asked.headers))
            return Reply(307, headers={"Location": "/moved" + asked.path})

        with listening(moved) as hub:
            assert add("org/name", hub=hub, HF_TOKEN=TOKEN).code == 0
        assert {asked.token for asked in hub.asked} == {f"Bearer {TOKEN}"}

    @pytest.mark.parametrize("location", ["", "ftp://x/y", "file:///etc/passwd", "http://["])
    def test_a_redirect_to_nowhere(self, location: str) -> None:
        said = failing(lambda _: Reply(302, headers={"Location": location}))
        assert said == "HUB points to no http or https address"

    def test_a_redirect_in_circles(self) -> None:
        said = failing(lambda asked: Reply(302, headers={"Location": asked.path}))
        assert said == "HUB points on and on for its files"

    @pytest.mark.parametrize("source", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "file"])
    def test_the_librarys_own_places_for_it(self, source: str, hub: Loopback) -> None:
        Path("token").write_text(TOKEN + "\n")
        environ = {"HF_TOKEN_PATH": str(Path("token").resolve())} if source == "file" else {source: TOKEN}
        assert add("org/name", hub=hub, **environ).code == 0
        assert {asked.token for asked in hub.asked} == {f"Bearer {TOKEN}"}

    def test_it_can_be_held_back(self, hub: Loopback) -> None:
        add("org/name", hub=hub, HF_TOKEN=TOKEN, HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
        assert {asked.token for asked in hub.asked} == {None}

    @pytest.mark.parametrize(
        "reply",
        [
            refused(401, X_Error_Message=f"no such token: {TOKEN}"),
            refused(429, Retry_After=TOKEN, RateLimit=TOKEN),
            refused(500, X_Request_Id=TOKEN),
            Reply(404, TOKEN.encode(), {"X-Error-Code": TOKEN}),
            Reply(302, headers={"Location": f"http://{TOKEN}:1/x"}),
            Reply(302, headers={"Location": f"http://127.0.0.1:1/{TOKEN}"}),
            as_json({"sha": COMMIT, "siblings": [{"rfilename": "config.json"}, {"rfilename": TOKEN}]}),
            as_json({"sha": TOKEN, "siblings": []}),
            Reply(200, b"\r\n", {"Content-Length": TOKEN}),
        ],
    )
    def test_a_hub_that_says_it_back(self, reply: Reply) -> None:
        said = failing(lambda _: reply, HF_TOKEN=TOKEN)
        assert TOKEN.lower() not in said.lower()

    def test_a_config_that_holds_it_is_not_kept(self) -> None:
        said = failing(repository({"config.json": json.dumps({"a": TOKEN}).encode()}), HF_TOKEN=TOKEN)
        assert said == "HUB answers with the token that it was sent; nothing of the answer is kept"

    @pytest.mark.parametrize("token", ["hf_\x1b[31mred", "hf_é", "hf_a b"])
    def test_a_token_that_is_none_is_not_shown(self, token: str, hub: Loopback) -> None:
        done = add("org/name", hub=hub, HF_TOKEN=token)
        assert done.err == "shardlint: org/name: the token holds characters that no token has\n"
        assert not hub.asked


class TestHostileIds:
    @pytest.mark.parametrize(
        "word",
        [
            "../x", "/etc", "a/b/c", "a/..", "..", "", "a//b", "a/b\n", "-a/b", "a--b", "a/b.git", "a/b?x", "a/b#x",
            "a/%2e%2e", "a\\b", "~/x", "a/b.", "é/b", "a" * 200, "@main", "a/b@", "a/b@../x", "a/b@-x", "a/b@x y",
            "a\x1b[31m/b",
        ],
    )  # fmt: skip
    def test_nothing_is_asked_and_nothing_is_written(
        self, word: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Hub, "__init__", None)  # it is not even opened
        assert main(["models", "add", "--", word]) == 2
        said = capsys.readouterr().err
        assert "not the id of a model" in said or "no revision" in said
        assert "\x1b" not in said
        assert sorted(path.name for path in here.iterdir()) == [".git"]

    def test_a_link_out_of_the_folder_is_not_followed(self, hub: Loopback, here: Path) -> None:
        (here.parent / "outside").mkdir()
        models = here / ".shardlint/models"
        models.mkdir(parents=True)
        (models / "org--name").symlink_to(here.parent / "outside")
        done = add("org/name", hub=hub)
        assert done.code == 2
        assert "leads out of" in done.err
        assert not list((here.parent / "outside").iterdir())

    def test_a_link_in_place_of_a_file_is_replaced(self, hub: Loopback, here: Path) -> None:
        folder = here / ".shardlint/models/org--name"
        folder.mkdir(parents=True)
        (here / "victim").write_text("mine")
        for name in ("config.json", "config.json.part"):
            (folder / name).symlink_to(here / "victim")
        assert add("org/name", hub=hub).code == 0
        assert (here / "victim").read_text() == "mine"
        assert kept("config.json") == CONFIG

    def test_a_folder_that_cannot_be_written(self, hub: Loopback, here: Path) -> None:
        (here / ".shardlint").write_text("a file")
        done = add("org/name", hub=hub)
        assert done.code == 2
        assert done.err.count("\n") == 1
