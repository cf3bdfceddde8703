"""Cards, machines and what the user says of the hardware."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardlint.facts import accelerators, machines
from shardlint.facts.hardware import Hardware
from shardlint.facts.hardware_spec import parse
from shardlint.facts.tables import rows


def ids(name: str) -> list[str]:
    return [card.id for card in accelerators.find(name)]


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100-sxm5-80gb"),
        ("nvidia h100 80gb hbm3", "h100-sxm5-80gb"),
        ("H100_NVLINK_80GB", "h100-sxm5-80gb"),
        ("NVIDIA-A100-80GB-PCIe", "a100-pcie-80gb"),
        ("nvidia-tesla-t4", "t4"),
        ("Tesla-T4", "t4"),
        ("RTX 4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("AMD_Instinct_MI300X_OAM", "mi300x"),
        ("nvidia-h100-80gb-sxm-ib", "h100-sxm5-80gb"),
        ("pool-with-l40s", "l40s"),
        ("NVIDIA-A10G-SHARED", "a10g"),
    ],
)
def test_a_card_is_found_by_any_of_its_names(name: str, identifier: str) -> None:
    assert ids(name) == [identifier]


def test_an_ambiguous_name_gives_all_that_it_may_mean_the_likely_one_first() -> None:
    assert ids("H100")[0] == "h100-sxm5-80gb"
    assert set(ids("h100")) == {"h100-sxm5-80gb", "h100-pcie-80gb", "h100-nvl-94gb"}
    assert len(ids("A100")) == 4
    assert accelerators.likely("A100") is None


@pytest.mark.parametrize("name", ["", "gpu", "my-pool", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "l4000", "\n", "x" * 5000])
def test_an_unknown_name_or_a_slice_is_no_card(name: str) -> None:
    assert ids(name) == []


def test_memory_is_what_the_driver_reports() -> None:
    (card,) = accelerators.find("NVIDIA-L4")
    assert (card.memory_bytes, card.memory_gb, card.link, card.link_domain) == (23034 * 2**20, 24, "pcie", 1)
    assert card.compute_capability == "8.9"


def test_alternatives_mean_the_cards_of_all_if_all_are_known():
    assert {card.id for card in accelerators.find("L4|A10G|L4")} == {"l4", "a10g"}
    assert accelerators.find("L4|no-such-card") == ()


def test_every_name_leads_to_a_card_and_every_card_has_a_source() -> None:
    for row in rows("accelerator_names.jsonl"):
        assert row["likely"] in (None, *row["accelerators"])
        for identifier in row["accelerators"]:
            card = accelerators.by_id(identifier)
            assert card.source
            assert card.memory_bytes


@pytest.mark.parametrize(
    ("name", "gpu", "gpus"),
    [
        ("p5.48xlarge", "h100-sxm5-80gb", 8),
        ("ml.p5.48xlarge", "h100-sxm5-80gb", 8),
        ("Standard_ND96isr_H100_v5", "h100-sxm5-80gb", 8),
        ("nd96isr_h100_v5", "h100-sxm5-80gb", 8),
        ("BM.GPU.H200.8", "h200-sxm-141gb", 8),
        ("BM.GPU.B4.8", "a100-sxm4-40gb", 8),
        ("a3-highgpu-8g", "h100-sxm5-80gb", 8),
        ("g2-standard-32", "l4", 1),
        ("g2-standard-24", "l4", 2),
        ("gx3d-999x99x4h200", "h200-sxm-141gb", 4),
        ("gpu_3x_h100_sxm5", "h100-sxm5-80gb", 3),
        ("gd-4xh200ib-i64", "h200-sxm-141gb", 4),
        ("gpu-h100x2-160gb", "h100-sxm5-80gb", 2),
    ],
)
def test_a_machine_is_found_by_its_name_or_read_from_it(name: str, gpu: str, gpus: int) -> None:
    machine = machines.find(name)
    assert machine is not None
    assert (machine.gpu, machine.gpus) == (gpu, gpus)
    assert machine.source


def test_a_machine_with_a_part_of_a_card_has_no_whole_one() -> None:
    machine = machines.find("Standard_NC8ads_A10_v4")
    assert machine is not None
    assert (machine.gpus, machine.gpu_fraction) == (0, 0.5)


def test_every_machine_reads_and_names_a_card_that_is_known() -> None:
    for row in rows("machines.jsonl"):
        machine = machines.find(row["id"])
        assert machine is not None
        assert machine.gpu.startswith("uncovered/") or accelerators.by_id(machine.gpu)
    assert machines.find("m5.large") is None


def cards(spec: str) -> list[list[tuple[int, str, int | None, str | None]]]:
    hardware = parse(spec)
    assert isinstance(hardware, Hardware), hardware
    return [[(n, card.id, card.memory_bytes, card.link) for n, card in node.cards] for node in hardware.nodes]


H100 = (8, "h100-sxm5-80gb", 81559 * 2**20, "nvlink")


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ("8xH100", [[H100]]),
        ("2x8xH100:80", [[H100], [H100]]),
        (" 2 x 8 x h100 : 80 GB ", [[H100], [H100]]),
        ("8xH100 PCIe", [[(8, "h100-pcie-80gb", 81559 * 2**20, "pcie")]]),
        ("8xh100-nvl:94", [[(8, "h100-nvl-94gb", 95830 * 2**20, "pcie")]]),
        ("4xA100 SXM:40", [[(4, "a100-sxm4-40gb", 40 * 2**30, "nvlink")]]),
        ("4xA100:80", [[(4, "a100-sxm4-80gb", 80 * 2**30, "nvlink")]]),
        ("4xA100", [[(4, "a100", None, None)]]),
        ("4xA10G PCIe:24", [[(4, "a10g", 23028 * 2**20, "pcie")]]),
        ("2xNovelty 9:12.5", [[(2, "novelty 9", 12_500_000_000, None)]]),
        ("1xRTX 3090:24+1xNovelty:8", [[(1, "rtx-3090", 24 * 2**30, "pcie"), (1, "novelty", 8 * 10**9, None)]]),
        ("1xT4,2x1xL4", [[(1, "t4", 15360 * 2**20, "pcie")], *[[(1, "l4", 23034 * 2**20, "pcie")]] * 2]),
    ],
)
def test_a_spec_says_what_stands_where(spec: str, nodes: list[object]) -> None:
    assert cards(spec) == nodes


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", "an empty group"),
        ("8xH100,", "an empty group"),
        ("H100", "COUNTxNAME[:GB]"),
        ("8", "COUNTxNAME[:GB]"),
        ("8xH100+", "COUNTxNAME[:GB]"),
        ("0xH100", "1 or more"),
        ("0x8xH100", "1 or more"),
        ("8xNovelty", "give its memory too, as in Novelty:24"),
        ("8xH100:40", "there is no H100:40; known are"),
        ("8xT4 SXM", "there is no T4 SXM"),
        ("8xH100:0", "has no memory"),
        ("8xH100:eighty", "COUNTxNAME[:GB]"),
        ("99999x99999xH100", "at most 100000"),
        ("9" * 5000 + "xH100", "a count is 1 or more"),
        (",".join(["60000xT4"] * 2), "at most 100000"),
    ],
)
def test_a_spec_that_cannot_be_meant_is_answered_in_a_sentence(spec: str, words: str) -> None:
    answer = parse(spec)
    assert isinstance(answer, str)
    assert words in answer


CARD_NAMES = st.sampled_from(["H100:80", "H200", "L4", "RTX 4090:24", "MI300X", "A100 PCIe:80", "Unheard Of:7"])
GROUPS = st.tuples(st.integers(1, 4), st.lists(st.tuples(st.integers(1, 16), CARD_NAMES), min_size=1, max_size=3))


@given(st.lists(GROUPS, min_size=1, max_size=4), st.booleans())
def test_a_spec_comes_back_as_it_was_meant(groups: list[tuple[int, list[tuple[int, str]]]], always: bool) -> None:
    texts = []
    for nodes, held in groups:
        prefix = f"{nodes}x" if nodes > 1 or always else ""
        texts.append(prefix + "+".join(f"{count}x{name}" for count, name in held))
    hardware = parse(",".join(texts))
    assert isinstance(hardware, Hardware)
    assert len(hardware.nodes) == sum(nodes for nodes, _ in groups)
    assert [count for node in hardware.nodes for count, _ in node.cards] == [
        count for nodes, held in groups for _ in range(nodes) for count, _ in held
    ]
    assert hardware.gpus == sum(nodes * sum(count for count, _ in held) for nodes, held in groups)


@given(st.text(alphabet="0123456789xX:,+ H10Gb.A", max_size=30))
def test_no_text_makes_the_parser_raise(spec: str) -> None:
    assert isinstance(parse(spec), Hardware | str)
