"""A campaign as a file: download and import."""

from __future__ import annotations

import re
import tempfile

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from autoresearch_web.streaming import in_pieces
from campaigns import archive
from campaigns.archive.container import MAX_TOTAL_BYTES
from campaigns.models import Campaign

PIECE_BYTES = 1 << 16


@require_safe
def export(request: HttpRequest, pk: int) -> HttpResponse | FileResponse:
    campaign = get_object_or_404(Campaign, pk=pk)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    try:
        archive.export(campaign, file)
    except archive.ArchiveError as error:
        file.close()
        messages.error(request, str(error), extra_tags="bad")
        return redirect(campaign)
    file.seek(0)
    word = re.sub(r"[^a-z0-9]+", "-", campaign.title.lower()).strip("-")[:60] or "campaign"
    name = f"campaign-{pk}-{word}.zip"
    response = FileResponse(file, as_attachment=True, filename=name, content_type="application/zip")
    response.streaming_content = in_pieces(request, iter(lambda: file.read(PIECE_BYTES), b""))
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def restore(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return render(request, "archive/import.html")
    try:
        campaign = taken(request, request.FILES.get("file"))
    except archive.ArchiveError as error:
        known = error.campaign if isinstance(error, archive.KnownError) else None
        return render(request, "archive/import.html", {"problem": str(error), "known": known}, status=422)
    messages.info(request, f"Imported, to be read: {campaign.attempts.count():,} attempts.")
    return redirect(campaign)


def taken(request: HttpRequest, upload: UploadedFile | None) -> Campaign:
    if upload is None:
        raise archive.ArchiveError("No file was chosen.")
    if (upload.size or 0) > MAX_TOTAL_BYTES or upload.file is None:
        raise archive.ArchiveError(f"The file has {upload.size or 0:,} bytes; at most {MAX_TOTAL_BYTES:,} are read.")
    person = request.user if request.user.is_authenticated else None
    return archive.restore(upload.file, upload.name or "", person)
