"""One change, tried: the figures before and after, what becomes of optimal behaviour, and whether it can be had."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from efhorizon.what_if.change import Kind, Needs
from efhorizon.what_if.figures import Figures
from efhorizon.what_if.kept import Kept

Verdict = Literal["helps", "only on paper", "makes no difference", "hurts", "cannot be optimal", "unknown"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)  # best first
_KNOWS_THE_WAY: tuple[Needs, ...] = ("the graph", "the solution")
_NOT_BORNE_OUT: Mapping[Kind, str] = {"repeat": "where it was trained, PPO mostly got slower"}  # study/suggestions.md


@dataclass(frozen=True)
class Trial:
    """A change and what came of it."""

    kind: Kind
    title: str
    needs: Needs
    parameters: Mapping[str, Any]
    before: Figures
    after: Figures | None  # None where the change could not be made; `reason` says why
    kept: Kept | None
    note: str | None = None
    reason: str | None = None

    @property
    def factor(self) -> float | None:
        """Timesteps after, divided by timesteps before; below 1 it helps.

        None where one of them is unknown, or comes from a theorem and the other from GORP's success: these are powers
        of ten apart on one and the same table.
        """
        if self.after is None or self.before.is_by_theorem != self.after.is_by_theorem:
            return None
        before, after = self.before.timesteps, self.after.timesteps
        if before is None or after is None:
            return None
        return after / before if max(before, after) < 2**1000 else math.exp(math.log(after) - math.log(before))

    @property
    def is_certain(self) -> bool:
        """Whether it is proved that the change helps or hurts, and not only that an upper bound moved."""
        if self.after is None or self.before.timesteps is None or self.after.timesteps is None:
            return False
        return (
            self.after.timesteps < self.before.least_timesteps
            or self.after.least_timesteps > self.before.timesteps
            or (self.before.kind == self.after.kind == "exact")
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why it may help on paper only."""
        found = [f"needs {self.needs}"] if self.needs in _KNOWS_THE_WAY else []
        if self.after is not None and self.after.is_by_theorem:
            found.append("only a loose bound changes")
        if self.kept is not None and not self.kept.some:
            if self.kept.largest_return < self.before.optimal_return:
                found.append(f"its best behaviour earns {self.kept.largest_return:g} of {self.before.optimal_return:g}")
            else:
                found.append("its best behaviour is not optimal")
        elif self.kept is not None and not self.kept.every:
            found.append(f"some of its best behaviour earns only {self.kept.least_return:g}")
        if self.kind in _NOT_BORNE_OUT:
            found.append(_NOT_BORNE_OUT[self.kind])
        if self.slower:
            found.append(f"{' and '.join(name.upper() for name in self.slower)} forecast to need longer")
        return tuple(found)

    @property
    def verdict(self) -> Verdict:
        factor = self.factor
        if self.kept is not None and not self.kept.some:
            return "cannot be optimal"
        if factor is None:
            return "unknown"
        if factor == 1:
            return "makes no difference"
        if factor > 1:
            return "hurts"
        return "only on paper" if self.caveats else "helps"

    @property
    def slower(self) -> tuple[str, ...]:
        """Algorithms that are forecast to need more timesteps than before."""
        if self.after is None:
            return ()
        before, after = self.before.forecasts, self.after.forecasts
        return tuple(
            name
            for name, found in after.items()
            if name in before and found.timesteps.median > before[name].timesteps.median
        )

    @property
    def place(self) -> tuple[int, float, str]:
        """Best first."""
        return VERDICTS.index(self.verdict), self.factor or math.inf, self.title

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "title": self.title,
            "verdict": self.verdict,
            "factor": self.factor,
            "certain": self.is_certain,
            "slower": list(self.slower),
            "needs": self.needs,
            "caveats": list(self.caveats),
            "parameters": dict(self.parameters),
            "after": None if self.after is None else self.after.as_json(),
            "optimal_stays_optimal": None if self.kept is None else asdict(self.kept),
            "note": self.note,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class WhatIf:
    """All changes that were tried on one table, best first."""

    id: str | None
    before: Figures
    trials: tuple[Trial, ...]
    num_planned: int
    left_out: tuple[str, ...] = field(default=())  # changes that were not tried, if it was interrupted

    @property
    def best(self) -> Trial | None:
        """What to try first: the best that can be had without knowing the way."""
        return next((trial for trial in self.trials if trial.verdict == "helps"), None)

    def __repr__(self) -> str:
        said = "nothing helps" if self.best is None else f"try first: {self.best.title}"
        return f"WhatIf({self.id or 'unnamed'}: {len(self.trials)} changes, {said})"

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "before": self.before.as_json(),
            "best": None if self.best is None else self.best.title,
            "changes": [trial.as_json() for trial in self.trials],
            "left_out": list(self.left_out),
        }
