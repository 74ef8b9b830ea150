"""New problem: paste or upload, a check as a job, its reasons, and on to a campaign."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from uuid import UUID

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from autoresearch_web import access
from campaigns import catalog
from campaigns.intake import FORMATS, IntakeError, jobs, read_upload, sniff
from campaigns.intake.source import identifier
from campaigns.intake.upload import MAX_UPLOAD_BYTES
from campaigns.models import ImportState, ProblemImport

MAX_UPLOADS = 40
SHOWN = 20
TASK = "task.yml"


@require_http_methods(["GET", "HEAD", "POST"])
def new_problem(request: HttpRequest) -> HttpResponse:
    """POST takes what was given and sends it to be checked. A refusal shows the form with everything as typed.

    GET with ``?again=ID`` has in it what a problem that was refused later had been pasted as.
    """
    if request.method != "POST":
        return form(request, typed=pasted(request.GET.get("again", "")))
    try:
        given = given_files(request)
        sniff(given)
        wish = wished_name(request.POST.get("name", ""))
    except IntakeError as error:
        return form(request, str(error))
    job = ProblemImport.objects.create(given=given, wish=wish, by=access.person(request))
    jobs.enqueue(job)
    return redirect(job)


def pasted(again: str) -> dict[str, str]:
    """The form's fields as they were for an earlier problem; nothing where there is none, or several files were chosen."""
    try:
        job = ProblemImport.objects.only("given", "wish").get(pk=UUID(again))
    except (ValueError, ProblemImport.DoesNotExist):
        return {}
    texts = [text for path, text in job.given.items() if path != TASK]
    return {"text": texts[0] if len(texts) == 1 else "", "task": job.given.get(TASK, ""), "name": job.wish}


def form(request: HttpRequest, problem: str = "", typed: Mapping[str, str] | None = None) -> HttpResponse:
    typed = typed or {}
    context = {
        "problem": problem,
        **{field: request.POST.get(field, typed.get(field, "")) for field in ("text", "task", "name")},
        "formats": FORMATS.values(),
        "limit_mb": MAX_UPLOAD_BYTES >> 20,
        "imports": ProblemImport.objects.select_related("by").defer("given", "draft", "report")[:SHOWN],
    }
    return render(request, "problems/new.html", context, status=422 if problem else 200)


def given_files(request: HttpRequest) -> dict[str, str]:
    """Uploads and pasted text together, by path. Raises ``IntakeError``."""
    uploads = request.FILES.getlist("files")
    if len(uploads) > MAX_UPLOADS:
        raise IntakeError(f"{len(uploads)} files; at most {MAX_UPLOADS}, or one zip archive of them.")
    if sum(upload.size or 0 for upload in uploads) > MAX_UPLOAD_BYTES:
        raise IntakeError(f"the files have more than {MAX_UPLOAD_BYTES:,} bytes together.")
    found: dict[str, str] = {}
    for upload in uploads:
        add(found, read_upload(upload.name or "problem.py", content_of(upload)))
    if text := request.POST.get("text", "").strip():
        name = "pasted.json" if text[0] in "{[" else "pasted.py"
        add(found, read_upload(name, text.encode()))
    if task := request.POST.get("task", "").strip():
        add(found, read_upload(TASK, task.encode()))
    if not found:
        raise IntakeError("nothing was given: paste a problem, or choose its files.")
    return found


def content_of(upload: UploadedFile) -> bytes:
    if (upload.size or 0) > MAX_UPLOAD_BYTES:
        raise IntakeError(f"{upload.name}: {upload.size or 0:,} bytes; at most {MAX_UPLOAD_BYTES:,} are taken.")
    return upload.read()


def add(found: dict[str, str], more: dict[str, str]) -> None:
    if twice := found.keys() & more.keys():
        raise IntakeError(f"{', '.join(sorted(twice))}: given twice.")
    found.update(more)


def wished_name(text: str) -> str:
    wish = text.strip()
    if not wish:
        return ""
    name = identifier(wish).lower()[:60]
    if name in catalog.all():
        raise IntakeError(f"there is a problem named {name} already: choose another name, or leave it empty.")
    return name


@require_safe
def problem_import(request: HttpRequest, pk: UUID) -> HttpResponse:
    job = get_object_or_404(ProblemImport.objects.select_related("by"), pk=pk)
    return render(request, "problems/import.html", {"job": job})


@require_safe
def status(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What is known by now; asked for every second while it goes on."""
    job = get_object_or_404(ProblemImport, pk=pk)
    return render(request, "problems/_status.html", {"job": job})


@require_POST
def stop(request: HttpRequest, pk: UUID) -> HttpResponse:
    job = get_object_or_404(ProblemImport, pk=pk)
    if not job.stop():
        messages.info(request, "It was over already.")
    return redirect(job)


@require_POST
def again(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The same once more: after a worker was lost, or the harness was mended."""
    old = get_object_or_404(ProblemImport, pk=pk)
    if old.state in (ImportState.WAITING, ImportState.RUNNING, ImportState.TAKEN):
        messages.info(request, "It is still going on, or was taken.")
        return redirect(old)
    job = ProblemImport.objects.create(given=old.given, wish=old.wish, by=access.person(request))
    jobs.enqueue(job)
    return redirect(job)


@require_safe
def draft_zip(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The folder that was made, to be corrected by hand and given again."""
    job = get_object_or_404(ProblemImport, pk=pk)
    if not job.draft:
        messages.error(request, "No folder was made of it.", extra_tags="bad")
        return redirect(job)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in sorted(job.draft.items()):
            archive.writestr(f"{identifier(job.name)}/{path}", text)
    name = identifier(job.name)
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return HttpResponse(buffer.getvalue(), content_type="application/zip", headers=headers)
