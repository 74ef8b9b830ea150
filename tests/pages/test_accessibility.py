"""axe-core on every page, empty and with something in it, light and dark, with all that can be opened open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.pages.site import Site

axe = pytest.importorskip("axe_playwright_python", reason="axe-core comes with the extra dev")
SOURCE = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

EMPTY = [
    *("/", "/campaigns/", "/review/", "/review/trail", "/profiles/", "/kernels/", "/stack/", "/hosts/"),
    *("/context/lessons/", "/spend/", "/tokens/"),
]
PAGES = [
    *("/", "/campaigns/", "/campaigns/new", "/campaigns/new?region={region}", "/campaigns/import"),
    *("/campaigns/{campaign}/", "/campaigns/{draft}/", "/campaigns/{imported}/"),
    *("/campaigns/{campaign}/attempts/{kept_n}/", "/campaigns/{campaign}/attempts/{kept_n}/?view=split"),
    *(f"/campaigns/{{campaign}}/attempts/{n}/" for n in ("{flagged_n}", "2", "3")),
    *("/review/", "/review/{kept}/", "/review/{rejected}/", "/review/trail"),
    *("/profiles/", "/profiles/{capture}/", "/profiles/{ncu}/", "/profiles/{failed}/"),
    *("/profiles/compare?a={capture}", "/profiles/compare?a={capture}&b={capture}"),
    *("/kernels/", "/stack/", "/hosts/", "/context/", "/context/new", "/context/hardware/h200/"),
    *("/context/lessons/", "/context/drafts/{capture}/", "/spend/"),
    *("/problems/new", "/problems/imports/{job}/", "/tokens/", "/nothing/here"),
]
OPEN_ALL = "document.querySelectorAll('details:not(.menu, .all)').forEach(d => { d.open = true; })"
"""All but the two thousand metrics of an Nsight Compute launch, of which a few rows are as good as all."""
SETTLED = """() => !document.querySelector('.htmx-request, .htmx-swapping') && (!window.Plotly
  || [...document.querySelectorAll('[data-plot], [data-waterfall], #chart')].every(e => e.querySelector('.main-svg')))"""
EVERY_RULE = {"resultTypes": ["violations"], "iframes": False, "selectors": False}
COLOURS = {**EVERY_RULE, "runOnly": ["color-contrast", "link-in-text-block"]}


def violations(page: Page, options: dict[str, Any]) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(SOURCE)
    found = page.evaluate("options => axe.run(document, options).then((found) => found.violations)", options)
    return [
        f"{page.url}: {broken['id']}: {broken['help']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for broken in found
        for node in broken["nodes"][:5]
    ]


def examined(page: Page, url: str) -> list[str]:
    """Every rule in the light, and those about colours once more in the dark."""
    page.emulate_media(color_scheme="light")
    answer = page.goto(url)
    assert answer
    assert answer.ok or url.endswith("/nothing/here"), f"{url}: {answer.status}"
    page.evaluate(OPEN_ALL)
    page.wait_for_function(SETTLED)
    found = violations(page, EVERY_RULE)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(SETTLED)
    return found + violations(page, COLOURS)


def pictured(page: Page, url: str, folder: str) -> None:
    """What was looked at, as pictures: for whoever sets SCREENSHOTS."""
    name = url.split("/", 3)[3].strip("/").replace("/", "_").replace("?", "_")[:60] or "home"
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(url)
            page.wait_for_function(SETTLED)
            page.screenshot(path=f"{folder}/{name}-{width}-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 1440, "height": 900})


def test_axe_finds_nothing_on_any_page(site: Site, browser: Browser) -> None:
    site.empty()
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    found = examined(page, f"{site.url}/login")
    page.goto(site.login_link("axe", "/"))
    for path in EMPTY:
        found += examined(page, site.url + path)
    known = site.do("from tests.pages.everything import fill; out = fill()")
    for path in (path.format(**known) for path in PAGES):
        found += examined(page, site.url + path)
        if folder := os.environ.get("SCREENSHOTS"):
            pictured(page, site.url + path, folder)
    assert found == [], "\n".join(found)
    assert faults == []


def test_the_panels_that_keys_open_are_clean_too(site: Site, browser: Browser) -> None:
    """Menus that lie over the page, one at a time: what is below them is hidden, and is no fault of theirs."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    number, campaign = site.do("c = make_campaign(); k = make_attempt(c, 'kept'); out = [k.pk, c.pk]")
    page.goto(site.login_link("axe", "/"))
    found = []
    for path, keys in ((f"/review/{number}/", "Ar?"), (f"/campaigns/{campaign}/", "si")):
        for key in keys:
            page.goto(site.url + path)
            page.wait_for_function(SETTLED)
            page.keyboard.press(key)
            page.wait_for_function("document.querySelector('details.menu[open], dialog[open]')")
            found += violations(page, EVERY_RULE)
    assert found == [], "\n".join(found)
