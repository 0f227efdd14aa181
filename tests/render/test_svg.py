"""Writing SVG: escaping, axes, ticks, files for documents."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from efhorizon.render.charts.svg import (
    Axis,
    chart,
    element,
    escaped,
    joined,
    linear_ticks,
    log_ticks,
    path,
    standalone,
    text,
)


def test_text_and_attributes_are_escaped() -> None:
    drawn = element("text", "<b>&", class_='"><script>', data_name="a'b")
    assert drawn == '<text class="&#34;&gt;&lt;script&gt;" data-name="a&#39;b">&lt;b&gt;&amp;</text>'
    assert ElementTree.fromstring(drawn).get("class") == '"><script>'


def test_markup_is_not_escaped_twice() -> None:
    assert element("g", element("rect", x=1.5)) == '<g><rect x="1.5"/></g>'
    assert joined(["<", Markup("<b/>")]) == "&lt;<b/>"


def test_characters_that_xml_forbids_are_replaced() -> None:
    assert escaped("a\x00b\ud800c\n") == "a\ufffdb\ufffdc\n"
    ElementTree.fromstring(element("text", "\x0b\x1f"))


def test_none_leaves_an_attribute_out_and_numbers_are_short() -> None:
    assert element("line", x1=1.0, x2=2.346789, y1=None) == '<line x1="1" x2="2.35"/>'


def test_axis_goes_through_its_ends_and_may_run_downwards() -> None:
    axis = Axis(0, 10, 200, 100)
    assert (axis(0), axis(10), axis(2.5)) == (200, 100, 175)
    assert Axis(3, 3, 0, 100)(3) == 50  # one value: in the middle


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0, 10, [0, 2, 4, 6, 8, 10]), (0, 0.9, [0, 0.2, 0.4, 0.6, 0.8]), (-3, 21, [0, 5, 10, 15, 20]), (4, 4, [4])],
)
def test_linear_ticks(low: float, high: float, ticks: list[float]) -> None:
    assert linear_ticks(low, high) == pytest.approx(ticks)


def test_log_ticks_thin_out() -> None:
    assert log_ticks(2.9, 7.1) == [3, 4, 5, 6, 7]
    assert log_ticks(0, 80, 5) == [0, 17, 34, 51, 68]


def test_path() -> None:
    assert path([(0, 1), (2.5, 3)]) == "M0 1L2.5 3"
    assert path([(0, 1), (2.5, 3)], closed=True) == "M0 1L2.5 3Z"


def test_a_standalone_chart_is_a_document_with_its_own_colours() -> None:
    document = standalone(chart(100, 50, "A <title>", text(1, 2, "x", "tick")))
    root = ElementTree.fromstring(document)
    assert root.get("viewBox") == "0 0 100 50"
    style = root[0].text
    assert style is not None
    assert ".chart .tick" in style
    assert "var(" not in style
    assert "light-dark" not in style
    assert "fill: #0066a1" in style  # the blue of light pages
