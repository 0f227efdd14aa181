"""Numbers as people read them on a page: plain text, no markup."""

from __future__ import annotations

import math

MISSING, INFINITE, MINUS, TIMES = "\N{EN DASH}", "∞", "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MAX_PLAIN_LOG10 = 6  # from a million on, powers of ten are easier to compare than digits


def count(number: float | None) -> str:
    """A whole number with separators."""
    if number is None:
        return MISSING
    return f"{int(number):,}" if math.isfinite(number) else INFINITE


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
