"""The site's colours can be read in both schemes (WCAG 2.1, level AA)."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = files("efhorizon.render.html").joinpath("assets", "charts.css").read_text(encoding="utf-8")
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(r"--([a-z]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", STYLE)
}


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_black_on_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "panel"])
@pytest.mark.parametrize("text", ["ink", "soft", "accent", "warm"])
def test_texts(text: str, ground: str, scheme: int) -> None:
    assert contrast(COLOURS[text][scheme], COLOURS[ground][scheme]) >= 4.5


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("mark", ["blue", "orange", "green", "pink", "soft", "accent", "warm"])
def test_marks(mark: str, scheme: int) -> None:
    assert contrast(COLOURS[mark][scheme], COLOURS["paper"][scheme]) >= 3


def test_every_colour_that_is_used_is_defined() -> None:
    pages = files("efhorizon.render.html").joinpath("assets", "site.css").read_text(encoding="utf-8")
    used = set(re.findall(r"var\(--([a-z]+)\)", STYLE + pages)) - {"serif", "sans", "mono"}
    assert used <= set(COLOURS)
