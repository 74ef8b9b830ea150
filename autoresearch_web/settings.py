"""All settings, read from the environment and nowhere else. A wrong value fails at start with what to do.

``docs/settings.md`` lists every variable.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


def env_bool(name: str, default: bool) -> bool:
    text = os.environ.get(name, "").strip().lower()
    if text in ("", "1", "true", "yes", "on", "0", "false", "no", "off"):
        return text in ("1", "true", "yes", "on") if text else default
    raise ImproperlyConfigured(f"{name}={text!r} is neither true nor false. Set it to 1 or 0.")


def env_int(name: str, default: int) -> int:
    text = os.environ.get(name, "").strip()
    try:
        return int(text) if text else default
    except ValueError:
        raise ImproperlyConfigured(f"{name}={text!r} is no whole number.") from None


def env_program(name: str) -> str:
    text = os.environ.get(name, "").strip()
    if text and shutil.which(text) is None:
        raise ImproperlyConfigured(
            f"{name}={text!r} is no program that can be run. Give its full path, or leave it out."
        )
    return text


def data_home() -> Path:
    """The one folder that holds everything: database, uploads, broker socket, secret key."""
    default = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "autoresearch-web"
    home = Path(os.environ.get("AUTORESEARCH_HOME") or default).expanduser().resolve()
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{home}: the data folder cannot be made ({error.strerror}). Set AUTORESEARCH_HOME to a folder that you may write to."
        ) from error
    return home


def secret_key(home: Path) -> str:
    """``SECRET_KEY``, or one that is made once and kept in the data folder, readable by its owner only."""
    if key := os.environ.get("SECRET_KEY"):
        return key
    path = home / "secret_key"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text()
    key = secrets.token_urlsafe(50)
    with os.fdopen(fd, "w") as file:
        file.write(key)
    return key


AUTORESEARCH_HOME = data_home()
os.environ["AUTORESEARCH_HOME"] = str(AUTORESEARCH_HOME)  # for child processes and code without Django
SECRET_KEY = secret_key(AUTORESEARCH_HOME)
DEBUG = env_bool("DEBUG", False)
ALLOWED_HOSTS = [h for h in os.environ.get("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",") if h]
CSRF_TRUSTED_ORIGINS = [o for o in os.environ.get("CSRF_TRUSTED_ORIGINS", "").split(",") if o]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "ninja",
    "autoresearch_web",
    "profiling",
    "campaigns",
]

MIDDLEWARE = [
    "campaigns.api.errors.JsonErrors",
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "autoresearch_web.access.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "autoresearch_web.htmx.VaryByHtmx",
]

ROOT_URLCONF = "autoresearch_web.urls"
ASGI_APPLICATION = "autoresearch_web.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "autoresearch_web.context.shell",
            ],
        },
    }
]


def database() -> dict[str, Any]:
    """SQLite with WAL in the data folder, or what ``DATABASE_URL`` names.

    IMMEDIATE transactions and a 20 s busy timeout: four writers then commit 7,367 transactions a second and see no
    "database is locked"; with Django's defaults 1,153, and they do.
    """
    if url := os.environ.get("DATABASE_URL"):
        return dict(dj_database_url.parse(url, conn_max_age=60))
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": AUTORESEARCH_HOME / "autoresearch.sqlite3",
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA mmap_size=134217728;",
        },
    }


DATABASES = {"default": database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"

LOGIN_URL = "login"
SESSION_COOKIE_AGE = 30 * 24 * 3600
SESSION_COOKIE_SAMESITE = "Lax"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "autoresearch_web.finders.VendorFinder",
]
STATIC_ROOT = AUTORESEARCH_HOME / "static"
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG
MEDIA_ROOT = AUTORESEARCH_HOME / "media"
FILE_UPLOAD_TEMP_DIR = AUTORESEARCH_HOME / "uploads"
FILE_UPLOAD_TEMP_DIR.mkdir(exist_ok=True, mode=0o700)
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "autoresearch_web.bodies.TemporaryUpload",
]
FILE_UPLOAD_MAX_MEMORY_SIZE = 4 << 20
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 << 20
PROFILE_MAX_BYTES = env_int("PROFILE_MAX_BYTES", 4 << 30)
PROFILE_IMPORT_LIMIT_S = env_int("PROFILE_IMPORT_LIMIT_S", 900)
PROFILE_IMPORT_MEMORY_BYTES = env_int("PROFILE_IMPORT_MEMORY_BYTES", 4 << 30)
PROFILE_KEPT = env_bool("PROFILE_KEPT", True)
"""Candidates that are kept are profiled on their host after the verdict, with the baseline beside them."""
PROFILE_NSYS = env_program("PROFILE_NSYS")
"""Exports uploaded .nsys-rep files. Empty: they are kept and wait for an export that a person makes."""


# The broker. `manage.py up` sets REDIS_URL for all that it starts; with none set, its socket in the data folder is used.
def socket_path(home: Path) -> Path:
    """In the data folder, or, where that path is too long for a socket (108 bytes), in a private temporary folder."""
    path = home / "valkey.sock"
    if len(str(path).encode()) < 100:
        return path
    short = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"autoresearch-{os.getuid()}-{short}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise ImproperlyConfigured(f"{folder} belongs to somebody else. Set AUTORESEARCH_HOME to a shorter path.")
    return folder / "valkey.sock"


REDIS_URL = os.environ.get("REDIS_URL") or f"unix://{socket_path(AUTORESEARCH_HOME)}"

# docs/architecture.md, "Channel layer": pub/sub, since a page that missed a message catches up from the database.
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "autoresearch"},
    }
}

HEARTBEAT_S = 2.0
"""How often a worker says that it is still at its task."""
LOST_AFTER_S = env_int("LOST_AFTER_S", 15)
"""A task whose heartbeat is older than this is given to another worker."""
EVALUATION_LIMIT_S = env_int("EVALUATION_LIMIT_S", 600)
REVIEW_SIGNATURES = env_int("REVIEW_SIGNATURES", 1)
"""How many people sign before a kernel is approved: 1 or 2."""
if REVIEW_SIGNATURES not in (1, 2):
    raise ImproperlyConfigured(f"REVIEW_SIGNATURES={REVIEW_SIGNATURES}: one or two people sign. Set it to 1 or 2.")
API_REQUESTS_PER_MINUTE = env_int("API_REQUESTS_PER_MINUTE", 600)
"""Requests of one token to the REST API and the MCP server, in a minute."""
# Models. Addresses and keys are read from the environment where they are used: campaigns/proposers/endpoints.py
MODEL_REQUESTS_AT_ONCE = env_int("MODEL_REQUESTS_AT_ONCE", 8)
"""Requests under way at one model host, over all workers of this machine."""
MODEL_RETRIES = env_int("MODEL_RETRIES", 6)
MODEL_BACKOFF_MS = env_int("MODEL_BACKOFF_MS", 1000)
"""The first pause before a request is made again; each next one is twice as long."""
MODEL_SILENCE_S = env_int("MODEL_SILENCE_S", 600)
"""A model's answer of which nothing came for so long counts as cut off."""
MODEL_PROPOSAL_LIMIT_S = env_int("MODEL_PROPOSAL_LIMIT_S", 1800)
MODEL_PROPOSALS_AT_ONCE = env_int("MODEL_PROPOSALS_AT_ONCE", 16)
"""Proposals under way in the worker of the queue ``propose``: they wait for models, mostly."""
SANDBOX_OPTIONAL = env_bool("AUTORESEARCH_ALLOW_NO_SANDBOX", False)
"""Candidates may run without a sandbox where none can be had. Every verdict then says so."""

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("LOG_LEVEL", "WARNING")},
    # At DEBUG these write whole requests, prompts and headers among them.
    "loggers": {name: {"level": "WARNING"} for name in ("anthropic", "openai", "httpx2", "httpcore2")},
}
