"""The demo: our own capture of an H200, the region that is foolish in it, and a campaign that does something about it.

Beside it, finished campaigns that were recorded on an H200 (``recordings``)."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User

from campaigns import actions, dispatch, recordings
from campaigns.models import Campaign
from profiling import importing, uploads
from profiling.models import Profile, Region

CAPTURE = Path(settings.BASE_DIR) / "profiling" / "demo" / "decode_h200.sqlite"
TITLE = recordings.TITLE
NOTE = "This is dumb: 32 trips through the cache, with a copy each, where one would do."
IDEA = (
    "We load the latent cache in 1k pieces, with a copy each. Read it in larger pieces, or once, and without the copy."
)
ATTEMPTS = 40


def begin(username: str) -> str:
    """Import the capture, mark the region and start the campaign, unless that was done before. Returns where to look."""
    live = Campaign.objects.filter(title=TITLE, imported_from__isnull=True).order_by("-id").first() or start(username)
    if recordings.files():
        dispatch.take_recorded(live.pk)
    return live.get_absolute_url()


def start(username: str) -> Campaign:
    person = User.objects.get_or_create(username=username)[0]
    region = mark(capture(person), person)
    new = actions.NewCampaign(title=TITLE, problem="mla_decode", idea=IDEA, budget_attempts=ATTEMPTS, region=region)
    campaign = actions.create(new, person)
    actions.start(campaign, person)
    return campaign


def capture(person: User) -> Profile:
    digest = uploads.digest(uploads.file_chunks(CAPTURE))
    profile = importing.import_file(CAPTURE, CAPTURE.name, digest, lambda percent, phase: True)
    Profile.objects.filter(pk=profile.pk, uploaded_by=None).update(uploaded_by=person)
    return profile


def mark(profile: Profile, person: User) -> Region:
    """The region of the finding about work in pieces, or, were there none, of the first finding."""
    findings = sorted(profile.findings, key=lambda finding: "pieces" not in finding["title"])
    start_ns, end_ns = (findings[0]["start_ns"], findings[0]["end_ns"]) if findings else (0, profile.span_ns or 1)
    if known := Region.objects.filter(profile=profile, author=person, note=NOTE).first():
        return known  # whoever made it was killed before the campaign
    region = Region(profile=profile, start_ns=start_ns, end_ns=end_ns, note=NOTE, author=person)
    region.measure()
    region.save()
    return region
