"""Numbers for people."""

from __future__ import annotations

import math

NOTHING = "-"


def number_text(number: float | None, form: str = "{:.2f}") -> str:
    """Whole numbers as they are, others with two digits or in the given form."""
    if number is None:
        return NOTHING
    if math.isinf(number):
        return "infinite"
    return str(number) if isinstance(number, int) else form.format(number)


def timesteps_text(timesteps: float | None) -> str:
    """A sample complexity; infinite means that the algorithm did not get there."""
    if timesteps is None:
        return NOTHING
    return "not solved" if math.isinf(timesteps) else f"{timesteps:,.0f}"


def log10_text(logarithm: float | None) -> str:
    """The number with this logarithm: 31, 2.3, 7.2e10, however large."""
    if logarithm is None:
        return NOTHING
    if math.isinf(logarithm):
        return "infinite"
    if logarithm < 4:
        return f"{10**logarithm:.2g}" if logarithm < 2 else f"{10**logarithm:.0f}"
    exponent = math.floor(logarithm)
    mantissa = f"{10 ** (logarithm - exponent):.1f}"
    return f"{mantissa}e{exponent}" if mantissa != "10.0" else f"1.0e{exponent + 1}"
