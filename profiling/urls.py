from __future__ import annotations

from django.urls import path

from .ncu import views as ncu
from .views import compare, export, listing, page, regions, timeline

urlpatterns = [
    path("", listing.profiles, name="profiles"),
    path("compare", compare.compare, name="profile_compare"),
    path("upload", listing.upload, name="profile_upload"),
    path("<uuid:pk>/", page.profile, name="profile"),
    path("<uuid:pk>/perfetto.json", export.perfetto, name="profile_export"),
    path("<uuid:pk>/status", page.status, name="profile_status"),
    path("<uuid:pk>/retry", page.retry, name="profile_retry"),
    path("<uuid:pk>/delete", page.delete, name="profile_delete"),
    path("<uuid:pk>/window", timeline.window, name="profile_window"),
    path("<uuid:pk>/event/<int:event>", timeline.event, name="profile_event"),
    path("<uuid:pk>/kernels/<int:launch>/metrics", ncu.metrics, name="profile_kernel_metrics"),
    path("<uuid:pk>/find", timeline.find, name="profile_find"),
    path("<uuid:pk>/regions", regions.create, name="region_create"),
    path("regions/<int:pk>/edit", regions.edit, name="region_edit"),
    path("regions/<int:pk>/delete", regions.delete, name="region_delete"),
]
