from __future__ import annotations

from django.apps import AppConfig


class AutoresearchWebConfig(AppConfig):
    name = "autoresearch_web"
    default_auto_field = "django.db.models.BigAutoField"
