"""A KernelBench file pasted into a real product becomes a problem that a campaign can choose, though a worker is killed."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Browser, expect

from campaigns.harness import sandbox
from tests.browser.conftest import signed_in
from tests.system.conftest import Product

from .conftest import EXAMPLES

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not sandbox.available(), reason="bubblewrap cannot start here"),
]


def test_from_a_paste_to_a_campaign(browser: Browser, product: Product) -> None:
    page = signed_in(browser, product, "engineer")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.get_by_role("link", name="New campaign").first.click()
    page.get_by_role("link", name="bring another").click()
    page.get_by_label("Paste a problem").fill((EXAMPLES / "kernelbench" / "shift_in_place.py").read_text())
    page.get_by_label("Name").fill("shifted rows")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#status progress + span")).to_be_visible()
    expect(page.locator("#status progress + span")).not_to_contain_text("Waiting", timeout=30_000)
    time.sleep(1)
    product.kill_service("profiles")

    expect(page.get_by_role("heading", name="Taken")).to_be_visible(timeout=240_000)
    page.get_by_role("link", name="New campaign with it").click()
    expect(page.locator("#id_problem")).to_have_value("shifted_rows")
    assert errors == []
    assert product.rows("SELECT attempts FROM campaigns_problemimport") == [(2,)]


def test_a_refused_paste_shows_its_reasons(browser: Browser, product: Product) -> None:
    page = signed_in(browser, product, "engineer")
    page.get_by_role("link", name="New campaign").first.click()
    page.get_by_role("link", name="bring another").click()
    text = (EXAMPLES / "kernelbench" / "shift_in_place.py").read_text().replace("return x, (", "return x, 0 * (")
    page.get_by_label("Paste a problem").fill(text)
    page.get_by_role("button", name="Check").click()

    expect(page.get_by_role("heading", name="Refused")).to_be_visible(timeout=240_000)
    expect(page.locator("#status")).to_contain_text("guess-passes")
    expect(page.locator("#status")).to_contain_text("What to do:")
