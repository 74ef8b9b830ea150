"""A person in a real Chromium on a real product."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from tests.system.conftest import Product


def signed_in(browser: Browser, product: Product, user: str) -> Page:
    """A page of a browser profile of its own, signed in by a one-time link. Errors on the page fail the test."""
    link = product.manage("login_link", "--user", user).stdout.strip()
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(link)
    expect(page.locator("nav")).to_be_visible()
    return page


def drawn(page: Page) -> None:
    """Wait for a profile's timeline. Until its script has come, the page hears no click."""
    page.wait_for_function("document.getElementById('timeline')?.dataset.painted > 0")
