"""The main job, as a person does it: a capture, a region, an idea, a campaign, a kept kernel, its diff, an approval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import drawn, signed_in
from tests.system.conftest import Product, faster_kernel, quick_problem

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CAPTURE = Path(__file__).resolve().parents[2] / "profiling" / "demo" / "decode_h200.sqlite"
NOTE = "This is dumb: 32 trips through the cache where one would do."


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """One of its own: after the approval its campaign and the stack go on being measured, and others would wait for that."""
    made = Product(tmp_path_factory.mktemp("home"))
    made.env["PROFILE_KEPT"] = "1"
    made.start()
    yield made
    made.stop()


def leave_a_mark(page: Page) -> None:
    page.evaluate("window.marked = true")


def is_same_document(page: Page) -> bool:
    """Whether the mark is still there: a reload would have wiped it, a new address by script does not."""
    return bool(page.evaluate("window.marked === true"))


def measured_again(page: Page, product: Product) -> None:
    """The real evaluator measures a kept kernel once more while its review stays open. A busy machine may say that it could not."""
    page.keyboard.press("m")
    expect(page.locator("#again")).to_contain_text("under way")
    expect(page.locator("#again")).not_to_contain_text("under way", timeout=240_000)
    ((state, report),) = product.rows("SELECT state, report FROM campaigns_remeasurement")
    assert (state in ("done", "failed"), '"outcome"' in report) == (True, True)
    assert [kind for (kind,) in product.rows("SELECT kind FROM campaigns_evaluatorhost")] == ["cpu"]


def test_of_two_people_who_decide_at_once_the_slower_is_told(
    browser: Browser, product: Product, tmp_path: Path
) -> None:
    (tmp_path / "1_one_walk.cpp").write_text(faster_kernel())
    words = ("--problem", quick_problem(product.home), "--idea", "once", "--agent", "replay", "--replay", str(tmp_path))
    assert product.manage("run_campaign", *words, "--attempts", "1").returncode == 0
    first, second = (signed_in(browser, product, user) for user in ("ada", "grace"))
    for page in (first, second):
        page.goto(f"http://localhost:{product.port}/review/")
        expect(page.get_by_role("button", name="Approve").first).to_be_visible()
    measured_again(first, product)
    before = len(product.rows("SELECT id FROM campaigns_review"))
    first.keyboard.press("a")
    expect(first.locator("#candidate")).to_contain_text("pproved")
    second.keyboard.press("a")
    expect(second.locator("#candidate")).to_contain_text("ada was first")
    assert len(product.rows("SELECT id FROM campaigns_review")) == before + 1


def test_from_a_capture_to_an_approved_kernel(browser: Browser, product: Product) -> None:
    page = signed_in(browser, product, "engineer")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))

    page.get_by_role("link", name="Profiles").click()
    page.set_input_files("#file", CAPTURE)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Launch-bound", timeout=60_000)

    drawn(page)
    page.locator("[data-do=mark]").click()
    page.locator("#note").fill(NOTE)
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("#regions")).to_contain_text(NOTE)
    page.get_by_role("link", name="Start a campaign from this").click()

    expect(page.locator("pre.fenced").first).to_contain_text("kernels")
    page.locator("#id_problem").select_option("mla_decode")
    page.locator("#id_idea").fill("Read the cache in larger pieces, without the copy.")
    page.locator("#id_budget_attempts").fill("12")
    page.get_by_role("button", name="Start", exact=True).click()

    page.wait_for_url("**/campaigns/*/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    leave_a_mark(page)
    rows = page.locator("tbody[data-number]")
    expect(rows.first).to_be_visible(timeout=60_000)
    expect(page.locator("tbody[data-number] td.kept").first).to_be_visible(timeout=180_000)
    assert is_same_document(page), "the kept kernel came without a reload"
    assert len(set(rows.evaluate_all("rows => rows.map(r => r.dataset.number)"))) == rows.count()

    page.get_by_role("link", name="Review").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("#candidate")).to_contain_text("constexpr int")
    leave_a_mark(page)
    page.keyboard.press("a")
    expect(page.locator("#candidate")).to_contain_text("pproved", timeout=15_000)
    assert is_same_document(page), "the approval came without a reload"
    assert product.rows("SELECT decision FROM campaigns_review ORDER BY id DESC LIMIT 1") == [("approved",)]
    assert errors == []
