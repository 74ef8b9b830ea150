"""Kernels, Stack and the import page in a real Chromium: drawn, without an error, and readable by keyboard."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROWS = """
from tests.library.conftest import approved
from tests.scenarios.test_stacking import a_report
from campaigns.scenarios.request import encode
from campaigns import library
approved('mla_decode'); approved('rmsnorm', range_={'axis': 'rows', 'lo': 2, 'hi': 512})
library.export('package', None)
library.withdraw(library.kernels(['mla_decode'])[0], None, 'wrong for one token')
StackMeasurement.objects.create(scenario='tiny', hardware='cpu', ticket='a', state='done', report=encode(a_report()).decode())
"""


@pytest.fixture(scope="module")
def pages(site, browser) -> Callable:
    site.do(ROWS)

    def open_(path, scheme="light", width=1440):
        page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.goto(site.login_link("eve", path))
        page.wait_for_load_state("networkidle")
        if folder := os.environ.get("SCREENSHOTS"):
            name = path.strip("/").replace("/", "-")
            page.screenshot(path=f"{folder}/{name}-{scheme}-{width}.png", full_page=True)
        return page

    return open_


def test_the_waterfall_is_drawn_from_the_baseline_to_the_hardware_limit(pages):
    page = pages("/stack/")
    page.wait_for_selector("[data-waterfall] .bars .point")
    assert page.locator("[data-waterfall] .bars .point").count() == 4
    assert "true baseline to now" in page.locator("[data-waterfall]").inner_text()
    assert page.faults == []


@pytest.mark.parametrize("path", ["/stack/", "/kernels/", "/campaigns/import"])
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 420)])
def test_no_page_fails_or_is_wider_than_the_screen(pages, path, scheme, width):
    page = pages(path, scheme, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.faults == []


def test_a_kernel_is_withdrawn_by_keyboard_with_a_reason(pages, site):
    page = pages("/kernels/")
    page.locator("summary", has_text="Withdraw").first.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("wrong at 7 rows")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=withdrawn: wrong at 7 rows")
    assert site.do("out = Kernel.objects.get(operator='rmsnorm').withdrawn_by.username") == "eve"
