"""Writing SVG: elements whose text and attributes are escaped, axes that turn data into pixels, tick marks.

A chart is a string of type Markup. Colours are CSS classes only (assets/charts.css), so that one picture serves the
light and the dark page; `standalone` makes a file of it for documents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup, escape

from efhorizon.render.numbers import power_of_ten, significant

_CONTROLS = re.compile("[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # most are not in XML
_STEPS_OF_TICKS = (1, 2, 5, 10)


def printable(text: str) -> str:
    """Text without control characters and without what an XML parser refuses."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def escaped(text: object) -> Markup:
    """Text that is safe between tags or in quotes, and that an XML parser accepts."""
    return escape(printable(str(text)))


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """One element. `class_` gives class, `stroke_width` gives stroke-width; None leaves an attribute out."""
    written = "".join(
        f' {_attribute_name(name)}="{escaped(_attribute_value(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if not children:
        return Markup(f"<{tag}{written}/>")  # every part of it is escaped
    inside = joined(children)
    return Markup(f"<{tag}{written}>{inside}</{tag}>")


def joined(parts: Iterable[object]) -> Markup:
    """Parts one after the other; what is not markup yet is escaped."""
    return Markup("").join(part if isinstance(part, Markup) else escaped(part) for part in parts)


def chart(width: float, height: float, title: str, *children: object, has_links: bool = False) -> Markup:
    """A whole picture; the title is all that a screen reader says of an "img", so links need a "group"."""
    return element(
        "svg",
        element("title", title),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        class_="chart",
        viewBox=f"0 0 {_pixels(width)} {_pixels(height)}",
        width=width,
        height=height,
        role="group" if has_links else "img",
        aria_label=title,
    )


def standalone(picture: Markup) -> str:
    """The file of a chart, with its own style sheet."""
    opening, rest = str(picture).split(">", 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{opening}><style>{escaped(_light_style())}</style>{rest}\n'


def _light_style() -> str:
    """The style sheet of charts with its light colours filled in: word processors do not know custom properties."""
    style = files("efhorizon.render.html").joinpath("assets", "charts.css").read_text(encoding="utf-8")
    colours, rules = style.split("}", 1)
    light = dict(re.findall(r"(--[a-z]+): light-dark\((#[0-9a-f]+),", colours))
    return re.sub(r"var\((--[a-z]+)\)", lambda found: light[found[1]], rules)


def path(points: Sequence[tuple[float, float]], *, closed: bool = False) -> str:
    """The `d` attribute of a broken line."""
    return "M" + "L".join(f"{_pixels(x)} {_pixels(y)}" for x, y in points) + ("Z" if closed else "")


def text(x: float, y: float, content: object, class_: str, **attributes: object) -> Markup:
    return element("text", content, x=x, y=y, class_=class_, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


@dataclass(frozen=True)
class Axis:
    """From data (`low` to `high`) to pixels (`start` to `end`); a logarithmic axis takes log10 of the data."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return self.start + share * (self.end - self.start)


def linear_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers within an interval, about as many as wanted."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low]
    rough = span / max(1, wanted)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in _STEPS_OF_TICKS if size * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def log_ticks(low: float, high: float, wanted: int = 6) -> list[int]:
    """Whole powers of ten between two logarithms, about as many as wanted."""
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    step = max(1, math.ceil((last - first + 1) / max(1, wanted)))
    return list(range(first, last + 1, step))


def tick_text(value: float) -> str:
    return significant(value, 4)


def log_tick_text(exponent: float) -> str:
    return power_of_ten(exponent)


def _attribute_name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _attribute_value(value: object) -> object:
    return _pixels(value) if isinstance(value, float) else value


def _pixels(value: float) -> str:
    """Two decimal places are finer than any screen."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if not float(value).is_integer() else str(int(value))
