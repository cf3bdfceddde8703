"""Nix: containers and services of a NixOS module."""

from __future__ import annotations

import pytest

from shardlint.findings import Located, Unknown


def value(maybe):
    return maybe.value if isinstance(maybe, Located) else maybe and "unknown"


MODULE = """
{ config, lib, pkgs, ... }:
let
  cfg = {
    # the model
    model = "org/m";
    tag = "v0.33.0";
  };
in {
  virtualisation.oci-containers.containers.llm = {
    image = "vllm/vllm-openai:${cfg.tag}";
    environment = { HF_HOME = "/x"; };
    extraOptions = [ "--ipc=host" "--gpus" "2" ];
    cmd = [
      "--model" cfg.model
      # "--dtype" "half"
      "--tensor-parallel-size" (toString 2)
      "--port" config.port
    ] ++ lib.optionals config.more [ "--enforce-eager" ];
  };
}
"""


def test_a_container_of_a_module(read, words):
    got = read(MODULE, "llm.nix")
    only = got.only
    assert (got.form, only.name) == ("nix", "container/llm")
    assert words(only)[:6] == ["--model", "org/m", "--tensor-parallel-size", "2", "--port", "<config.port>"]
    assert isinstance(only.argv[6], Unknown)
    assert (value(only.image), value(only.gpus_per_pod)) == ("vllm/vllm-openai:v0.33.0", 2)
    assert got.cut(only.argv[1]) == "org/m" and only.argv[1].span.line == 5


def test_a_service_with_a_command_and_one_with_a_script(read, words):
    got = read(
        '{ pkgs, ... }: {\n  systemd.services.a = {\n    environment.CUDA_VISIBLE_DEVICES = "0,1";\n'
        '    serviceConfig.ExecStart = "${pkgs.vllm}/bin/vllm serve org/m -tp 2";\n  };\n'
        "  systemd.services.b.script = ''\n    exec vllm serve org/n \\\n      --port ''${PORT:-80}\n  '';\n}\n",
        "llm.nix",
    )
    first, second = got.launches
    assert words(first)[1:] == ["serve", "org/m", "-tp", "2"] and value(first.gpus_per_pod) == 2
    assert words(second) == ["vllm", "serve", "org/n", "--port", "80"]
    assert (first.name, second.name) == ("unit/a", "unit/b")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('[ "a" ] ++ [ "b" ]', ["a", "b"]),
        ('(let x = "b"; in [ "a" x ])', ["a", "b"]),
        ('(rec { y = "b"; l = [ "a" y ]; }).l', ["a", "b"]),
        ('({ l = [ "x" ]; } // { l = [ "a" "b" ]; }).l', ["a", "b"]),
        ('lib.mkForce [ "a" "b" ]', ["a", "b"]),
        ('[ "a" ("b" + "") ]', ["a", "b"]),
        ("[ \"a\" ''b'' ]", ["a", "b"]),
        ('let l = [ "a" l ]; in l', None),
    ],
)
def test_expressions_are_worked_out_as_far_as_the_text_tells(read, words, expression, expected):
    got = read(f'{{ lib, ... }}: {{ vllm = {{ image = "x"; cmd = {expression}; }}; }}\n', "a.nix")
    assert expected is None or words(got.only) == expected


def test_what_is_commented_out_is_not_read(read):
    assert not read('{ ... }: {\n  # vllm = { image = "vllm/vllm-openai"; };\n}\n', "a.nix").launches


@pytest.mark.parametrize(
    "text", ["{ vllm = ", "vllm", '{ vllm = { image = "${', "", '{ a.b = 1; a.b.image = "vllm"; }']
)
def test_a_broken_file_is_no_crash(read, text):
    read(text, "a.nix")
