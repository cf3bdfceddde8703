"""Where files and models come from, and that no name leads out of the folders that are allowed."""

import json
import os
from pathlib import Path

import pytest

from shardlint.findings import Unknown
from shardlint.front.failures import CannotRun
from shardlint.front.library import DiskLibrary
from shardlint.text import ModelFiles, Source

CONFIG = {"model_type": "llama", "num_attention_heads": 32}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def library(
    *paths: str, models: str | None = None, project: str | None = None, environ: dict[str, str] | None = None
) -> DiskLibrary:
    return DiskLibrary(paths or (".",), models=models, project=project, environ=environ or {})


def write(name: str, content: object = CONFIG) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def heads(files: ModelFiles | Unknown) -> int | None:
    return json.loads(files.config.text)["num_attention_heads"] if isinstance(files, ModelFiles) else None


class TestSiblings:
    def test_a_file_below_a_scanned_folder(self) -> None:
        write("k8s/model.env", "TP=4\n")
        assert library("k8s").sibling("k8s/model.env") == Source("k8s/model.env", "TP=4\n")

    @pytest.mark.parametrize(
        "name", ["k8s/../secret", "secret", "k8s/link", "/etc/hostname", "k8s/\0", "k8s/gone", "k8s"]
    )
    def test_nothing_else_is_opened(self, name: str, here: Path) -> None:
        write("secret", "do not read")
        write("k8s/a.yaml", "")
        Path("k8s/link").symlink_to(here / "secret")
        assert isinstance(library("k8s").sibling(name), Unknown)

    def test_a_named_file_counts_for_the_folder_where_the_command_runs(self) -> None:
        write("k8s/a.yaml", "")
        write("common/model.env", "TP=4\n")
        assert isinstance(library("k8s/a.yaml").sibling("k8s/../common/model.env"), Source)

    def test_a_huge_or_undecodable_file_is_unknown(self) -> None:
        Path("huge").write_bytes(b"a" * (5 * 1024 * 1024))
        Path("bytes").write_bytes(b"\xff")
        assert isinstance(library().sibling("huge"), Unknown)
        assert isinstance(library().sibling("bytes"), Unknown)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_a_pipe_does_not_hold_up_the_run(self) -> None:
        os.mkfifo("pipe")
        assert isinstance(library().sibling("pipe"), Unknown)


class TestModelFolder:
    @pytest.mark.parametrize(
        "name", ["org--name.json", "org/name.json", "org--name/config.json", "org/name/config.json"]
    )
    def test_each_way_to_lay_a_folder_out(self, name: str) -> None:
        write(f"models/{name}")
        assert heads(library(models="models").model("org/name")) == 32

    def test_a_path_goes_by_its_parts(self) -> None:
        write("models/mnt--llama.json")
        assert heads(library(models="models").model("/mnt/llama")) == 32

    def test_side_files_come_along(self) -> None:
        write("models/org/name/config.json")
        write("models/org/name/hf_quant_config.json", {"quantization": {}})
        found = library(models="models").model("org/name")
        assert isinstance(found, ModelFiles)
        assert [name for name, _source in found.side_files] == ["hf_quant_config.json"]

    @pytest.mark.parametrize("model", ["../secret", "x/../../secret", "..", "", "/", "link", "\0", "a" * 5000])
    def test_no_name_leads_out_of_the_folder(self, model: str, here: Path) -> None:
        write("secret.json")
        write("secret/config.json")
        write("models/x/config.json")
        Path("models/link").symlink_to(here / "secret")
        assert isinstance(library("models/x", models="models").model(model), Unknown)

    def test_the_project_keeps_models_too(self) -> None:
        write(".shardlint/models/org--name.json")
        assert heads(library(project=".").model("org/name")) == 32

    def test_the_option_comes_first(self) -> None:
        write(".shardlint/models/org--name.json")
        write("given/org--name.json", {**CONFIG, "num_attention_heads": 40})
        assert heads(library(project=".", models="given").model("org/name")) == 40


class TestModelFile:
    def test_both_shapes_of_entry(self) -> None:
        write("models.json", {"a": CONFIG, "b/c": {"config.json": CONFIG, "hf_quant_config.json": {"x": 1}}})
        found = library(models="models.json")
        assert heads(found.model("a")) == heads(found.model("b/c")) == 32
        both = found.model("b/c")
        assert isinstance(both, ModelFiles)
        assert [(name, json.loads(source.text)) for name, source in both.side_files] == [
            ("hf_quant_config.json", {"x": 1})
        ]
        assert isinstance(found.model("c"), Unknown)

    def test_values_keep_their_line_and_column(self) -> None:
        text = json.dumps({"é": {}, "org/name": CONFIG}, indent=2, ensure_ascii=False)
        write("models.json", text)
        found = library(models="models.json").model("org/name")
        assert isinstance(found, ModelFiles)
        at = found.config.text.index("32")
        assert found.config.span(at, at + 2) == Source("models.json", text).span(text.index("32"), text.index("32") + 2)

    @pytest.mark.parametrize(
        "text", ["", "[]", "{", '{"a": }', '{"a" 1}', '{"a": 1', "[" * 100_000, '{"a": ' * 100_000]
    )
    def test_what_is_no_object_of_models_ends_the_run(self, text: str) -> None:
        write("models.json", text)
        with pytest.raises(CannotRun, match=r"models\.json"):
            library(models="models.json")

    def test_a_missing_file_ends_the_run(self) -> None:
        with pytest.raises(CannotRun, match="no such file or folder"):
            library(models="gone.json")


class TestLocalFolder:
    def test_a_relative_path_below_a_scanned_folder(self) -> None:
        write("models/llama/config.json")
        assert heads(library().model("./models/llama")) == 32
        assert heads(library().model("models/llama")) == 32

    def test_an_absolute_path(self, tmp_path: Path) -> None:
        write(f"{tmp_path}/elsewhere/config.json")
        assert heads(library().model(f"{tmp_path}/elsewhere")) == 32

    def test_no_dots_lead_out(self) -> None:
        write("../outside/config.json")
        assert isinstance(library().model("../outside"), Unknown)


class TestHubCache:
    def cache(self, base: str, model: str = "models--org--name") -> None:
        write(f"{base}/{model}/blobs/abc")
        write(f"{base}/{model}/refs/main", COMMIT)
        folder = Path(f"{base}/{model}/snapshots/{COMMIT}")
        folder.mkdir(parents=True)
        (folder / "config.json").symlink_to("../../blobs/abc")

    @pytest.mark.parametrize(
        ("variable", "base"),
        [
            ("HF_HUB_CACHE", "cache"),
            ("HF_HOME", "cache/hub"),
            ("XDG_CACHE_HOME", "cache/huggingface/hub"),
            ("HOME", "cache/.cache/huggingface/hub"),
        ],
    )
    def test_every_variable_of_the_hub_counts(self, variable: str, base: str, here: Path) -> None:
        self.cache(base)
        found = library(environ={variable: str(here / "cache")}).model("org/name")
        assert heads(found) == 32
        assert isinstance(found, ModelFiles)
        assert found.origin == "the Hugging Face cache"

    def test_a_model_pinned_to_one_revision_is_found(self) -> None:
        self.cache("cache")
        Path("cache/models--org--name/refs/main").unlink()
        assert heads(library(environ={"HF_HUB_CACHE": "cache"}).model("org/name")) == 32

    @pytest.mark.parametrize("ref", ["../../../secret", "..", "", "/etc", "main"])
    def test_a_hostile_ref_leads_nowhere(self, ref: str) -> None:
        self.cache("cache")
        write("secret/config.json")
        write("cache/models--org--name/refs/main", ref)
        assert isinstance(library(environ={"HF_HUB_CACHE": "cache"}).model("org/name"), Unknown)

    def test_a_link_out_of_the_cache_is_not_followed(self, here: Path) -> None:
        self.cache("cache")
        write("secret.json")
        config = Path(f"cache/models--org--name/snapshots/{COMMIT}/config.json")
        config.unlink()
        config.symlink_to(here / "secret.json")
        assert isinstance(library(environ={"HF_HUB_CACHE": "cache"}).model("org/name"), Unknown)

    @pytest.mark.parametrize("model", ["..", "../x", "a/b/c", "-a/b", "a//b"])
    def test_what_is_no_id_of_the_hub_is_not_looked_for(self, model: str) -> None:
        self.cache("cache", "models--" + model.replace("/", "--"))
        assert isinstance(library(environ={"HF_HUB_CACHE": "cache"}).model(model), Unknown)


def test_no_environment_means_no_cache() -> None:
    assert isinstance(library().model("org/name"), Unknown)
