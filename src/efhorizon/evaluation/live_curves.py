"""Figure 4: learning curves of GORP, PPO and DQN in one environment, as far as they have come.

The line is the median over seeds, the range that of all seeds, both at the timesteps of any seed's points; a seed's
return is that of its last point until then. A curve ends with the seed that has come least far. Returns are points: of
greedy episodes (PPO, DQN), or of GORP's policy, the actions chosen so far and then random ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.study.live_runs import FULL_LENGTH, GAMES, LiveRow

ALGORITHMS = ("ppo", "dqn", "gorp")
PAPER_SENTENCE = (
    "GORP performs better than both PPO and DQN in two games and better than at least one deep RL algorithm in an "
    "additional three games."
)
PAPER_BUDGET, PAPER_SEEDS = 50_000_000, 5  # Appendix F.1, Figure 4
LEAST_BUDGET = PAPER_BUDGET // 100  # timesteps before which nothing is said about who is better

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LiveCurve:
    """The runs of one algorithm with one setting."""

    algorithm: str
    backend: str
    setting: str
    num_seeds: int
    budget: int  # timesteps that all seeds have
    steps: Floats  # [P]
    median: Floats  # [P]
    low: Floats  # [P], the least of any seed
    high: Floats  # [P]
    best_return: float | None  # of any episode of any seed

    def at(self, budget: float) -> tuple[float, float, float]:
        """Median, least and largest return after so many timesteps."""
        place = int(np.searchsorted(self.steps, budget, side="right")) - 1
        place = max(place, 0)
        return float(self.median[place]), float(self.low[place]), float(self.high[place])


@dataclass(frozen=True)
class LiveFigure:
    """All curves in one environment; of several settings of an algorithm, that with the highest median at its end."""

    id: str
    curves: tuple[LiveCurve, ...]

    @property
    def is_full_length(self) -> bool:
        return self.id.endswith(FULL_LENGTH)

    def curve(self, algorithm: str) -> LiveCurve | None:
        return next((curve for curve in self.curves if curve.algorithm == algorithm), None)

    @property
    def common_budget(self) -> int | None:
        """Timesteps that GORP and all others have; None where one of them has no return by then, or there is one."""
        if self.curve("gorp") is None or len(self.curves) == 1:
            return None
        budget = min(curve.budget for curve in self.curves)
        return budget if all(curve.steps[0] <= budget for curve in self.curves) else None

    def beaten_by_gorp(self) -> tuple[str, ...]:
        """The algorithms whose median is below GORP's after the common budget."""
        budget, gorp = self.common_budget, self.curve("gorp")
        if budget is None or gorp is None:
            return ()
        ours = gorp.at(budget)[0]
        return tuple(c.algorithm for c in self.curves if c.algorithm != "gorp" and c.at(budget)[0] < ours)


def live_figures(rows: Iterable[LiveRow]) -> list[LiveFigure]:
    """A figure for each environment: the paper's games first, in their order, then all others by name."""
    found: dict[str, dict[tuple[str, str, str], list[LiveRow]]] = {}
    for row in rows:
        if row.learning_curve:
            found.setdefault(row.id, {}).setdefault((row.algorithm, row.backend, row.setting), []).append(row)
    order = {f"{game}{FULL_LENGTH}": number for number, game in enumerate(GAMES)}
    names = sorted(found, key=lambda name: (order.get(name, len(order)), name))
    return [LiveFigure(name, tuple(_best([_curve(own) for own in found[name].values()]))) for name in names]


def as_json(figures: Sequence[LiveFigure]) -> list[dict[str, object]]:
    """What `evaluate --json` says of them."""
    return [
        {
            "id": figure.id,
            "common_budget": figure.common_budget,
            "beaten_by_gorp": list(figure.beaten_by_gorp()),
            "curves": [
                {
                    "algorithm": curve.algorithm,
                    "backend": curve.backend,
                    "setting": curve.setting,
                    "seeds": curve.num_seeds,
                    "steps": curve.budget,
                    "final_median": float(curve.median[-1]),
                    "final_low": float(curve.low[-1]),
                    "final_high": float(curve.high[-1]),
                    "best_return": curve.best_return,
                }
                for curve in figure.curves
            ],
        }
        for figure in figures
    ]


def _best(curves: list[LiveCurve]) -> list[LiveCurve]:
    """One curve for each algorithm: our own learners before Stable-Baselines3, then the highest end."""
    chosen = []
    for algorithm in ALGORITHMS:
        own = [curve for curve in curves if curve.algorithm == algorithm]
        if own:
            chosen.append(max(own, key=lambda curve: (curve.backend == "live", curve.median[-1])))
    return chosen


def _curve(rows: Sequence[LiveRow]) -> LiveCurve:
    budget = min(_reach(row) for row in rows)
    points = [np.array([point[:2] for point in row.learning_curve], np.float64) for row in rows]
    steps = np.unique(np.concatenate([own[:, 0] for own in points]))
    first = max(own[0, 0] for own in points)
    last = max(budget, first)
    steps = np.append(steps[(steps >= first) & (steps < last)], last)
    places = [np.searchsorted(own[:, 0], steps, side="right") - 1 for own in points]
    returns = np.stack([own[place, 1] for own, place in zip(points, places, strict=True)])
    best = [row.best_return for row in rows if row.best_return is not None]
    return LiveCurve(
        algorithm=rows[0].algorithm,
        backend=rows[0].backend,
        setting=rows[0].setting,
        num_seeds=len(rows),
        budget=int(budget),
        steps=steps,
        median=np.median(returns, axis=0),
        low=returns.min(axis=0),
        high=returns.max(axis=0),
        best_return=max(best, default=None),
    )


def _reach(row: LiveRow) -> int:
    """Timesteps up to which a run's return is known: what it was asked for, if GORP has come to its end before."""
    return max(row.steps, row.protocol.max_steps) if row.is_complete else row.steps
