from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from campaigns.models import Campaign, State

from . import samples

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client):
    client.force_login(samples.person("eve"))
    return client


def test_it_can_be_downloaded_and_taken_in_again(browser, rich, exported):
    response = browser.get(f"/campaigns/{rich.pk}/archive.zip")
    assert b"".join(response.streaming_content) == exported
    assert 'filename="campaign-' in response["Content-Disposition"]
    response = browser.post("/campaigns/import", {"file": SimpleUploadedFile("x.zip", exported)})
    imported = Campaign.objects.get(imported_from__isnull=False)
    assert response["Location"] == f"/campaigns/{imported.pk}/"
    assert imported.imported_from["by"] == "eve"


def test_a_file_that_is_none_is_refused_with_the_reason(browser, rich):
    response = browser.post(
        "/campaigns/import", {"file": SimpleUploadedFile("x.zip", b"<script>alert(1)</script>" * 9)}
    )
    assert response.status_code == 422
    assert "no campaign archive" in response.content.decode()
    assert browser.post("/campaigns/import").status_code == 422


def test_a_running_one_says_what_to_do_first(browser, rich):
    Campaign.objects.update(state=State.RUNNING)
    response = browser.get(f"/campaigns/{rich.pk}/archive.zip")
    assert response["Location"] == f"/campaigns/{rich.pk}/"


def test_an_outsider_gets_neither(client, rich):
    assert client.get(f"/campaigns/{rich.pk}/archive.zip").status_code == 302
    assert client.post("/campaigns/import").status_code in (302, 403)


def test_the_imported_mark_names_its_file_and_escapes_it(browser, exported):
    import io

    from django.template.loader import render_to_string

    from campaigns import archive

    campaign = archive.restore(io.BytesIO(exported), "<b>.zip", samples.person("eve"))
    html = render_to_string("campaigns/_archive.html", {"campaign": campaign})
    assert "read only" in html
    assert "&lt;b&gt;.zip" in html
