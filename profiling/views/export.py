from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_safe

from autoresearch_web.streaming import in_pieces
from profiling import chrome
from profiling.views.timeline import ready_store


@require_safe
def perfetto(request: HttpRequest, pk: UUID) -> StreamingHttpResponse:
    """The timeline as Chrome trace JSON, to open in ui.perfetto.dev. Only what was imported is in it."""
    response = StreamingHttpResponse(
        in_pieces(request, chrome.export(ready_store(pk))), content_type="application/json"
    )
    response["Content-Disposition"] = f'attachment; filename="profile-{pk}.json"'
    return response
