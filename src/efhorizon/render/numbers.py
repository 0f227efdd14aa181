"""Numbers as people read them: in the terminal, in Markdown and on a page. Plain text, no markup.

The functions that begin with `plain_` write 7.2e10 where the others write 7.2×10¹⁰: they are for Markdown files that
are committed, where a number may be copied from.
"""

from __future__ import annotations

import math

MISSING, INFINITE, MINUS = "\N{EN DASH}", "∞", "\N{MINUS SIGN}"
TIMES, DIVIDED = "\N{MULTIPLICATION SIGN}", "\N{DIVISION SIGN}"
NOT_SOLVED = "not solved"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MAX_PLAIN_LOG10 = 6  # from a million on, powers of ten are easier to compare than digits
_TIME_UNITS = (("s", 1.0), ("min", 60.0), ("h", 3_600.0), ("days", 86_400.0))
_SIZE_UNITS = (("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12))


def count(number: float | None) -> str:
    """A whole number with separators."""
    if number is None:
        return MISSING
    return INFINITE if isinstance(number, float) and not math.isfinite(number) else f"{int(number):,}"


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number of things: 1 table, 2 tables, 3 analyses."""
    return f"1 {one}" if number == 1 else f"{number:,} {several or one + 's'}"


def power(base: int, exponent: int) -> str:
    """A whole power that is not worked out."""
    return str(base) + str(exponent).translate(_SUPERSCRIPTS)


def power_of_ten(exponent: float) -> str:
    """10 to a whole power, as on an axis."""
    return power(10, round(exponent))


def from_log10(log10: float | None) -> str:
    """A number of timesteps given as its logarithm, since bounds overflow floats."""
    if log10 is None or math.isnan(log10):
        return MISSING
    if math.isinf(log10):
        return INFINITE if log10 > 0 else "0"
    if log10 < _MAX_PLAIN_LOG10 - 1e-12:
        return f"{round(10**log10):,}"
    return _scientific(log10)


def steps(number: float | None) -> str:
    """A number of timesteps; integers may be too large for a float."""
    if number is None:
        return MISSING
    if isinstance(number, float) and not math.isfinite(number):
        return INFINITE
    return from_log10(math.log10(number)) if number > 0 else "0"


def steps_needed(number: float | None, budget: float | None = None) -> str:
    """A sample complexity; infinite means that the algorithm did not get there within its budget."""
    if number is None or math.isfinite(number):
        return steps(number)
    return NOT_SOLVED if budget is None else f"{NOT_SOLVED} in {short_steps(budget)}"


def short_steps(number: float) -> str:
    """A number of timesteps in the shortest form, such as 10k or 5M."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def decimal(number: float | None, digits: int = 2) -> str:
    """A fixed number of decimal places, so that a column of them lines up."""
    if number is None or math.isnan(number):
        return MISSING
    return f"{number:.{digits}f}".replace("-", MINUS) if math.isfinite(number) else INFINITE


def significant(number: float | None, digits: int = 3) -> str:
    """So many significant digits; very small and very large numbers as powers of ten."""
    if number is None or math.isnan(number):
        return MISSING
    if math.isinf(number):
        return INFINITE if number > 0 else MINUS + INFINITE
    if number == 0:
        return "0"
    text = f"{number:,.0f}" if 10**digits <= abs(number) < 10**_MAX_PLAIN_LOG10 else f"{number:.{digits}g}"
    if "e" in text:
        leading, exponent = text.split("e")
        text = f"{leading}{TIMES}{power_of_ten(int(exponent))}"
    return text.replace("-", MINUS)


def percent(share: float | None) -> str:
    """A share of the whole; none is rounded to 0% or 100% that is not."""
    if share is None or math.isnan(share):
        return MISSING
    if 0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1:
        return ">99%"
    return f"{100 * share:.0f}%"


def ratio(log10: float | None) -> str:
    """A factor given as its logarithm, as in the paper's tables: 2.3, 31, 7.2×10¹⁰."""
    if log10 is None or math.isnan(log10):
        return MISSING
    if math.isinf(log10):
        return INFINITE
    if log10 < 3:
        return f"{10**log10:.2g}" if log10 < 2 else f"{10**log10:.0f}"
    return _scientific(log10)


def _scientific(log10: float) -> str:
    exponent = math.floor(log10 + 1e-12)
    leading = f"{10 ** (log10 - exponent):.1f}"
    if leading == "10.0":
        leading, exponent = "1.0", exponent + 1
    return f"{leading}{TIMES}{power_of_ten(exponent)}"


def seconds(duration: float | None) -> str:
    """A duration in its natural unit."""
    if duration is None:
        return MISSING
    for size, unit in ((3600, "h"), (60, "min")):
        if duration >= size:
            return f"{duration / size:.1f} {unit}"
    return f"{duration:.2g} s" if duration < 10 else f"{duration:.0f} s"


def seconds_span(low: float, high: float | None) -> str:
    """Between two durations: "20 s to 4 min"; None for the longer one: "at least 3 h"."""
    shown, unit = _scaled(low, _TIME_UNITS, least=2)
    if high is None:
        return f"at least {shown} {unit}"
    shown_high, unit_high = _scaled(high, _TIME_UNITS, least=2)
    return _joined(shown, shown_high, unit) if unit == unit_high else f"{shown} {unit} to {shown_high} {unit_high}"


def size(num_bytes: float) -> str:
    """An amount of memory or disk: 1.5 GB."""
    return " ".join(_scaled(num_bytes, _SIZE_UNITS))


def size_span(low: float, high: float | None) -> str:
    """Between two amounts, in one unit: "0.7 to 1.5 GB"; None for the larger one: "at least 2 GB"."""
    if high is None:
        return f"at least {size(low)}"
    shown_high, unit = _scaled(high, _SIZE_UNITS)
    return _joined(_short(low / dict(_SIZE_UNITS)[unit]), shown_high, unit)


def plain_number(value: float, form: str = "{:.2f}") -> str:
    """Whole numbers as they are, others with two decimal places or in the given form."""
    if math.isinf(value):
        return "infinite"
    return str(value) if isinstance(value, int) else form.format(value)


def plain_from_log10(log10: float) -> str:
    """The number with this logarithm: 31, 2.3, 7.2e10, however large."""
    if math.isinf(log10):
        return "infinite"
    if log10 < 4:
        return f"{10**log10:.2g}" if log10 < 2 else f"{10**log10:.0f}"
    exponent = math.floor(log10)
    leading = f"{10 ** (log10 - exponent):.1f}"
    return f"{leading}e{exponent}" if leading != "10.0" else f"1.0e{exponent + 1}"


def _joined(low: str, high: str, unit: str) -> str:
    return f"{high} {unit}" if low == high else f"{low} to {high} {unit}"


def _scaled(number: float, units: tuple[tuple[str, float], ...], least: int = 1) -> tuple[str, str]:
    """A number in the largest unit of which it has at least so many."""
    unit, length = next(((unit, length) for unit, length in reversed(units) if number >= least * length), units[0])
    return _short(number / length), unit


def _short(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0") if value < 10 else f"{value:,.0f}"
