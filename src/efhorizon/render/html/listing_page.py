"""The table of all MDPs: one line each, with what it is sorted and filtered by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from efhorizon.bounds.interval import Interval
from efhorizon.evaluation.formulas import EFFECTIVE_HORIZON
from efhorizon.render import numbers
from efhorizon.render.charts import marks
from efhorizon.render.html.entries import MdpEntry
from efhorizon.render.html.explanations import figure
from efhorizon.render.html.names import page_link
from efhorizon.render.learning_curves import ALGORITHM_TITLES, ALGORITHMS
from efhorizon.study.analysis_record import Figure


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and what it is sorted by: a number as text, empty where there is none."""

    shown: str
    value: str
    class_: str = "number"


@dataclass(frozen=True)
class ListRow:
    name: str
    link: str
    suite: str
    suite_title: str
    suite_colour: str
    words: str  # what the search looks in
    type: str
    solved_by: str  # "both", "one", "none" or "" of PPO and DQN
    min_k: str
    cells: tuple[Cell, ...]


COLUMNS = (  # what people look for first: a phone shows the first two or three
    ("H", "effective horizon"),
    ("T² Aᴴ", "the effective horizon's bound, timesteps"),
    *((ALGORITHM_TITLES[algorithm], "timesteps to an optimal policy") for algorithm in ALGORITHMS),
    ("T", "horizon"),
    ("A", "actions"),
    ("states", "states"),
    ("optimal", "return of an optimal policy"),
    ("random", "return of random play"),
    ("k", "least k for which the MDP is k-QVI-solvable"),
    ("EPW", "effective planning window"),
)


def listing_page(entries: Sequence[MdpEntry]) -> dict[str, Any]:
    """What the template needs."""
    rows = [_row(entry) for entry in entries]
    return {
        "columns": COLUMNS,
        "rows": rows,
        "suites": list(dict.fromkeys((row.suite, row.suite_title) for row in rows)),
        "types": sorted({row.type for row in rows}),
        "min_ks": sorted({row.min_k for row in rows if row.min_k}, key=lambda k: (len(k), k)),
        "has_runs": any(row.solved_by for row in rows),
    }


def _row(entry: MdpEntry) -> ListRow:
    summary, analysis = entry.summary, entry.analysis
    min_k = summary.k_min if summary is not None else None
    game = (summary.family if summary is not None else analysis.game if analysis is not None else "") or ""
    return ListRow(
        name=entry.name,
        link=page_link(entry.name),
        suite=entry.suite or marks.OTHER_SUITE,
        suite_title=marks.suite_title(entry.suite),
        suite_colour=marks.suite_colour(entry.suite),
        words=f"{entry.name} {entry.suite} {game}".lower(),
        type=summary.type if summary is not None else "unfinished",
        solved_by=_solved_by(entry),
        min_k="" if min_k is None else str(min_k),
        cells=(*_horizon(entry), *(_needed(entry, algorithm) for algorithm in ALGORITHMS), *_figures(entry)),
    )


def _horizon(entry: MdpEntry) -> tuple[Cell, Cell]:
    """The effective horizon and its bound."""
    summary, analysis = entry.summary, entry.analysis
    if summary is not None:
        sign = "≤ " if summary.effective_horizon_kind == "upper" else ""
        horizon = Cell(sign + numbers.decimal(summary.effective_horizon), _value(summary.effective_horizon))
        return horizon, _timesteps(summary.bounds.get(EFFECTIVE_HORIZON))
    assert analysis is not None  # an entry has at least one of them
    known = analysis.figures
    return _figure(known.effective_horizon.value), _figure(known.sample_complexity.get(EFFECTIVE_HORIZON))


def _figures(entry: MdpEntry) -> list[Cell]:
    summary, analysis = entry.summary, entry.analysis
    if summary is not None:
        return [
            _count(summary.horizon),
            _count(summary.num_actions),
            _count(summary.num_states),
            _figure(summary.reward_optimal),
            _figure(summary.reward_exploration),
            _count(summary.k_min),
            _count(summary.epw),
        ]
    assert analysis is not None  # an entry has at least one of them
    known = analysis.figures
    return [
        _count(known.horizon),
        _count(known.num_actions),
        _figure(known.num_states),
        _figure(known.optimal_return),
        _figure(known.exploration_return),
        _figure(known.min_k),
        _figure(known.epw),
    ]


def _needed(entry: MdpEntry, algorithm: str) -> Cell:
    complexity = entry.sample_complexity(algorithm)
    if complexity is not None and math.isinf(complexity):
        return Cell(numbers.steps_needed(complexity, entry.budget(algorithm)), "Infinity", "number unsolved")
    return Cell(numbers.steps(complexity), _value(complexity))


def _solved_by(entry: MdpEntry) -> str:
    """By how many of PPO and DQN."""
    found = [entry.sample_complexity(algorithm) for algorithm in ("ppo", "dqn")]
    run = [complexity for complexity in found if complexity is not None]
    if not run:
        return ""
    solved = sum(math.isfinite(complexity) for complexity in run)
    return "both" if solved == 2 else "one" if solved == 1 else "none"


def _count(number: int | None) -> Cell:
    return Cell(numbers.count(number), _value(number))


def _figure(value: Figure) -> Cell:
    return Cell(figure(value), _value(value.low if isinstance(value, Interval) else value))


def _timesteps(log10: float | None) -> Cell:
    return Cell(numbers.from_log10(log10), _value(log10))


def _value(number: float | None) -> str:
    if number is None or (isinstance(number, float) and math.isnan(number)):
        return ""
    if isinstance(number, float) and math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number)
