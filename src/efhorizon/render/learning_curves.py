"""Learning curves from run rows: the median and the range over seeds, no finer than a picture can show."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.protocol import setting_sample_complexity
from efhorizon.evaluation.records import DEEP_RL, GORP
from efhorizon.study.records import Row

ALGORITHMS = (*DEEP_RL, GORP)
ALGORITHM_TITLES = {"ppo": "PPO", "dqn": "DQN", "gorp": "GORP", "sqirl": "SQIRL", "sqirl_network": "SQIRL (network)"}
MAX_DRAWN_POINTS = 240
GORP_RUNS = 101  # one row of GORP stands for this many

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """The learning curve of one algorithm with one setting."""

    algorithm: str
    setting: str
    num_runs: int
    steps: Floats  # [N]
    median: Floats  # [N]
    low: Floats  # [N] the least return of any seed; for GORP the 10th percentile
    high: Floats  # [N]


@dataclass(frozen=True)
class Setting:
    """All runs of one algorithm with one setting on one MDP."""

    algorithm: str
    setting: str
    rows: tuple[Row, ...]
    sample_complexity: float  # median over seeds; infinite where that is not reached
    curve: Curve | None

    @property
    def num_runs(self) -> int:
        """A row of GORP stands for many runs."""
        return self.curve.num_runs if self.algorithm == GORP and self.curve is not None else len(self.rows)


def settings_of(rows: Iterable[Row]) -> list[Setting]:
    """The rows of one MDP by algorithm and setting, the best setting of each algorithm first."""
    grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.algorithm, row.setting].append(row)
    found = [_setting(algorithm, setting, group) for (algorithm, setting), group in grouped.items()]
    return sorted(found, key=_order)


def best_settings(settings: Sequence[Setting]) -> list[Setting]:
    """The first setting of each algorithm."""
    first: dict[str, Setting] = {}
    for setting in settings:
        first.setdefault(setting.algorithm, setting)
    return list(first.values())


def thinned(curve: Curve, *, logarithmic: bool = True, max_points: int = MAX_DRAWN_POINTS) -> Curve:
    """A curve of at most `max_points`, one per stretch of the axis; its range covers all points of the stretch."""
    if len(curve.steps) <= max_points:
        return curve
    at = np.log(np.maximum(curve.steps, 1.0)) if logarithmic else curve.steps
    span = (at[-1] - at[0]) or 1.0
    stretch = np.floor((at - at[0]) / span * (max_points - 1)).astype(np.int64)
    firsts = np.flatnonzero(np.diff(stretch, prepend=-1))
    lasts = np.append(firsts[1:], len(stretch)) - 1
    return Curve(
        curve.algorithm,
        curve.setting,
        curve.num_runs,
        steps=curve.steps[lasts],
        median=curve.median[lasts],
        low=np.minimum.reduceat(curve.low, firsts),
        high=np.maximum.reduceat(curve.high, firsts),
    )


def _setting(algorithm: str, setting: str, rows: Sequence[Row]) -> Setting:
    ordered = tuple(sorted(rows, key=lambda row: row.seed))
    complexity = setting_sample_complexity(row.sample_complexity for row in ordered)
    curve = _percentile_curve(ordered[0]) if algorithm == GORP else _curve_over_seeds(algorithm, setting, ordered)
    return Setting(algorithm, setting, ordered, complexity, curve)


def _order(setting: Setting) -> tuple[int, str, float, float, str]:
    known = ALGORITHMS.index(setting.algorithm) if setting.algorithm in ALGORITHMS else len(ALGORITHMS)
    final = -float(setting.curve.median[-1]) if setting.curve is not None else math.inf
    return known, setting.algorithm, setting.sample_complexity, final, setting.setting


def _curve_over_seeds(algorithm: str, setting: str, rows: Sequence[Row]) -> Curve | None:
    """All runs on one grid of steps. A run stops once it is optimal, so its last return holds from then on."""
    runs = [points for row in rows if len(points := _run_points(row))]
    if not runs:
        return None
    grid = np.unique(np.concatenate([points[:, 0] for points in runs]))
    grid = grid[grid >= max(points[0, 0] for points in runs)]
    returns = np.stack([points[np.searchsorted(points[:, 0], grid, side="right") - 1, 1] for points in runs])
    median, low, high = np.median(returns, axis=0), returns.min(axis=0), returns.max(axis=0)
    return Curve(algorithm, setting, len(runs), grid, median, low, high)


def _run_points(row: Row) -> Floats:
    """Step and return of one run. PPO may be optimal by its training episodes, between two evaluations."""
    points = _points(row, 2)
    if row.sample_complexity is None:
        return points
    optimal = [[float(row.sample_complexity), row.optimal_return]]
    return np.concatenate([points[points[:, 0] < row.sample_complexity], optimal])


def _percentile_curve(row: Row) -> Curve | None:
    """GORP: the row holds median, 10th and 90th percentile of its runs."""
    points = _points(row, 4)
    if not len(points):
        return None
    return Curve(GORP, row.setting, GORP_RUNS, points[:, 0], points[:, 1], points[:, 2], points[:, 3])


def _points(row: Row, columns: int) -> Floats:
    """The first columns of a learning curve [N, columns], in the order of steps."""
    listed = [point[:columns] for point in row.learning_curve]
    points = np.array(listed, np.float64).reshape(len(listed), columns)
    ordered: Floats = points[np.argsort(points[:, 0], kind="stable")]
    return ordered
