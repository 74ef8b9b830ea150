"""The cards: right where they can be checked, chosen where they fit, edited without a wording being lost."""

from __future__ import annotations

import re

import pytest

from campaigns import catalog
from campaigns.context import library
from campaigns.context.cards import BUNDLED, Card, CardError, checked, choose, read_folder, tokens_about
from campaigns.context.device import card_of
from campaigns.harness.gpu.devices import kind_of
from campaigns.harness.problem import load_problem
from campaigns.harness.problem import read_folder as read_problem
from campaigns.harness.report import Host
from campaigns.models import CardVersion
from tests.factories import make_attempt, make_campaign, person

CARDS, FAULTS = read_folder(BUNDLED, "bundled")


def body(name: str) -> str:
    return CARDS[name].body


def names(**where: str) -> list[str]:
    given = {"hardware": "cpu", "backend": "cpp", "about": "", **where}
    return [card.name for card in choose(CARDS.values(), **given)]


def test_all_bundled_cards_can_be_read_and_are_of_a_bearable_length():
    assert not FAULTS
    assert len(CARDS) >= 18
    assert all(100 < card.tokens < 1_500 for card in CARDS.values()), {n: c.tokens for n, c in CARDS.items()}


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        ("NVIDIA H200", "hardware/h200"),
        ("NVIDIA H100 80GB HBM3", "hardware/h100"),
        ("NVIDIA B200", "hardware/b200"),
        ("NVIDIA GeForce RTX 5090", "hardware/rtx-5090"),
        ("NVIDIA GeForce RTX 4090", "hardware/rtx-4090"),
        ("NVIDIA L40S", "hardware/l40s"),
        ("NVIDIA L4", "hardware/l4"),
    ],
)
def test_a_gpu_gets_its_own_card_and_no_other(gpu, name):
    assert [n for n in names(hardware=kind_of(gpu)) if n.startswith("hardware/")] == [name]


@pytest.mark.parametrize("gpu", ["NVIDIA L40", "NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4080", "NVIDIA H20"])
def test_a_gpu_without_a_card_gets_none_of_anothers(gpu):
    assert not [n for n in names(hardware=kind_of(gpu)) if n.startswith("hardware/")]


@pytest.mark.parametrize("backend", ["cpp", "torch", "triton", "cuda", "cutedsl"])
def test_each_language_has_its_card(backend):
    assert f"dsl/{backend}" in names(backend=backend)


@pytest.mark.parametrize(
    ("about", "name"),
    [
        ("Absorbed MLA decode", "models/mla"),
        ("top-k lightning indexer of DeepSeek V3.2", "models/dsa"),
        ("DeepSeek V4, CSA layers", "models/csa-hca"),
        ("HCA decode", "models/csa-hca"),
        ("GQA decode for Llama 3", "models/gqa"),
        ("mixture of experts", "models/moe"),
    ],
)
def test_a_problem_gets_the_card_of_its_model(about, name):
    assert name in names(about=about)


def test_a_problem_of_no_model_gets_no_model_card():
    assert not [n for n in names(about="RMSNorm, row by row") if n.startswith("models/")]


@pytest.mark.parametrize("name", catalog.all())
def test_bundled_problems_find_cards_and_their_tokens_are_few(name):
    files = read_problem(catalog.find(name))
    problem = load_problem(files)
    about = library.what_it_says(files)
    for backend in problem.start:
        chosen = choose(CARDS.values(), hardware="h200", backend=backend, about=about)
        assert f"dsl/{backend}" in [card.name for card in chosen]
        assert sum(card.tokens for card in chosen) < 8_000


# ── Facts ──


def test_tma_came_with_hopper_and_the_h200_card_says_so():
    text = body("hardware/h200")
    assert "TMA came with Hopper" in text
    assert "is wrong" in text
    assert re.search(r"What is not new.*?TMA", body("hardware/b200"), re.DOTALL)


@pytest.mark.parametrize("name", ["h200", "h100"])
def test_hopper_has_wgmma_and_neither_tmem_nor_fp4(name):
    text = body(f"hardware/{name}")
    assert "132" in text
    assert "232,448" in text
    assert "sm_90a" in text
    assert re.search(r"No Tensor Memory", text)
    assert re.search(r"[Nn]o FP4 tensor cores", text)


def test_the_h200_has_the_figures_that_were_measured():
    text = body("hardware/h200")
    for figure in ("62,914,560", "141 GB", "4.8 TB/s", "4.3 TB/s", "769–798"):
        assert figure in text


def test_b200_has_tensor_memory_in_columns():
    text = body("hardware/b200")
    for fact in ("128 lanes × 512 columns", "units of 32 columns", "tcgen05.ld", "cta_group::2", "NVFP4", "sm_100a"):
        assert fact in text


@pytest.mark.parametrize("name", ["rtx-5090", "rtx-4090", "l40s", "l4"])
def test_cheap_cards_have_less_shared_memory_and_no_nvlink(name):
    text = body(f"hardware/{name}")
    assert "99 KiB" in text
    assert "no NVLink" in text
    assert re.search(r"[Nn]o (\*\*)?Tensor Memory|no Tensor Memory", text)


def test_floors_and_ridges_in_the_cards_follow_from_their_own_figures():
    assert round(989e12 / 4.8e12) == 206
    assert "206" in body("hardware/h200")
    assert round(2**30 / 4.3e12 * 1e3, 2) == 0.25
    assert round(362e12 / 0.864e12) == 419
    assert "419" in body("hardware/l40s")
    assert 2 * 128 * (576 + 512) == 278_528
    assert "278,528" in body("models/mla")
    assert 64 * 576 * 2 == 73_728
    assert "73,728" in body("models/mla")


def test_models_have_the_shapes_that_a_kernel_sees():
    mla, v4, dsa = body("models/mla"), body("models/csa-hca"), body("models/dsa")
    for fact in ("576", "512", "sqrt(192)"):
        assert fact in mla
    for fact in (
        "compress_ratios",
        "top k compressed entries (k = 512 in Flash, 1,024 in Pro)",
        "last 128 tokens",
        "384",
    ):
        assert fact in v4
    assert re.search(r"\| 4 \| CSA", v4)
    assert re.search(r"\| 128 \| HCA", v4)
    assert "43" in v4
    assert "61" in v4
    assert "2,048" in dsa
    assert 128 * 512 == 65_536
    assert "65,536" in v4


# ── Files and edits ──


def test_a_teams_own_card_covers_the_bundled_one_and_a_broken_one_is_told(tmp_path):
    (tmp_path / "hardware").mkdir()
    (tmp_path / "dsl").mkdir()
    (tmp_path / "hardware" / "h200.md").write_text("---\nmatch: ^h200$\n---\n# Ours\nLiquid cooled.")
    (tmp_path / "dsl" / "bad.md").write_text("---\nmatch: (\n---\nx")
    (tmp_path / "dsl" / "latin.md").write_bytes(b"\xe9\xff")
    own, faults = read_folder(tmp_path, "team")
    assert own["hardware/h200"].title == "Ours"
    assert len(faults) == 2
    assert "no regular expression" in faults[0]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("hardware/../../etc", "x", "no name of a card"),
        ("secrets/x", "x", "no name of a card"),
        ("dsl/x", "  \n", "empty"),
        ("dsl/x", "---\ntitle: a\n", "does not end"),
        ("dsl/x", "y" * 300_000, "at most"),
    ],
)
def test_a_card_that_cannot_be_used_says_why(name, text, told):
    with pytest.raises(CardError, match=told):
        checked(name, text, "edited")


def test_tokens_are_about_what_tokenizers_count():
    assert 8 <= tokens_about("The quick brown fox jumps over the lazy dog.") <= 11
    assert tokens_about("") == 0
    code = "for (int64_t i = 0; i < n; ++i) y[i] = x[i] * 2.0f;"
    assert 20 <= tokens_about(code) <= 40


def test_a_device_card_says_what_the_host_said_and_what_is_not_known():
    host = Host(
        name="gpu7 | x",
        kind="NVIDIA A10G",
        processor="EPYC",
        versions={"torch": "2.9"},
        sandbox="bubblewrap",
        peaks={"copy_bytes_per_s": 4.1e11},
    )
    card = card_of("a10g", host)
    assert "NVIDIA A10G" in card.body
    assert "410.0 GB/s" in card.body
    assert "Not known here" in card.body
    assert "TMA" not in card.body
    assert card.belongs("a10g")


@pytest.mark.django_db
def test_a_campaign_on_an_unknown_gpu_gets_a_card_from_its_host():
    campaign = make_campaign(hardware="a10g")
    make_attempt(campaign, "reverted")
    chosen = library.chosen_for(campaign)
    assert "hardware/a10g-device" in [card.name for card in chosen]


@pytest.mark.django_db
def test_an_edit_holds_and_the_wording_before_stays_readable():
    before = library.current()[0]["dsl/cpp"]
    text = before.text + "\nMore.\n"
    library.edit("dsl/cpp", text, seen=before.sha256, person=person("owner"), note="measured")
    now = library.current()[0]["dsl/cpp"]
    assert (now.text, now.origin) == (text, "edited")
    old = CardVersion.objects.get(sha256=before.sha256)
    assert old.text == before.text
    library.go_back(old)
    assert library.current()[0]["dsl/cpp"].sha256 == before.sha256


@pytest.mark.django_db
def test_of_two_editors_the_slower_is_told():
    before = library.current()[0]["dsl/cpp"]
    library.edit("dsl/cpp", before.text + "\nOne.\n", seen=before.sha256, person=person("owner"))
    with pytest.raises(CardError, match="changed since you opened it"):
        library.edit("dsl/cpp", before.text + "\nTwo.\n", seen=before.sha256, person=person("teammate"))
    assert "One." in library.current()[0]["dsl/cpp"].text


@pytest.mark.django_db
def test_a_campaign_may_name_its_cards():
    campaign = make_campaign(context_cards=["models/mla", "gone/x"])
    assert [card.name for card in library.chosen_for(campaign)] == ["models/mla"]


def test_a_card_without_a_match_belongs_nowhere_by_itself():
    assert not Card(name="rules/x", text="# x").belongs("anything")
