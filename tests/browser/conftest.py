"""A real Chromium on a real product."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.system.conftest import Product, product

__all__ = ["product"]

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}: install Debian's package chromium, or set CHROMIUM")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


def signed_in(browser: Browser, product: Product, user: str) -> Page:
    """A page of a browser profile of its own, signed in by a one-time link. Errors on the page fail the test."""
    link = product.manage("login_link", "--user", user).stdout.strip()
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(link)
    expect(page.locator("nav")).to_be_visible()
    return page
