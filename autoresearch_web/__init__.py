"""How the system is put together. Importing it makes the Celery application the current one."""

from .celery import app as celery_app

__all__ = ["celery_app"]
