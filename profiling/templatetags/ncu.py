"""Figures of Nsight Compute reports in words."""

from __future__ import annotations

import re
from typing import Any

from django import template

from profiling.ncu import labels

register = template.Library()


@register.filter
def peak(value: Any) -> str:
    """Percent of peak; a missing one is no zero."""
    if value is None:
        return "not collected"
    return labels.peak(float(value))


@register.filter
def within(value: Any) -> float:
    """A bar's width: percent, at most 100."""
    return round(min(100.0, max(0.0, float(value))), 2)


@register.filter
def of_hundred(value: Any) -> float:
    return within(100 * float(value))


@register.filter
def rate(value: Any, unit: str) -> str:
    """``4.81 TB/s``, ``866 TFLOP/s``: three digits and a prefix."""
    number = float(value)
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {prefix}{unit}"
    return f"{number:.3g} {unit}"


@register.filter
def short_metric(name: str) -> str:
    """Without what all parts of a breakdown share."""
    return re.sub(r"\.(avg|sum)\.pct_of_peak_sustained_(elapsed|active)$", "", name)


@register.filter
def stall_name(reason: str) -> str:
    return reason.replace("_", " ")
