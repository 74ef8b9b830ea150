from __future__ import annotations

from django.urls import URLPattern, path, re_path

from .consumers import CampaignConsumer, HomeConsumer
from .views import (
    archive,
    attempts,
    campaigns,
    context,
    control,
    drafts,
    home,
    kernels,
    new,
    problems,
    review,
    spend,
    stack,
)

urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("campaigns/", campaigns.campaign_list, name="campaigns"),
    path("campaigns/new", new.new_campaign, name="new_campaign"),
    path("campaigns/new/problem", new.problem_part, name="new_campaign_problem"),
    path("campaigns/import", archive.restore, name="campaign_import"),
    path("campaigns/<int:pk>/", campaigns.campaign, name="campaign"),
    path("campaigns/<int:pk>/archive.zip", archive.export, name="campaign_export"),
    path("campaigns/<int:pk>/earlier", campaigns.earlier, name="campaign_earlier"),
    re_path(
        r"^campaigns/(?P<pk>\d{1,18})/(?P<verb>start|pause|resume|stop)$", control.control, name="campaign_control"
    ),
    path("campaigns/<int:pk>/steer", control.steer, name="campaign_steer"),
    path("campaigns/<int:pk>/ideas", control.add_idea, name="campaign_add_idea"),
    path("campaigns/<int:pk>/ideas/strike", control.strike_idea, name="campaign_strike_idea"),
    path("campaigns/<int:pk>/attempts/<int:number>/", attempts.attempt, name="attempt"),
    path("campaigns/<int:pk>/attempts/<int:number>/diff", attempts.diff, name="attempt_diff"),
    path("campaigns/<int:pk>/attempts/<int:number>/peek", attempts.peek, name="attempt_peek"),
    path("campaigns/<int:pk>/attempts/<int:number>/report.json", attempts.report, name="attempt_report"),
    path("problems/new", problems.new_problem, name="new_problem"),
    path("problems/imports/<uuid:pk>/", problems.problem_import, name="problem_import"),
    path("problems/imports/<uuid:pk>/status", problems.status, name="problem_import_status"),
    path("problems/imports/<uuid:pk>/stop", problems.stop, name="problem_import_stop"),
    path("problems/imports/<uuid:pk>/again", problems.again, name="problem_import_again"),
    path("problems/imports/<uuid:pk>/folder.zip", problems.draft_zip, name="problem_import_zip"),
    path("kernels/", kernels.kernels, name="kernels"),
    path("kernels/export", kernels.export, name="kernels_export"),
    path("kernels/<int:pk>/withdraw", kernels.withdraw, name="kernel_withdraw"),
    path("context/", context.cards, name="cards"),
    path("context/new", context.new_card, name="new_card"),
    path("context/chosen", context.chosen, name="chosen_cards"),
    path("context/lessons/", context.lessons, name="lessons"),
    path("context/lessons/add", context.add_lesson, name="lesson_add"),
    path("context/lessons/<int:pk>", context.decide_lesson, name="lesson_decide"),
    path("context/versions/<int:pk>/use", context.go_back, name="card_go_back"),
    path("context/drafts/<uuid:profile>/", drafts.drafts, name="drafts"),
    path("context/drafts/<uuid:profile>/ask", drafts.ask, name="drafts_ask"),
    path("context/drafts/<uuid:profile>/<int:pk>", drafts.decide, name="draft_decide"),
    path("context/<str:kind>/<str:slug>/", context.card, name="card"),
    path("spend/", spend.spend, name="spend"),
    path("stack/", stack.stack, name="stack"),
    path("stack/reports/<int:pk>.json", stack.report, name="stack_report"),
    path("stack/<slug:name>/", stack.part, name="stack_part"),
    path("stack/<slug:name>/measure", stack.measure, name="stack_measure"),
    path("stack/<slug:name>/stop", stack.stop, name="stack_stop"),
    path("flags/<int:pk>/decide", control.decide_flag, name="flag_decide"),
    path("review/", review.queue, name="review"),
    path("review/<int:pk>/", review.candidate, name="review_candidate"),
    path("review/<int:pk>/signature", review.signature, name="review_signature"),
    path("review/<int:pk>/approve", review.approve, name="review_approve"),
    path("review/<int:pk>/reject", review.reject, name="review_reject"),
]

websocket_urlpatterns = [
    path("ws/campaigns/<int:campaign_id>", CampaignConsumer.as_asgi()),
    path("ws/home", HomeConsumer.as_asgi()),
]
