"""Numbers as people read them: with their unit, and "not measured" where there is none."""

from __future__ import annotations

import json
import math
from collections import Counter
from datetime import timedelta
from typing import Any

from django import template

from campaigns.presenters.standing import Standing, flag_standing, is_slower, standing_of
from campaigns.presenters.text import visible
from profiling.kernel_names import short_name

register = template.Library()
NOT_MEASURED = "not measured"


def finite(value: Any) -> float | None:
    """The number, or None for what is none: null, text, NaN, infinity."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


@register.filter
def times(value: Any) -> str:
    """A speed-up: 2.31×, 12.4×, 0.043×."""
    number = finite(value)
    if number is None:
        return NOT_MEASURED
    if number >= 1000:
        return f"{number:,.0f}×"
    if number >= 10:
        return f"{number:.1f}×"
    return f"{number:.2f}×" if number >= 0.1 or number == 0 else f"{number:.2g}×"


@register.filter
def plus_minus(value: Any) -> str:
    """Half the width of an interval of a speed-up, as ±0.02. Nothing where there is none."""
    number = finite(value)
    if number is None:
        return ""
    if number >= 10:
        return f"±{number:,.0f}"
    return f"±{number:.2f}" if number >= 0.01 else f"±{number:.3f}"


@register.filter
def micros(value: Any) -> str:
    """A time given in µs, in the unit that fits: 5.62 µs, 1.32 ms, 2.1 s."""
    number = finite(value)
    if number is None:
        return NOT_MEASURED
    for limit, scale, unit in ((1e3, 1.0, "µs"), (1e6, 1e3, "ms")):
        if abs(number) < limit:
            return f"{three_digits(number / scale)}\u00a0{unit}"
    return f"{three_digits(number / 1e6)}\u00a0s"


def three_digits(number: float) -> str:
    """Three significant digits without an exponent."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"


@register.filter
def digits(value: Any) -> str:
    """Three significant digits, as for errors and tolerances."""
    number = finite(value)
    return NOT_MEASURED if number is None else f"{number:.3g}"


@register.filter
def percent(value: Any) -> str:
    """A share between 0 and 1 as 63 %."""
    number = finite(value)
    if number is None:
        return NOT_MEASURED
    return f"{100 * number:.0f}\u00a0%" if abs(number) >= 0.0995 or number == 0 else f"{100 * number:.1f}\u00a0%"


@register.filter
def clock(value: timedelta | float | None) -> str:
    """A duration as 0:14, 12:03 or 1:02:03."""
    if value is None:
        return ""
    seconds = int(value.total_seconds() if isinstance(value, timedelta) else value)
    minutes, seconds = divmod(max(0, seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@register.filter
def dollars(value: Any) -> str:
    number = finite(value)
    if number is None:
        return "—"
    return f"${number:,.2f}" if number >= 0.005 or number == 0 else "< $0.01"


@register.filter
def short_sha(value: str) -> str:
    """4f2a…91c0: enough to compare by eye."""
    return f"{value[:4]}…{value[-4:]}" if len(value) > 12 else value


@register.filter
def gain(attempt: Any) -> str:
    """The winner's colour of a speed-up over the baseline: of a kept kernel that is not slower than it."""
    return "kept" if attempt and standing_of(attempt).is_winner and not is_slower(attempt) else ""


@register.filter
def standing(attempt: Any) -> Standing:
    return standing_of(attempt)


@register.filter
def flag_state(flag: Any) -> Standing:
    return flag_standing(flag)


@register.filter
def serious(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The flags that warn or block, of what ``flags_of`` gives."""
    return [item for item in items if item["flag"].severity != "note"]


@register.filter
def notes(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The others: nothing follows from them, and there may be dozens."""
    return [item for item in items if item["flag"].severity == "note"]


@register.filter
def rules(items: list[dict[str, Any]]) -> str:
    """Their rules with how often each was met, most often first: ``assembly (37), state``."""
    counted = Counter(item["flag"].rule for item in items).most_common()
    return visible(", ".join(f"{rule} ({count})" if count > 1 else rule for rule, count in counted))


@register.filter
def plain(value: Any) -> str:
    """Text from outside, with control and direction characters made visible. The template escapes it."""
    return visible(str(value or ""))


@register.filter
def kernel_name(value: Any) -> str:
    """A kernel's bare name, as profiles show it."""
    return short_name(str(value or ""))


@register.filter
def get(mapping: Any, key: Any) -> Any:
    return mapping.get(key) if hasattr(mapping, "get") else None


@register.filter
def pretty(value: Any) -> str:
    """A JSON value, indented, for people."""
    return visible(json.dumps(value, indent=2, ensure_ascii=False, default=str))
