"""The effective horizon with each rule for ties, in words."""

from __future__ import annotations

from efhorizon.gorp.ties import Ties
from efhorizon.render import numbers

RULES: dict[Ties, str] = {
    "uniform": "drawn at random",
    "lowest": "to the lowest index",
    "adversarial": "against GORP",
}  # how ties are broken, or where they go


def horizon_and_m(value: float | None, k: int | None, m: int | None, kind: str | None) -> str:
    """H with the k and m that it comes from."""
    if value is None:
        return "unknown"
    sign = "=" if kind == "exact" else "≤"
    return f"H {sign} {numbers.decimal(value)} (k = {k}, m = {numbers.steps(m)})"
