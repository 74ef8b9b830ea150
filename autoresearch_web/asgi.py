"""The ASGI application: pages and REST by HTTP, events by WebSocket, agents by MCP below ``/mcp``."""

from __future__ import annotations

import os
import tempfile
from typing import cast

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "autoresearch_web.settings")
pages = get_asgi_application()
# Django keeps a request's body in a temporary file, of gigabytes where it is a profile: not where /tmp is memory.
tempfile.tempdir = str(settings.FILE_UPLOAD_TEMP_DIR)

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator

from autoresearch_web.bodies import BoundedBodies
from campaigns.mcp.http import App, McpOverHttp
from campaigns.urls import websocket_urlpatterns

application = ProtocolTypeRouter(
    {
        "http": McpOverHttp(otherwise=BoundedBodies(cast(App, pages))),
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
