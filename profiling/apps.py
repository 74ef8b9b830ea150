from __future__ import annotations

from django.apps import AppConfig


class ProfilingConfig(AppConfig):
    name = "profiling"
    default_auto_field = "django.db.models.BigAutoField"
