"""A stranger's distribution brings a row of every kind through its entry point, and its mistakes bear its name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = '''
from shardlint.architectures import FAMILIES
from shardlint.engines import Cut, Cutting, engine
from shardlint.facts import Accelerator
from shardlint.findings import Located, Problem, Rule
from shardlint.plugins.hooks import hookimpl

import acme_form

PAGE = """# even-replicas

An odd number of data parallel replicas.

## What happens
Acme's router wants pairs.

## Why
House rule.

## When it is quiet
With an even number.

## Cases

### Flagged: three replicas

- config: {"architectures": ["LlamaForCausalLM"], "num_attention_heads": 32}

```sh
vllm serve model -dp 3
```

> warning, misbehaves, on `3`

### Fine: two replicas

```sh
vllm serve model -dp 2
```

### Nearest miss: four replicas

```sh
vllm serve model -dp 4
```
"""


def odd(data_parallel_size: Located[int]):
    if data_parallel_size.value % 2 and data_parallel_size.value > 1:
        yield Problem(data_parallel_size, f"{data_parallel_size.value} replicas are odd")


EVEN = Rule("ACME1", "even-replicas", "plugin", "warning", "misbehaves", odd, page=PAGE)


@hookimpl
def shardlint_rules():
    return [EVEN]


@hookimpl
def shardlint_manifests():
    return [acme_form]


@hookimpl
def shardlint_engines():
    vllm = engine("vllm")

    def cut(version):
        usual = vllm.cut(version)
        return Cutting({**usual.pieces, "vocabulary": Cut(refuses="refuses-at-start", pads_to=128)})

    return [vllm._replace(name="acme-serve", label="Acme", cut=cut, commands=(vllm.commands[0]._replace(name="acme"),))]


@hookimpl
def shardlint_architectures():
    return {"AcmeForCausalLM": FAMILIES["LlamaForCausalLM"]}


@hookimpl
def shardlint_hardware():
    return [Accelerator("acme-x1", "Acme X1", "acme", 8 * 10**9, "pcie", None, None)]


@hookimpl
def shardlint_models():
    return {"acme/tiny": {
        "architectures": ["AcmeForCausalLM"], "model_type": "llama", "num_attention_heads": 12,
        "num_key_value_heads": 12, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 4,
        "vocab_size": 32000, "torch_dtype": "bfloat16", "max_position_embeddings": 2048}}
'''

FORM = """
from shardlint.deployment import Launch
from shardlint.text import shell
from shardlint.text.nodes import Mapping

NAME = "acme-app"
FILES = ("*.acme.yaml",)


def launches(document, library):
    root = document.root
    command = root.get("acmeCommand") if isinstance(root, Mapping) else None
    if command is None:
        return
    for found in shell.read(command.fragment(), {}).commands:
        yield Launch("Acme/app", "Acme", NAME, command.span, found.words, env=found.env, unit="app")
"""

MANIFEST = "acmeCommand: vllm serve acme/tiny -tp 5 -dp 3\n"


def installed(folder: Path, plugin: str = PLUGIN, name: str = "acme") -> Path:
    """A distribution laid out as pip would have installed it."""
    (folder / f"shardlint_{name}-1.2.dist-info").mkdir(parents=True)
    info = folder / f"shardlint_{name}-1.2.dist-info"
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: shardlint-{name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[shardlint]\n{name} = {name}_plugin\n")
    (folder / f"{name}_plugin.py").write_text(plugin)
    (folder / "acme_form.py").write_text(FORM)
    return folder


def shardlint(packages: Path, *words: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    command = ["-c", code] if code is not None else ["-m", "shardlint", *words]
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, timeout=60)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "server.acme.yaml"
    file.write_text(MANIFEST)
    return file


def test_each_hook_brings_its_rows(tmp_path: Path, manifest: Path) -> None:
    packages = installed(tmp_path / "packages")
    run = shardlint(packages, "check", "--format", "json", "--hardware", "16xAcme X1", str(manifest))
    findings = {finding["rule"]: finding for finding in json.loads(run.stdout)["findings"]}
    assert run.returncode == 1, run.stderr
    assert findings["even-replicas"]["message"] == "3 replicas are odd"
    assert findings["query-heads"]["sum"] == "12 heads % 5 = 2"
    assert "tensor-parallel-without-nvlink" in findings  # the card's link is known from the plugin


def test_a_plugins_engine_cuts_by_its_own_table(tmp_path: Path) -> None:
    packages = installed(tmp_path / "packages")
    script = tmp_path / "run.sh"
    script.write_text("acme serve acme/tiny -tp 4\n")
    run = shardlint(packages, "inspect", "--format", "json", str(script))
    assert [deployment["engine"] for deployment in json.loads(run.stdout)["deployments"]] == ["acme-serve"]


def test_a_plugins_family_gives_bytes(tmp_path: Path) -> None:
    code = (
        "from shardlint import plugins\n"
        "from shardlint.architectures import rows_of\n"
        "from shardlint.facts.geometry import read\n"
        "registry = plugins.load()\n"
        "rows = rows_of(read(dict(registry.models['acme/tiny'])), registry.families)\n"
        "print(rows.layers)\n"
    )
    run = shardlint(installed(tmp_path / "packages"), code=code)
    assert run.stdout == "4\n", run.stderr


def test_without_plugins_nothing_of_it_is_there(tmp_path: Path, manifest: Path) -> None:
    packages = installed(tmp_path / "packages")
    run = shardlint(packages, "check", "--no-plugins", "--format", "json", str(manifest))
    report = json.loads(run.stdout)
    assert (run.returncode, report["findings"], report["summary"]["deployments"]) == (0, [], 0)


def test_plugins_are_listed_with_their_versions(tmp_path: Path) -> None:
    run = shardlint(installed(tmp_path / "packages"), "--version", "-v")
    assert "acme (shardlint-acme 1.2)" in run.stdout


def test_a_plugins_page_is_explained_and_its_cases_run(tmp_path: Path) -> None:
    packages = installed(tmp_path / "packages")
    assert "Acme's router wants pairs." in shardlint(packages, "explain", "ACME1").stdout
    assert "even-replicas" in shardlint(packages, "rules").stdout
    code = (
        "import acme_plugin\n"
        "from shardlint.testing import run_page\n"
        "cases = list(run_page(acme_plugin.EVEN, acme_plugin.PAGE))\n"
        "assert len(cases) == 3 and not any(faults for _, faults in cases), cases\n"
    )
    run = shardlint(packages, code=code)
    assert run.returncode == 0, run.stderr


RAISES = "from shardlint.plugins.hooks import hookimpl\n@hookimpl\ndef {hook}():\n    raise OSError('no luck')\n"
HOOKS = ("rules", "manifests", "engines", "architectures", "hardware", "models")


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_raises_ends_the_run_with_the_plugins_name(tmp_path: Path, manifest: Path, hook: str) -> None:
    packages = installed(tmp_path / "packages", RAISES.format(hook=f"shardlint_{hook}"), "unlucky")
    run = shardlint(packages, str(manifest))
    assert run.returncode == 2
    assert f"the plugin unlucky fails in shardlint_{hook}: OSError: no luck" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        ("import nowhere_to_be_found\n", "the plugin broken does not load: ModuleNotFoundError"),
        ("def (\n", "the plugin broken does not load: SyntaxError"),
        ("raise SystemExit(0)\n", "the plugin broken does not load: SystemExit: 0"),
        (
            RAISES.format(hook="shardlint_rules").replace("OSError('no luck')", "SystemExit(0)"),
            "the plugin broken fails in shardlint_rules: SystemExit: 0",
        ),
        (
            RAISES.format(hook="shardlint_architectures").replace("raise OSError('no luck')", "return []"),
            "the plugin broken fails in shardlint_architectures: [] is no mapping",
        ),
        (
            "from shardlint.plugins.hooks import hookimpl\n@hookimpl\ndef shardlint_rule():\n    return []\n",
            "the plugin broken does not load: PluginValidationError",
        ),
        (
            "from shardlint.plugins.hooks import hookimpl\n@hookimpl\ndef shardlint_rules():\n    return ['a rule']\n",
            "the plugin broken fails in shardlint_rules: 'a rule' is no Rule",
        ),
        (PLUGIN.replace('"ACME1"', '"SL101"'), "the plugin broken brings a rule that cannot be used"),
    ],
)
def test_a_plugin_that_cannot_be_used_ends_the_run(tmp_path: Path, manifest: Path, plugin: str, said: str) -> None:
    run = shardlint(installed(tmp_path / "packages", plugin, "broken"), str(manifest))
    assert run.returncode == 2
    assert said in run.stderr
    assert "Traceback" not in run.stderr


def test_a_plugins_rule_or_form_that_raises_is_named(tmp_path: Path, manifest: Path) -> None:
    rule = installed(tmp_path / "one", PLUGIN.replace("yield Problem(", "yield 1 // 0, Problem("))
    assert (
        "the rule even-replicas of the plugin acme failed: ZeroDivisionError" in shardlint(rule, str(manifest)).stderr
    )
    form = installed(tmp_path / "two")
    (form / "acme_form.py").write_text(FORM.replace("root = document.root", "raise KeyError('gone')"))
    run = shardlint(form, str(manifest))
    assert run.returncode == 2
    assert "the plugin acme fails in its form acme-app: KeyError: 'gone'" in run.stderr


def test_a_run_without_plugins_pays_for_none(tmp_path: Path) -> None:
    code = "import sys\nfrom shardlint import plugins\nplugins.load()\nprint({'pluggy', 'importlib.metadata'} & set(sys.modules))\n"
    assert shardlint(tmp_path, code=code).stdout == "set()\n"
