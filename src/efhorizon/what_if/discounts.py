"""A discount: returns count less the later they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from efhorizon.what_if.base import Base
from efhorizon.what_if.change import Change, Changed

GAMMAS = (0.99, 0.95, 0.9)


def changes(base: Base, *, gammas: Sequence[float] = GAMMAS) -> Iterator[Change]:
    for gamma in gammas:
        yield _change(base, gamma)


def _change(base: Base, gamma: float) -> Change:
    return Change(
        "discount", f"discount {gamma:g}", "nothing", lambda: Changed(base.mdp, gamma=gamma), {"gamma": gamma}
    )
