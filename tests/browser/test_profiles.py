"""Profiles as a person uses them: dropping a capture, stopping an upload, comparing two ranges, names that are markup."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import drawn, signed_in
from tests.profiling.captures import Export
from tests.system.conftest import Product

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CAPTURE = Path(__file__).resolve().parents[2] / "profiling" / "demo" / "decode_h200.sqlite"
DROP = """([name, base64]) => {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], name));
  for (const type of ["dragenter", "dragover", "drop"]) document.getElementById("upload").dispatchEvent(
    new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""
MARKUP = '<script>window.hit = 1</script><img src=x onerror="window.hit = 1">'


def drop(page: Page, file: Path, name: str) -> None:
    """Drop a file on the page, as the file manager does."""
    page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/")[2] + "/profiles/")
    page.evaluate(DROP, [name, base64.b64encode(file.read_bytes()).decode()])


def choose_the_same(page: Page) -> None:
    """The capture that is A as B too: other tests leave captures of their own."""
    page.locator("#profile-b").select_option(value=page.locator("#profile-a").input_value())


def test_a_dropped_capture_is_imported_and_its_ranges_compared(browser: Browser, product: Product) -> None:
    page = signed_in(browser, product, "engineer")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    drop(page, CAPTURE, "decode_h200.sqlite")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Launch-bound", timeout=60_000)

    page.get_by_role("link", name="Compare…").click()
    choose_the_same(page)
    page.locator("#range-a").fill("chunk=1024")
    page.locator("#range-b").fill("chunk=32768")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("B faster: 7.70×")
    expect(page.locator("#conclusion")).to_contain_text("mla_chunk_0 … mla_chunk_31")
    for letter in "ab":
        page.wait_for_function(f"Number(document.getElementById('timeline-{letter}').dataset.rows) > 5")

    before = page.locator("#range").text_content()
    page.locator("#timeline-a").focus()
    page.keyboard.press("w")
    expect(page.locator("#range")).not_to_have_text(before or "")
    page.wait_for_function("new URL(location).searchParams.has('from')")
    assert errors == []


def test_an_upload_can_be_stopped_and_sent_again(browser: Browser, product: Product) -> None:
    page = signed_in(browser, product, "stopper")
    session = page.context.new_cdp_session(page)
    page.goto(f"http://localhost:{product.port}/profiles/")
    session.send("Network.enable")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 20_000}
    session.send("Network.emulateNetworkConditions", slow)
    page.set_input_files("#file", CAPTURE)
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#upload-said")).to_have_text("Stopped. The file is still chosen.")
    expect(page.locator("#stop")).to_be_hidden()

    session.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": -1})
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Launch-bound", timeout=60_000)


def test_markup_in_names_is_text_on_every_page(browser: Browser, product: Product, tmp_path: Path) -> None:
    export = Export()
    for i in range(20):
        export.range('<img src=y onerror="window.hit = 2">', 9_000 + 50_000 * i, 30_000 + 50_000 * i)
        export.launched(MARKUP, 10_000 + 50_000 * i, 20_000 + 50_000 * i, i + 1)
    page = signed_in(browser, product, "careful")
    drop(page, export.write(tmp_path / "x.sqlite"), f"{MARKUP}.sqlite")
    expect(page.locator("button.kernel").first).to_contain_text("<script>window.hit", timeout=60_000)
    drawn(page)
    page.locator("button.kernel").first.click()
    expect(page.locator("#details h3")).to_have_text(MARKUP)
    expect(page.locator("#details")).to_contain_text("launched by")
    page.get_by_role("link", name="Compare…").click()
    choose_the_same(page)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#kernels")).to_contain_text("<script>window.hit")
    page.goto(f"http://localhost:{product.port}/profiles/")
    assert page.evaluate("window.hit") is None
    assert page.locator("script:not([src])", has_text="window.hit").count() == 0
