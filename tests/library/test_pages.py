from __future__ import annotations

import re

import pytest

from campaigns import library
from campaigns.models import Attempt, Kernel, KernelExport
from tests.archive import samples

from .conftest import approved

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client):
    client.force_login(samples.person("eve"))
    return client


def test_an_empty_shelf_says_what_to_do_next(browser):
    assert "Review queue" in browser.get("/kernels/").content.decode()


def test_it_shows_where_a_kernel_serves_and_who_approved_it(browser):
    approved("rmsnorm", range_={"axis": "rows", "lo": 2, "hi": 512})
    page = browser.get("/kernels/").content.decode()
    assert "float32: rows 2 to 512, hidden 1 to 65,537" in page
    assert re.search(r"tested at \d shapes: rows \d[^<]*; hidden \d", page)
    assert "grace" in page
    assert "in force" in page


def test_a_title_is_text(browser):
    review = approved("rmsnorm")
    Attempt.objects.filter(pk=review.attempt_id).update(title="<script>alert(1)</script>")
    assert "<script>alert" not in browser.get("/kernels/").content.decode()


def test_an_export_downloads_and_is_remembered_with_who_took_it(browser):
    approved("rmsnorm")
    response = browser.post(
        "/kernels/export", {"form": "package", "operator": "rmsnorm", "fallback-rmsnorm": "compile"}
    )
    assert response["Content-Disposition"].endswith('-py3-none-any.whl"')
    note = KernelExport.objects.get()
    assert (note.by.username, note.form) == ("eve", "package")
    assert note.sha256 in browser.get("/kernels/").content.decode()


def test_a_refused_export_says_why(browser):
    approved("rmsnorm")
    page = browser.post("/kernels/export", {"operator": "rmsnorm", "fallback-rmsnorm": "flashinfer"}, follow=True)
    assert "has no baseline &#x27;flashinfer&#x27;" in page.content.decode()


def test_a_withdrawal_marks_the_kernel_and_what_was_handed_out(browser):
    approved("rmsnorm")
    library.export("package", None)
    kernel = Kernel.objects.get()
    assert "Say why" in browser.post(f"/kernels/{kernel.pk}/withdraw", {"reason": " "}, follow=True).content.decode()
    page = browser.post(f"/kernels/{kernel.pk}/withdraw", {"reason": "wrong for <NaN>"}, follow=True).content.decode()
    assert "off the shelf" in page
    assert "holds 1 that is off the shelf" in page
    assert "wrong for &lt;NaN&gt;" in page
    kernel.refresh_from_db()
    assert kernel.withdrawn_by.username == "eve"


def test_an_outsider_sees_and_changes_nothing(client):
    approved("rmsnorm")
    library.collect()
    kernel = Kernel.objects.get()
    assert client.get("/kernels/").status_code == 302
    client.post(f"/kernels/{kernel.pk}/withdraw", {"reason": "x"})
    kernel.refresh_from_db()
    assert kernel.withdrawn_at is None


def test_only_what_is_in_force_is_offered_for_export(browser):
    approved("rmsnorm")
    approved("softmax", "torch")
    library.withdraw(library.kernels(["softmax"])[0], None, "x")
    page = browser.get("/kernels/").content.decode()
    assert 'value="rmsnorm" checked' in page
    assert 'value="softmax" checked' not in page
