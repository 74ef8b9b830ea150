"""Nothing that came from outside is ever read as markup, and no word of it makes a page wider than the window."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.pages.site import Site
from tests.pages.test_accessibility import OPEN_ALL, PAGES, SETTLED

pytestmark = [pytest.mark.browser, pytest.mark.slow]
OWN = [
    *("/profiles/{hostile}/", "/profiles/compare?a={hostile}&b={hostile}", "/campaigns/new?region={region}"),
    *("/campaigns/{campaign}/earlier?before=5", "/campaigns/{campaign}/attempts/{kept_n}/?against=start"),
]  # fmt: skip
WIDER = """() => {
  const too = (e) => e.getBoundingClientRect().left + e.scrollWidth > innerWidth + 1;
  const shown = (e) => getComputedStyle(e).overflowX === 'visible';
  const above = (e) => e.parentElement === document.body ? [] : [e.parentElement, ...above(e.parentElement)];
  const by = document.documentElement.scrollWidth - innerWidth;
  const all = by > 0 ? [...document.querySelectorAll('main *')] : [];
  const at = all.filter((e) => too(e) && [e, ...above(e)].every(shown) && ![...e.children].some(too));
  const said = at.slice(0, 6).map((e) => `${e.parentElement.className} > ${e.outerHTML.slice(0, 60)}`);
  return by > 0 ? [by, ...said] : null;
}"""
"""By how many pixels the page is wider than the window, and which innermost elements make it so."""


def check_exports(page: Page, url: str, known: dict[str, Any]) -> None:
    """A spreadsheet reads no formula, and each JSON is one."""
    rows = list(csv.reader(io.StringIO(page.request.get(f"{url}/review/trail.csv").text(), newline="")))
    assert len(rows) > 1
    assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []
    for path in ("/review/trail.json", f"/profiles/{known['hostile']}/perfetto.json"):
        assert page.request.get(url + path).json()


def test_no_text_becomes_markup_and_none_widens_a_page(site: Site, browser: Browser) -> None:
    site.empty()
    known: dict[str, Any] = site.do("from tests.pages.everything import fill; out = fill()")
    known |= site.do("from tests.pages.hostile import spoil; out = spoil()")
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"{page.url}: {error}"))
    page.on("dialog", lambda dialog: (faults.append(f"{page.url}: a script ran: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: faults.append(f"{page.url}: {request.url}") if "/HIT" in request.url else None)
    page.goto(site.login_link("ada", "/"))
    check_exports(page, site.url, known)
    for path in (path.format(**known) for path in PAGES + OWN):
        answer = page.goto(site.url + path)
        assert answer
        if answer.status >= 500:
            faults.append(f"{path}: {answer.status}")
        page.evaluate(OPEN_ALL)
        page.wait_for_function(SETTLED)
        if "HIT49" in page.content():
            faults.append(f"{path}: a template was filled in")
        if wider := page.evaluate(WIDER):
            faults.append(f"{path}: {wider[0]} px wider than the window: {wider[1:]}")
        if folder := os.environ.get("SCREENSHOTS"):
            name = path.strip("/").replace("/", "_").replace("?", "_")[:60] or "home"
            page.screenshot(path=f"{folder}/{name}.png")
    assert faults == [], "\n".join(faults)
