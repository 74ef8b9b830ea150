from __future__ import annotations

from django.urls import path

from . import pages
from .rest import api

urlpatterns = [
    path("api/", api.urls),
    path("tokens/", pages.tokens, name="tokens"),
    path("tokens/<int:pk>/revoke", pages.revoke, name="token_revoke"),
]
