"""A figure of which only bounds are known, as the analysis of an unfinished table gives it."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """From `low` to `high`, or without an upper end where `high` is None. JSON has it as [low, high]."""

    low: int | float  # integers may be larger than any float
    high: int | float | None

    def as_json(self) -> list[float | None]:
        return [self.low, self.high]
