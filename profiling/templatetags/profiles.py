"""Figures of profiles in words."""

from __future__ import annotations

import re
from typing import Any

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator

from profiling import kernel_names, words

register = template.Library()
MAX_OPTION = 70
_ENDINGS = re.compile(r"(?<=\w)(?:\.(?:json|gz|sqlite|ncu-rep|nsys-rep|hatchet))+$")
_COMPILED = re.compile(r"(?:## )?Call CompiledFxGraph [\w#]{16,}(?: ##)?")


@register.filter
def ns(value: Any) -> str:
    return "not measured" if value is None else words.duration(float(value))


@register.filter
def share(value: Any) -> str:
    return "not measured" if value is None else words.percent(float(value))


@register.filter
def percents(text: Any) -> str:
    """No line ends between a number and its percent sign."""
    return str(text).replace(" %", "\N{NO-BREAK SPACE}%")


@register.filter
def coded(text: str) -> SafeString:
    """Escaped text with what stands between backticks as code."""
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))  # escaped just here


@register.filter
def readable(text: Any) -> str:
    """Mangled symbols as bare names; also in what was written before names were read at import."""
    return kernel_names.readable(str(text or ""))


@register.filter
def breakable(text: Any) -> SafeString:
    """Escaped, and broken after an underscore or a double colon rather than within a word."""
    return mark_safe(re.sub(r"(_+|::)(?=\w)", r"\1<wbr>", escape(text)))  # escaped just here


@register.filter
def capture_name(text: Any) -> str:
    """The name of an attempt's capture without the endings of its file; any other name as it was uploaded."""
    return _ENDINGS.sub("", str(text)) if " · attempt " in str(text) else str(text)


@register.filter
def short_capture(text: Any) -> str:
    """A name for a list to choose from, of at most ``MAX_OPTION`` characters. Of an attempt's capture the campaign's title
    is cut, since what tells it from the others is at its end."""
    name = capture_name(text)
    title, mark, rest = name.rpartition(" · attempt ")
    if not title:
        return Truncator(name).chars(MAX_OPTION)
    return Truncator(title).chars(max(12, MAX_OPTION - len(mark + rest))) + mark + rest


@register.filter
def range_name(text: Any) -> str:
    """Without the hash of the graph that torch.compile writes into its ranges."""
    return _COMPILED.sub("Call CompiledFxGraph", str(text))


@register.filter
def bytes_of(value: Any) -> str:
    return words.size(int(value))


@register.filter
def of_first(kernel: dict[str, Any], kernels: list[dict[str, Any]]) -> int:
    """Percent of the largest total in the table: the width of the kernel's bar."""
    return round(100 * kernel["total_ns"] / max(1, kernels[0]["total_ns"])) if kernels else 0


@register.filter
def calls(value: Any) -> str:
    """Calls per occurrence: a whole number where it is one."""
    return f"{float(value):,.0f}" if float(value).is_integer() else f"{float(value):,.2f}"
