"""`shardlint models list`, what is said of unknown models, and that reading never goes over the network."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from shardlint.front.main import main

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
}
EXAMPLES = Path(__file__).parent.parent.parent / "examples"

NO_NETWORK = """\
import os, sys
def guard(event, _arguments):
    if event.startswith("socket."):
        os.write(2, f"{event} was called".encode())
        os._exit(99)
sys.addaudithook(guard)
from shardlint.front.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def write(name: str, content: object = CONFIG) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def serve(*models: str) -> None:
    for at, model in enumerate(models):
        write(f"k8s/{at}.sh", f"vllm serve {model} -tp 3\n")


def listed(capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, object]]:
    assert main(["models", "list", "k8s", "--format", "json", *options]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    models = document["models"]
    assert isinstance(models, list)
    return models


def test_every_source_has_its_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("given/org--given.json")
    write(".shardlint/models/org--kept/config.json")
    write(".shardlint/models/org--kept/source.json", {"id": "org/kept", "revision": COMMIT})
    write(".shardlint/models/org--by-hand.json")
    write("k8s/folder/config.json")
    write("cache/huggingface/hub/models--org--cached/refs/main", COMMIT)
    write(f"cache/huggingface/hub/models--org--cached/snapshots/{COMMIT}/config.json")
    serve(
        "org/given", "org/kept", "org/by-hand", "./folder", "org/cached", "Qwen/Qwen3-8B", "somebody/Qwen3-8B",
        "nobody/nothing", "$MODEL",
    )  # fmt: skip
    found = [(one["model"], one["source"], one["where"], one["revision"]) for one in listed(capsys, "--models=given")]
    assert found[:5] == [
        ("org/given", "--models", "given/org--given.json", None),
        ("org/kept", ".shardlint/models", ".shardlint/models/org--kept/config.json", COMMIT),
        ("org/by-hand", ".shardlint/models", ".shardlint/models/org--by-hand.json", None),
        ("./folder", "local folder", f"{here}/k8s/./folder/config.json", None),
        (
            "org/cached",
            "Hugging Face cache",
            f"{here}/cache/huggingface/hub/models--org--cached/snapshots/{COMMIT}/config.json",
            COMMIT,
        ),
    ]
    assert [source for _, source, *_ in found[5:]] == ["catalogue", "assumption", "unknown", "unknown"]


def test_a_model_of_the_second_table(capsys: pytest.CaptureFixture[str]) -> None:
    serve("tiiuae/falcon-40b")
    (one,) = listed(capsys)
    assert one["source"] == "catalogue, second-hand"


def test_what_is_unknown_says_why_and_what_settles_it(capsys: pytest.CaptureFixture[str]) -> None:
    serve("nobody/nothing", "/models/nothing", "$MODEL")
    by_id, by_path, by_variable = listed(capsys)
    assert by_id["settle_by"] == (
        "`shardlint models add nobody/nothing`, or --models DIR with its config.json as DIR/nobody/nothing/config.json"
    )
    assert by_path["reason"] == "no config.json of /models/nothing is on this machine"
    assert "models add" not in str(by_path["settle_by"])
    assert by_variable["model"] is None and by_variable["reason"]


def test_a_kept_config_that_is_at_fault_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    write(".shardlint/models/org--kept/config.json", {**CONFIG, "num_hidden_layers": "many"})
    serve("org/kept")
    (one,) = listed(capsys)
    assert one["source"] == ".shardlint/models"
    assert "num_hidden_layers" in str(one["reason"])
    assert "`shardlint models add org/kept`" in str(one["settle_by"])


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"revision": 1}', '{"revision": "\\u001b[31m"}', "[" * 100_000, '{"revision": "' + "a" * 100]
)
def test_a_hostile_source_tells_no_revision(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(".shardlint/models/org--kept/config.json")
    write(".shardlint/models/org--kept/source.json", text)
    serve("org/kept")
    (one,) = listed(capsys)
    assert one["revision"] is None


def test_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    write(".shardlint/models/org--kept/config.json")
    write(".shardlint/models/org--kept/source.json", {"revision": COMMIT})
    serve("org/kept", "nobody/nothing")
    assert main(["models", "list", "k8s"]) == 0
    assert capsys.readouterr().out == (
        "k8s/0.sh:1:1: 0.sh\n"
        f"  org/kept  from .shardlint/models: .shardlint/models/org--kept/config.json at {COMMIT}\n"
        "k8s/1.sh:1:1: 1.sh\n"
        "  nobody/nothing  from unknown\n"
        "    nobody/nothing is not in the catalogue; to settle it: `shardlint models add nobody/nothing`, "
        "or --models DIR with its config.json as DIR/nobody/nothing/config.json\n"
    )


def test_no_deployment(capsys: pytest.CaptureFixture[str]) -> None:
    write("k8s/a.sh", "true\n")
    assert main(["models", "list", "k8s"]) == 0
    assert capsys.readouterr().out == "no deployment\n"


def test_a_check_names_the_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    serve("nobody/nothing")
    main(["k8s"])
    assert "to settle it: `shardlint models add nobody/nothing`, or --models" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["models"], ["models", "lst"], ["models", "add"], ["models", "list"]])
def test_what_makes_no_sense(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "--help" in capsys.readouterr().err


class TestNoNetwork:
    def guarded(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", NO_NETWORK, *words], capture_output=True, text=True, timeout=60)

    @pytest.mark.parametrize("command", [["check"], ["inspect"], ["models", "list"]])
    def test_reading_opens_no_socket(self, command: Sequence[str]) -> None:
        serve("nobody/nothing", "Qwen/Qwen3-8B")
        write("k8s/setting.sh", "export HF_ENDPOINT=http://127.0.0.1:1 HF_TOKEN=x\nvllm serve nobody/else -tp 2\n")
        done = self.guarded(*command, "k8s", str(EXAMPLES))
        assert done.returncode in (0, 1), done.stderr
        assert "nobody/else" in done.stdout

    def test_the_guard_would_see_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
        done = self.guarded("models", "add", "nobody/nothing")
        assert done.returncode == 99
        assert "socket." in done.stderr
