from __future__ import annotations

from django.urls import include, path

from . import views

urlpatterns = [
    path("login", views.sign_in, name="login"),
    path("logout", views.sign_out, name="logout"),
    path("healthz", views.healthz, name="healthz"),
    path("profiles/", include("profiling.urls")),
    path("", include("campaigns.api.urls")),
    path("", include("campaigns.urls")),
]

handler500 = views.server_error
