"""The live page and the review in a real Chromium, against a real server, broker and socket."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def open_as(site, browser) -> Iterator:
    contexts = []

    def open_(name: str, path: str):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.goto(site.login_link(name, path))
        return page

    yield open_
    for context in contexts:
        assert [fault for page in context.pages for fault in page.faults] == []
        context.close()


@pytest.fixture
def campaign(site) -> int:
    return site.do("c = make_campaign(); make_attempt(c, 'reverted'); out = c.pk")


def numbers(page) -> list[int]:
    return page.eval_on_selector_all(
        "#attempts > tbody[data-number]", "rows => rows.map(r => Number(r.dataset.number))"
    )


def wait_rows(page, count: int) -> None:
    page.wait_for_function(
        f"document.querySelectorAll('#attempts > tbody[data-number]').length === {count}", timeout=20000
    )


def test_attempts_grow_in_place_without_a_reload(site, open_as, campaign):
    page = open_as("owner", f"/campaigns/{campaign}/")
    page.evaluate("window.stillTheSamePage = true")
    site.do("a = make_attempt(c)")
    page.wait_for_selector("#attempt-2[data-kind=proposing]")
    site.do("notify.text(c.pk, a.number, 'Splitting <b>T</b> over '); notify.text(c.pk, a.number, '64 programs')")
    page.wait_for_function("document.querySelector('[data-stream=\"2\"]')?.textContent.endsWith('64 programs')")
    site.do("a.delete(); c.attempt_seq = 1; make_attempt(c, 'kept', title='a better one')")
    page.wait_for_selector("#attempt-2[data-kind=kept] >> text=a better one")
    page.wait_for_selector("#live-strip >> text=2.31×")
    assert numbers(page) == [2, 1]
    page.wait_for_function("document.querySelectorAll('#chart .scatterlayer .point').length >= 2")
    assert page.evaluate("window.stillTheSamePage")


def test_a_page_that_lost_its_server_catches_up_with_none_lost_and_none_twice(site, open_as, campaign):
    page = open_as("owner", f"/campaigns/{campaign}/")
    site.do("make_attempt(c, 'reverted')")
    wait_rows(page, 2)  # it is connected
    site.stop_web()
    try:
        page.wait_for_selector("#link >> text=connection lost, retrying")
        site.do("[make_attempt(c, v) for v in ('kept', 'incorrect', 'reverted', 'flagged')]")
    finally:  # whatever this page did, the next ones need a server
        site.start()
    wait_rows(page, 6)
    site.do("make_attempt(c, 'reverted')")
    wait_rows(page, 7)
    assert numbers(page) == [7, 6, 5, 4, 3, 2, 1]


def test_two_people_see_the_same(site, open_as, campaign):
    one, two = (open_as(name, f"/campaigns/{campaign}/") for name in ("owner", "teammate"))
    site.do("[make_attempt(c, v) for v in ('kept', 'stacked')]")
    for page in (one, two):
        wait_rows(page, 3)
    strip = [re.sub(r"\d+:\d+", "", page.inner_text("#live-strip")) for page in (one, two)]
    assert strip[0] == strip[1]


def test_an_open_row_stays_open_while_others_come(site, open_as, campaign):
    page = open_as("owner", f"/campaigns/{campaign}/")
    page.click("#attempt-1 button.grow-row")
    page.wait_for_selector("#attempt-1 tr.more >> text=kTile1")
    site.do("make_attempt(c, 'reverted')")
    wait_rows(page, 2)
    assert page.is_visible("#attempt-1 tr.more >> text=kTile1")


def test_a_person_pauses_steers_and_strikes_by_keyboard(site, open_as, campaign):
    page = open_as("owner", f"/campaigns/{campaign}/")
    page.keyboard.press("s")
    page.keyboard.type("Leave the block sizes alone.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#notice >> text=Noted.")
    page.wait_for_selector("#live-notes >> text=Leave the block sizes alone.")
    assert page.input_value("#steer-text") == ""
    page.keyboard.press("Escape")
    page.click("#live-ideas button")
    page.wait_for_selector("#live-ideas >> text=struck")
    page.keyboard.press("p")
    page.wait_for_selector("#do-resume")
    assert site.do("c.refresh_from_db(); out = c.state") == "paused"


def test_a_note_that_is_refused_stays_in_its_field(site, open_as, campaign):
    page = open_as("owner", f"/campaigns/{campaign}/")
    page.click("summary >> text=Steer")
    page.fill("#steer-text", "Too late")
    site.do("Campaign.objects.filter(pk=c.pk).update(state='finished')")
    page.click("form[action$=steer] button")
    page.wait_for_selector("#notice .bad >> text=The campaign has ended")
    assert page.input_value("#steer-text") == "Too late"


def test_the_review_goes_by_keys_without_a_reload(site, open_as):
    site.do(
        "Attempt.objects.all().delete(); c = make_campaign(); k = [make_attempt(c, 'kept', title=f'kernel {i}') for i in (1, 2, 3)]"
    )
    page = open_as("owner", "/review/")
    page.evaluate("window.stillTheSamePage = true")
    page.keyboard.press("j")
    page.wait_for_selector("h1 >> text=kernel 2")
    page.keyboard.press("k")
    page.wait_for_selector("h1 >> text=kernel 1")
    page.wait_for_selector("[data-plot=speed] .barlayer .point")
    page.keyboard.press("d")
    page.wait_for_selector("table.diff.split")
    page.keyboard.press("a")
    page.wait_for_selector("h1 >> text=kernel 2")
    page.wait_for_selector("[data-plot=speed] .barlayer .point")
    page.keyboard.press("r")
    page.keyboard.type("It depends on the order of threads.")
    page.click("form[action$=reject] button")
    page.wait_for_selector("h1 >> text=kernel 3")
    page.keyboard.press("A")
    page.wait_for_selector(".signature input[name=range_sha256]", state="attached")
    page.fill("#range-hi", "64")
    page.keyboard.press("Tab")
    page.wait_for_timeout(800)
    page.click("text=Approve for this range")
    page.wait_for_selector("text=Nothing waits for you")
    assert page.evaluate("window.stillTheSamePage")
    decided = "out = list(Review.objects.order_by('pk').values_list('decision', 'range'))"
    axis = {"axis": "rows", "lo": 5, "hi": 64}
    assert site.do(decided) == [["approved", None], ["rejected", None], ["approved", axis]]


def test_ten_candidates_are_reviewed_by_keys_alone_without_a_reload(site, open_as):
    """Approved, approved for a range, rejected, measured again, a block dismissed with its precedent on the screen."""
    first, *_ = site.do("from tests.pages.everything import ten_to_review; out = ten_to_review()")
    page = open_as("owner", f"/review/{first}/")
    page.evaluate("window.stillTheSamePage = true")
    press, began = page.keyboard.press, time.monotonic()

    def at(title):
        page.wait_for_selector(f"h1 >> text={title}")
        for part in ("table.diff", "[data-plot=speed]", "[data-plot=roofline]", "#flags", ".fenced", "#bar"):
            assert page.locator(f"#candidate {part}").count(), part

    at("kernel 0")
    press("a")
    at("kernel 1")
    press("r")
    page.keyboard.type("It depends on the order of threads.")
    press("Tab")
    page.keyboard.type("it cheats")
    press("Tab")
    press("Enter")
    at("kernel 2")
    press("A")
    page.wait_for_selector(".signature input[name=range_sha256]", state="attached")
    whole_range = page.get_attribute(".signature [title]", "title")
    press("Tab")
    page.keyboard.type("64")
    press("Tab")
    page.wait_for_selector(f".signature [title]:not([title='{whole_range}'])")
    press("Enter")
    at("kernel 3")
    assert page.is_disabled("#bar [data-key=a]")
    assert page.is_visible("#flags >> text=The problem allows a cache.")
    press("f")
    while page.evaluate("document.activeElement.name") != "reason":
        press("Tab")
    page.keyboard.type("The same cache as before.")
    press("Tab")
    press("Tab")
    press("Enter")
    page.wait_for_selector("#bar [data-key=a]:not([disabled])")
    press("m")
    page.wait_for_selector("#again >> text=under way")
    press("a")
    for number in range(4, 10):
        at(f"kernel {number}")
        press("a")
    page.wait_for_selector("text=Nothing waits for you")
    took_s = time.monotonic() - began
    print(f"ten candidates took {took_s:.1f} s")
    assert took_s < 60, "the promise is a minute, and a machine that others share still keeps it"
    assert page.evaluate("window.stillTheSamePage")
    decided = "out = list(Review.objects.order_by('pk').values_list('decision', 'kind', 'range'))"
    whole, part = ["approved", "", None], ["approved", "", {"axis": "rows", "lo": 5, "hi": 64}]
    assert site.do(decided) == [whole, ["rejected", "cheat", None], part, *[whole] * 7]


def test_the_second_tab_is_told_who_approved_first(site, open_as):
    made = (
        "Attempt.objects.all().delete(); c = make_campaign(); k = make_attempt(c, 'kept', title='the one'); out = c.pk"
    )
    pk = site.do(made)
    one, two = open_as("owner", "/review/"), open_as("teammate", "/review/")
    elsewhere = [open_as("teammate", path) for path in ("/kernels/", f"/campaigns/{pk}/")]
    for page in elsewhere:
        page.wait_for_selector("#review-count >> text=1")
    one.keyboard.press("a")
    for page in elsewhere:
        page.wait_for_selector("#review-count:empty", state="attached", timeout=10000)
    one.wait_for_selector("text=Nothing waits for you")
    two.keyboard.press("r")
    two.keyboard.type("My reason")
    two.click("form[action$=reject] button")
    two.wait_for_selector("[role=alert] >> text=owner was first")
    assert two.input_value("#reject-reason") == "My reason"
    assert two.is_visible("h1 >> text=the one")


def test_a_double_click_and_a_key_held_down_decide_once(site, open_as):
    site.do("Attempt.objects.all().delete(); c = make_campaign(); [make_attempt(c, 'kept') for _ in range(4)]")
    page = open_as("owner", "/review/")
    box = page.locator("#bar button.go:visible").first.bounding_box()
    page.mouse.move(box["x"] + 9, box["y"] + 9)
    for count in (1, 2):  # the second one comes when the next candidate has taken the place of the first
        page.mouse.down(click_count=count)
        page.mouse.up(click_count=count)
        page.wait_for_url("**/review/*/")
    page.wait_for_selector(".notice.kept >> text=attempt 1")
    decided = "out = list(Review.objects.order_by('pk').values_list('attempt__number', flat=True))"
    assert site.do(decided) == [1]
    page.keyboard.down("a")
    page.wait_for_selector(".notice.kept >> text=attempt 2")
    page.keyboard.down("a")
    page.keyboard.up("a")
    page.wait_for_timeout(500)
    assert site.do(decided) == [1, 2]


def test_back_and_reload_in_the_middle_of_a_review(site, open_as):
    first, _ = site.do(
        "Attempt.objects.all().delete(); c = make_campaign(); out = [make_attempt(c, 'kept', title=f'k{i}').pk for i in (1, 2)]"
    )
    page = open_as("owner", f"/review/{first}/")
    page.keyboard.press("a")
    page.wait_for_selector("h1 >> text=k2")
    page.go_back()
    page.wait_for_selector("h1 >> text=k1")
    assert page.locator("nav").is_visible()
    page.go_forward()
    page.wait_for_selector("h1 >> text=k2")
    page.keyboard.press("r")
    page.keyboard.type("Half a reason")
    page.evaluate("document.querySelector('a.skip').click()")
    page.goto(f"{site.url}/kernels/")
    page.go_back()
    page.wait_for_selector("h1 >> text=k2")
    assert page.locator("nav").is_visible()


def test_a_page_hears_nothing_after_its_session_signed_out_elsewhere(site, open_as, campaign):
    page = open_as("owner", f"/campaigns/{campaign}/")
    page.wait_for_function("document.getElementById('link').textContent === ''")
    other = page.context.new_page()
    other.faults = []
    other.goto(f"{site.url}/kernels/")
    other.click("text=sign out")
    page.wait_for_selector("#link >> text=signed out", timeout=10000)
    site.do("make_attempt(c, 'kept')")
    page.click("button:has-text('Pause')")
    page.wait_for_url(f"**/login?next=/campaigns/{campaign}/")


def test_a_page_of_a_campaign_that_is_deleted_says_so(site, open_as, campaign):
    page = open_as("owner", f"/campaigns/{campaign}/")
    site.do("pk = c.pk; Attempt.objects.filter(campaign=c).delete(); c.delete(); notify.there_is_more(pk, 99)")
    page.wait_for_selector("#link >> text=not there any more", timeout=10000)


def test_home_shows_what_has_come_by_itself(site, open_as):
    site.do("Attempt.objects.all().delete(); c = make_campaign(title='Under way')")
    page = open_as("owner", "/")
    page.wait_for_selector("text=Nothing waits for your word.")
    site.do("make_attempt(c, 'kept', title='fresh from the oven')")
    page.wait_for_selector("#home >> text=fresh from the oven", timeout=10000)


def test_a_policy_that_allows_only_our_own_scripts_breaks_nothing(site, open_as, campaign):
    site.do("make_attempt(c, 'kept')")
    page = open_as("owner", f"/campaigns/{campaign}/")
    refused = []
    page.on(
        "console", lambda message: refused.append(message.text) if "Content Security Policy" in message.text else None
    )

    def strict(route) -> None:
        answer = route.fetch()
        policy = "script-src 'self'; object-src 'none'; base-uri 'none'"
        route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": policy})

    page.route(lambda url: "/static/" not in url and "/ws/" not in url, strict)
    for path in (f"/campaigns/{campaign}/", f"/campaigns/{campaign}/attempts/2/", "/review/", "/campaigns/new", "/"):
        page.goto(site.url + path)
        page.wait_for_timeout(700)
    assert refused == []
