"""Results as pandas DataFrames; pandas is imported when one is asked for, and need not be installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.interval import Interval
from efhorizon.bounds.unfinished import AnytimeAnalysis
from efhorizon.evaluation import summary_csv
from efhorizon.evaluation.records import MdpSummary
from efhorizon.mdp import TabularMDP
from efhorizon.study.records import Row
from efhorizon.suites.action_names import action_names
from efhorizon.suites.simulator import MissingExtraError


def transitions_frame(mdp: TabularMDP) -> Any:
    """One row per state and action."""
    num_states, num_actions = mdp.transitions.shape
    names = np.array(action_names(mdp.metadata, num_actions))
    actions = np.tile(np.arange(num_actions), num_states)
    following = mdp.transitions.ravel()
    return _pandas().DataFrame(
        {
            "state": np.repeat(np.arange(num_states), num_actions),
            "action": actions,
            "name": names[actions],
            "reward": mdp.rewards.ravel(),
            "next_state": following,
            "ends": following < 0,
        }
    )


def analysis_frame(analysis: Analysis | AnytimeAnalysis) -> Any:
    """One row per bound; of an unfinished table, the least and the most that it can be."""
    if isinstance(analysis, Analysis):
        rows: list[dict[str, Any]] = [
            {"bound": name, "title": analysis.titles[name], "sample_complexity": bound.sample_complexity,
             "reason": bound.reason}
            for name, bound in analysis.bounds.items()
        ]  # fmt: skip
    else:
        found = {name: _ends(value) for name, value in analysis.sample_complexity.items()}
        rows = [{"bound": name, "low": low, "high": high} for name, (low, high) in found.items()]
    frame = _pandas().DataFrame(rows, dtype=object)  # bounds may be larger than any float or 64-bit integer
    return frame.where(frame.notna(), None).set_index("bound")


def runs_frame(rows: Sequence[Row]) -> Any:
    """One row per run of an algorithm."""
    columns = ("id", "algorithm", "backend", "setting", "seed", "sample_complexity", "steps", "best_return",
               "final_return", "optimal_return", "wall_seconds")  # fmt: skip
    return _pandas().DataFrame([{column: getattr(row, column) for column in columns} for row in rows], columns=columns)


def study_frame(summaries: Sequence[MdpSummary]) -> Any:
    """One row per environment, with the columns of summary.csv."""
    rows = [summary_csv.fields_of(summary) for summary in summaries]
    return _pandas().DataFrame(rows, columns=summary_csv.columns(summaries))


def _ends(value: int | Interval | None) -> tuple[float | None, float | None]:
    return (value.low, value.high) if isinstance(value, Interval) else (value, value)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", "pandas") from None
    return pandas
