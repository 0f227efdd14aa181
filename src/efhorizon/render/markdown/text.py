"""Markdown for GitHub: tables, footnotes, and numbers with the same digits on every machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from efhorizon.evaluation.metrics import MEDIAN_RATIO, Metric
from efhorizon.evaluation.resampling import Estimate
from efhorizon.render.numbers import DIVIDED, MISSING, TIMES, plain_from_log10, plain_number

_NO_BREAK = "\N{NO-BREAK SPACE}"
_DIGITS = 9  # further digits are the last bits of a logarithm, which differ between machines
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_SPECIAL = re.compile(r"[\\`*\[\]|~$#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")  # pong_10 needs no backslash
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "://": "&#58;//"}  # "&" first


def escaped(text: object) -> str:
    """Any text as plain text: no markup, no link, one line."""
    line = _SPECIAL.sub(lambda found: "\\" + found[0], _BLANKS.sub(" ", str(text)).strip())
    for special, entity in _ENTITIES.items():
        line = line.replace(special, entity)
    return line


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, num_left: int = 1) -> str:
    """A table of cells that are Markdown already; all columns but the first ones are aligned to the right."""
    marks = ["---" if place < num_left else "--:" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, marks, *rows))


def blocks(*parts: str) -> str:
    """Paragraphs, headings and tables one after the other; empty ones are left out."""
    return "\n\n".join(part for part in parts if part)


def unbroken(text: str) -> str:
    """Text that stays on one line."""
    return text.replace(" ", _NO_BREAK)


def picture(file: str, caption: str, width: str) -> str:
    """An image with a relative link."""
    return f'<img src="{file}" alt="{escaped(caption).replace(chr(34), "&quot;")}" width="{width}">'


@dataclass(frozen=True)
class Footnotes:
    """Reasons below a table, numbered in order of appearance; equal ones share a number."""

    _numbers: dict[str, int] = field(default_factory=dict)

    def mark(self, reason: str) -> str:
        return f"<sup>{self._numbers.setdefault(reason, len(self._numbers) + 1)}</sup>"

    def missing(self, reason: str | None) -> str:
        """The cell of a value that does not exist."""
        return MISSING + self.mark(reason or "unknown")

    def text(self) -> str:
        return "\\\n".join(f"<sup>{number}</sup> {escaped(reason)}" for reason, number in self._numbers.items())


def number(value: float | None) -> str:
    """Whole numbers as they are, others with two digits."""
    if value is None:
        return MISSING
    return plain_number(value if isinstance(value, int) else _two_digits(value))


def significant(value: float | None) -> str:
    """Four digits, wherever the number begins."""
    return MISSING if value is None else plain_number(float(f"{value:.12g}") + 0.0, "{:.4g}")


def from_log10(logarithm: float | None) -> str:
    """The number with this logarithm: 31, 2.3, 7.2e10."""
    return MISSING if logarithm is None else plain_from_log10(round(logarithm, _DIGITS))


def factor(logarithm: float) -> str:
    """By what factor one number is larger (times) or smaller (divided) than another."""
    size = round(logarithm, _DIGITS)
    return f"{TIMES if size >= 0 else DIVIDED} {from_log10(abs(size))}"


def difference(value: float) -> str:
    """With its sign."""
    return f"{_two_digits(value):+.2f}"


def metric_text(value: float | None, metric: Metric) -> str:
    return from_log10(value) if metric is MEDIAN_RATIO else number(value)


def estimate_text(estimate: Estimate, metric: Metric, notes: Footnotes, *, is_bold: bool = False) -> str:
    """0.81 [0.70, 0.89], or as much as there is, with the reason for anything missing in the footnotes."""
    if estimate.value is None:
        return notes.missing(estimate.reason)
    shown = metric_text(estimate.value, metric)
    shown = f"**{shown}**" if is_bold else shown
    if estimate.low is None:
        return shown + notes.mark(f"no interval: {estimate.interval_reason}")
    return f"{shown} {interval(metric_text(estimate.low, metric), metric_text(estimate.high, metric))}"


def interval(low: str, high: str) -> str:
    """[0.70, 0.89], which never breaks over two lines."""
    return unbroken(f"[{low}, {high}]")


def same(first: float | None, second: float | None) -> bool:
    """Whether two numbers are equal to the digits that are printed."""
    return first is not None and second is not None and round(first, _DIGITS) == round(second, _DIGITS)


def _two_digits(value: float) -> float:
    return round(round(value, _DIGITS), 2) + 0.0  # no -0.00
