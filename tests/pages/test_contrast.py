"""WCAG 2.1, 1.4.3: every text colour on every surface it can lie on, in both themes, computed from the stylesheets."""

from __future__ import annotations

import re

import pytest
from django.conf import settings

TEXT = ("text", "muted", "faint", "accent", "kept", "flag", "bad", "calm")
CODE = ("c-key", "c-str", "c-num", "c-com", "c-fn", "c-pre")
SURFACES = ("bg", "surface", "sunk", "sel", "add", "del")


def tokens(theme: str) -> dict[str, str]:
    css = "".join((settings.BASE_DIR / "static" / "css" / name).read_text() for name in ("app.css", "code.css"))
    dark = "".join(re.findall(r"@media \(prefers-color-scheme: dark\) \{\s*:root \{(.*?)\}", css, re.S))
    light = "".join(re.findall(r"^:root \{(.*?)\}", css, re.S | re.M))
    found = dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{3,6})", light))
    return found | (dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{3,6})", dark)) if theme == "dark" else {})


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_on_every_surface(theme):
    found = tokens(theme)
    poor = {
        (text, surface): round(contrast(found[text], found[surface]), 2)
        for text in TEXT + CODE
        for surface in SURFACES
        if contrast(found[text], found[surface]) < 4.5
    }
    assert not poor


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_main_buttons_text_can_be_read(theme):
    assert contrast(tokens(theme)["bg"], tokens(theme)["accent"]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_edge_of_a_field_can_be_seen(theme):
    """1.4.11: 3 to 1 for what shows where a control is."""
    found = tokens(theme)
    assert min(contrast(found["edge"], found[surface]) for surface in ("bg", "surface", "sunk")) >= 3
