from __future__ import annotations

import io
import threading
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from campaigns import catalog
from campaigns.intake import jobs
from campaigns.models import ImportState, ProblemImport
from tests.factories import person

from .conftest import EXAMPLES, centre_with, needs_sandbox

pytestmark = pytest.mark.django_db
MODEL = (EXAMPLES / "kernelbench" / "shift_in_place.py").read_text()


@pytest.fixture(autouse=True)
def sent(monkeypatch, tmp_path):
    """The jobs that were sent to the queue; a shelf of one's own."""
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path))
    found: list[str] = []
    monkeypatch.setattr(jobs, "enqueue", lambda job: found.append(str(job.pk)))
    return found


@pytest.fixture
def owner() -> Client:
    client = Client()
    client.force_login(person("owner"))
    return client


def zipped(files: dict[str, str]) -> SimpleUploadedFile:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in files.items():
            archive.writestr(f"centre/{path}", text)
    return SimpleUploadedFile("centre.zip", buffer.getvalue())


def given(files: dict[str, str], **more: object) -> ProblemImport:
    return ProblemImport.objects.create(given=files, **more)


def test_an_outsider_is_sent_to_sign_in():
    assert Client().get("/problems/new").status_code == 302


def test_a_paste_becomes_a_job(owner, sent):
    reply = owner.post("/problems/new", {"text": MODEL, "name": "Shift it!"})

    job = ProblemImport.objects.get()
    assert reply.url == job.get_absolute_url()
    assert (job.wish, list(job.given), sent) == ("shift_it", ["pasted.py"], [str(job.pk)])
    assert "Waiting for a worker" in owner.get(reply.url).content.decode()


def test_an_upload_of_a_folder_becomes_a_job(owner):
    owner.post("/problems/new", {"files": zipped(centre_with())})

    assert "problem.toml" in ProblemImport.objects.get().given


@pytest.mark.parametrize(
    ("posted", "told"),
    [
        ({}, "nothing was given"),
        ({"text": "x = 1  # <script>"}, "none of what can be read"),
        ({"text": MODEL, "name": "rmsnorm"}, "already"),
        ({"files": SimpleUploadedFile("a.zip", b"PK\x03\x04")}, "not a readable zip"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_typed_is_lost(owner, posted, told):
    reply = owner.post("/problems/new", posted)

    page = reply.content.decode()
    assert reply.status_code == 422
    assert told in page
    assert escape(posted.get("text", "").strip()) in page
    assert posted.get("name", "") in page
    assert ProblemImport.objects.count() == 0


@needs_sandbox
@pytest.mark.django_db(transaction=True)
def test_what_was_pasted_is_in_the_form_again_after_a_refusal(owner):
    owner.post("/problems/new", {"text": MODEL, "task": "tests: []", "name": "shift"})
    job = ProblemImport.objects.get()
    job.state = ImportState.REFUSED
    job.save()

    link = f"/problems/new?again={job.pk}"
    assert link in owner.get(job.get_absolute_url()).content.decode()
    page = owner.get(link).content.decode()
    assert escape(MODEL.strip()) in page
    assert "tests: []" in page
    assert 'value="shift"' in page
    assert owner.get("/problems/new?again=nonsense").status_code == 200


def test_a_job_ends_on_the_shelf_and_at_a_new_campaign(owner):
    job = given(centre_with(), wish="centred")
    jobs.run(str(job.pk))

    job.refresh_from_db()
    assert (job.state, job.error) == (ImportState.TAKEN, "")
    assert catalog.find("centred").parent.name == "problems"
    assert "/campaigns/new?problem=centred" in owner.get(job.get_absolute_url()).content.decode()
    assert 'value="centred" selected' in owner.get("/campaigns/new?problem=centred").content.decode()
    jobs.run(str(job.pk))  # sent twice: nothing more happens
    assert ProblemImport.objects.get().attempts == 1


@needs_sandbox
@pytest.mark.django_db(transaction=True)
def test_a_refused_one_shows_reasons_and_gives_its_folder(owner):
    text = "def reference(inputs, axes):\n    return {'y': inputs['x'].double() * 0}\n"
    job = given(centre_with(reference=text), wish="zero")
    jobs.run(str(job.pk))

    page = owner.get(job.get_absolute_url()).content.decode()
    assert "guess-passes" in page
    assert "What to do" in page
    assert "zero" not in catalog.all()
    folder = zipfile.ZipFile(io.BytesIO(owner.get(f"{job.get_absolute_url()}folder.zip").content))
    assert "zero/problem.toml" in folder.namelist()


@needs_sandbox
def test_a_job_that_is_stopped_ends_soon_and_leaves_nothing():
    job = given(centre_with(reference="def reference(inputs, axes):\n    while True: pass\n"))
    beat = jobs.Beat(job, job.pk)
    job.claim(job.pk)
    threading.Timer(1.0, beat.stopped.set).start()

    with pytest.raises(jobs.Stopped):
        jobs.make_and_check(job, job.pk, beat)


def test_a_stopped_job_is_not_begun(owner):
    job = given(centre_with())
    owner.post(f"{job.get_absolute_url()}stop")
    jobs.run(str(job.pk))

    job.refresh_from_db()
    assert job.state == ImportState.STOPPED


def test_a_job_whose_worker_was_lost_is_sent_again(sent):
    lost = given({}, state=ImportState.RUNNING, heartbeat_at=timezone.now() - timezone.timedelta(hours=1))
    given({}, state=ImportState.RUNNING, heartbeat_at=timezone.now())
    given({}, state=ImportState.TAKEN)
    jobs.watch()

    assert sent == [str(lost.pk)]


def test_one_that_kills_its_worker_again_and_again_is_given_up():
    job = given({}, attempts=jobs.MAX_ATTEMPTS)
    jobs.run(str(job.pk))

    job.refresh_from_db()
    assert job.state == ImportState.REFUSED
    assert "killed" in job.error
