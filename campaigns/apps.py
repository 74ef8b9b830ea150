from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    name = "campaigns"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.contrib.auth.signals import user_logged_out

        from campaigns import traces

        traces.connect()
        user_logged_out.connect(close_sockets)


def close_sockets(request: Any, **kwargs: Any) -> None:
    from campaigns import notify

    if request.session.session_key:
        notify.signed_out(request.session.session_key)
