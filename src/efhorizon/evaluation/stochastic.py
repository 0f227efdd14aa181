"""Tables with chance: what theory predicts, what SQIRL, PPO and DQN need, and the same MDP without chance beside it.

The metrics are those of deterministic MDPs (`metrics.py`). Predictions are timesteps as theorems give them, with
constants, D and alpha as 1 and without what does not depend on the MDP; see `StochasticRecord` for the figures:

    stochastic effective horizon     T^3 A^H, H with returns scaled to [0, 1]; and variants of H
    least k, planning window         T^2 A^k, T^2 A^W
    UCB, covering length             as in docs/bounds.md
    H of the deterministic table     T^2 A^H: does the horizon without chance say as much?
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from efhorizon.evaluation import runs
from efhorizon.evaluation.bound_table import DEFAULT_RESAMPLES, BoundTable, bound_table, shown_together
from efhorizon.evaluation.formulas import EFFECTIVE_HORIZON, horizon_bound, window_bound
from efhorizon.evaluation.records import ORIGINAL, SHAPED, MdpSummary, log10_timesteps
from efhorizon.evaluation.resampling import LEVEL
from efhorizon.evaluation.source import StudyData
from efhorizon.study.records import Row
from efhorizon.study.stochastic_record import StochasticRecord

HORIZON = "stochastic_effective_horizon"
TITLES = {
    HORIZON: "stochastic effective horizon (T^3 A^H)",
    "stochastic_effective_horizon_raw": "the same, rewards as they are",
    "stochastic_effective_horizon_reached": "the same, gaps where greedy policies go",
    "stochastic_min_k": "least k (T^2 A^k)",
    "stochastic_epw": "planning window (T^2 A^W)",
    "stochastic_ucb": "UCB, regret of UCBVI",
    "stochastic_covering_length": "covering length (Lemma D.4)",
    "deterministic_effective_horizon": "effective horizon without chance (T^2 A^H)",
}
ALGORITHMS = ("sqirl", "sqirl_network", "ppo", "dqn")
_TITLES = {"sqirl": "SQIRL", "sqirl_network": "SQIRL with a network", "ppo": "PPO", "dqn": "DQN"}
PREDICTED = ("ppo", "dqn", "sqirl", "sqirl_network")  # whose needs are to be predicted


@dataclass(frozen=True)
class StochasticLine:
    """One table with chance, beside the one without."""

    record: StochasticRecord
    needed: Mapping[str, float]  # timesteps by algorithm; infinite: not solved, absent: not run
    solved_runs: Mapping[str, tuple[int, int]]  # runs that solved it and all runs, of the best setting
    without: MdpSummary | None  # the deterministic table, if the study has it


@dataclass(frozen=True)
class AlgorithmCount:
    """How often an algorithm solves, with chance and without."""

    algorithm: str
    num_run: int
    num_solved: int
    num_both: int  # MDPs on which it was run with chance and without; 0 for SQIRL, which is for chance
    num_solved_both: int
    num_solved_only_with: int
    num_solved_only_without: int
    median_factor: float | None  # timesteps with chance / without, over those solved both ways


@dataclass(frozen=True)
class StochasticTables:
    """All results with chance."""

    lines: tuple[StochasticLine, ...]
    counts: tuple[AlgorithmCount, ...]
    bounds: tuple[BoundTable, ...]
    level: float
    num_resamples: int
    seed: int
    notes: tuple[str, ...]


def stochastic_tables(
    data: StudyData, *, num_resamples: int = DEFAULT_RESAMPLES, seed: int = 0
) -> StochasticTables | None:
    """Everything there is to say about a study's tables with chance; None if it has none."""
    found = data.stochastic
    if not found:
        return None
    fingerprints = {name: each.provenance.table_fingerprint or None for name, each in found.analyses.items()}
    selection = runs.selected_rows(found.runs, fingerprints)
    rows: dict[str, dict[str, list[Row]]] = defaultdict(dict)
    for (name, algorithm), own in selection.rows.items():
        rows[name][algorithm] = own
    summaries = {each.name: each for each in data.summaries}
    lines = tuple(
        _line(record, rows.get(name, {}), summaries.get(record.made_from or ""))
        for name, record in sorted(found.analyses.items())
        if record.optimal_return != record.worst_return
    )
    predicted = [_summary(line, rows.get(line.record.id, {})) for line in lines]
    tables = shown_together(
        [
            bound_table(
                predicted,
                algorithm,
                TITLES,
                reference=HORIZON,
                baselines=_baselines(algorithm),
                num_resamples=num_resamples,
                seed=seed,
            )
            for algorithm in PREDICTED
        ]
    )
    notes = (*selection.notes, *(note for table in tables for note in table.notes))
    return StochasticTables(
        lines, tuple(_count(lines, name) for name in ALGORITHMS), tables, LEVEL, num_resamples, seed, notes
    )


def line_of(tables: StochasticTables | None, name: str) -> tuple[StochasticLine, ...]:
    """The tables with chance that were made from an MDP."""
    return () if tables is None else tuple(line for line in tables.lines if line.record.made_from == name)


def predictions(record: StochasticRecord, without: MdpSummary | None) -> dict[str, float]:
    """log10 of timesteps by predictor; infinite where a bound does not hold or is not known."""
    horizon, actions = record.horizon, record.num_actions
    found = {
        name: _horizon_timesteps(record, value)
        for name, value in (
            (HORIZON, record.normalised_effective_horizon),
            ("stochastic_effective_horizon_raw", record.effective_horizon),
            ("stochastic_effective_horizon_reached", record.reached_effective_horizon),
        )
    }
    for name, steps in (("stochastic_min_k", record.min_k), ("stochastic_epw", record.epw)):
        found[name] = math.inf if steps is None else window_bound(horizon, actions, steps)
    found["stochastic_ucb"] = math.inf if record.ucb_timesteps is None else log10_timesteps(record.ucb_timesteps)
    episodes = record.covering_length
    found["stochastic_covering_length"] = math.inf if episodes is None else log10_timesteps(episodes * horizon)
    if without is not None and without.effective_horizon is not None:
        found["deterministic_effective_horizon"] = without.bounds.get(
            EFFECTIVE_HORIZON, horizon_bound(horizon, actions, without.effective_horizon)
        )
    return found


def as_json(tables: StochasticTables) -> dict[str, Any]:
    """For programs; `tables.plain` takes care of infinities."""
    return {
        "num_tables": len(tables.lines),
        "counts": list(tables.counts),
        "bounds": list(tables.bounds),
        "mdps": [
            {
                "id": line.record.id,
                "made_from": line.record.made_from,
                "sticky": line.record.sticky,
                "with_chance": {
                    "min_k": line.record.min_k,
                    "epw": line.record.epw,
                    "effective_horizon": line.record.effective_horizon,
                    "normalised_effective_horizon": line.record.normalised_effective_horizon,
                    "optimal_return": line.record.optimal_return,
                    "random_return": line.record.random_return,
                    "sample_complexities": dict(line.needed),
                    "runs_solved": {name: list(pair) for name, pair in line.solved_runs.items()},
                },
                "without": None
                if line.without is None
                else {
                    "min_k": line.without.k_min,
                    "epw": line.without.epw,
                    "effective_horizon": line.without.effective_horizon,
                    "optimal_return": line.without.reward_optimal,
                    "random_return": line.without.reward_exploration,
                    "sample_complexities": dict(line.without.sample_complexities),
                },
            }
            for line in tables.lines
        ],
        "level": tables.level,
        "num_resamples": tables.num_resamples,
        "seed": tables.seed,
        "notes": list(tables.notes),
    }


def _line(record: StochasticRecord, rows: Mapping[str, Sequence[Row]], without: MdpSummary | None) -> StochasticLine:
    return StochasticLine(
        record,
        {algorithm: runs.practice(own).sample_complexity for algorithm, own in rows.items()},
        {algorithm: _solved_runs(own) for algorithm, own in rows.items()},
        without,
    )


def _solved_runs(rows: Sequence[Row]) -> tuple[int, int]:
    """Of the setting with the most runs that solved it."""
    settings: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        settings[row.setting].append(row.sample_complexity is not None)
    best = max(settings.values(), key=lambda solved: (sum(solved) / len(solved), len(solved)))
    return sum(best), len(best)


def _summary(line: StochasticLine, rows: Mapping[str, Sequence[Row]]) -> MdpSummary:
    """The line as the metrics take it."""
    record = line.record
    found = {algorithm: runs.practice(own) for algorithm, own in rows.items()}
    without = {} if line.without is None else line.without.sample_complexities
    return replace(
        _empty_summary(record),
        bounds=predictions(record, line.without),
        sample_complexities={
            **{algorithm: each.sample_complexity for algorithm, each in found.items()},
            **{f"{algorithm} without": needed for algorithm, needed in without.items()},
        },
        budgets={algorithm: each.budget for algorithm, each in found.items()},
        returns={name: each.final_return for name, each in found.items() if each.final_return is not None},
    )


def _empty_summary(record: StochasticRecord) -> MdpSummary:
    return MdpSummary(
        name=record.id,
        origin=record.suite,
        type=SHAPED if record.unshaped else ORIGINAL,
        family=record.family,
        unshaped=record.unshaped,
        horizon=record.horizon,
        num_actions=record.num_actions,
        num_states=record.num_states,
        reward_min=record.worst_return,
        reward_exploration=record.random_return,
        reward_optimal=record.optimal_return,
        reward_optimal_probability=None,
        reward_factor=None,
        k_min=record.min_k,
        epw=record.epw,
        min_state_action_occupancy=None,
        min_sum_state_action_occupancy=None,
        effective_horizon=record.effective_horizon,
        effective_horizon_kind=None,
        effective_horizon_simple=None,
        bounds={},
        sample_complexities={},
        budgets={},
        returns={},
    )


def _baselines(algorithm: str) -> list[tuple[str, str, str]]:
    """What other algorithms need, and the same one without chance: name of the row, algorithm, title."""
    others = [(f"sticky_{name}", name, f"{_TITLES[name]}, empirical") for name in ALGORITHMS]
    rows = [row for row in others if row[1] != algorithm]
    twin = algorithm if algorithm in ("ppo", "dqn") else "gorp"
    return [*rows, (f"without_{twin}", f"{twin} without", f"{twin.upper()} without chance, empirical")]


def _horizon_timesteps(record: StochasticRecord, value: float | None) -> float:
    """T^3 A^H."""
    if value is None:
        return math.inf
    return 3 * math.log10(record.horizon) + value * math.log10(record.num_actions)


def _count(lines: Sequence[StochasticLine], algorithm: str) -> AlgorithmCount:
    """Without shaped MDPs, which count in no other number of MDPs either."""
    main = [line for line in lines if line.record.unshaped is None]
    found = [line.needed[algorithm] for line in main if algorithm in line.needed]
    pairs = [
        (line.needed[algorithm], line.without.sample_complexities[algorithm])
        for line in main
        if algorithm in line.needed and line.without is not None and algorithm in line.without.sample_complexities
    ]
    solved = [(math.isfinite(first), math.isfinite(second)) for first, second in pairs]
    factors = sorted(first / second for first, second in pairs if math.isfinite(first) and math.isfinite(second))
    return AlgorithmCount(
        algorithm=algorithm,
        num_run=len(found),
        num_solved=sum(map(math.isfinite, found)),
        num_both=len(pairs),
        num_solved_both=solved.count((True, True)),
        num_solved_only_with=solved.count((True, False)),
        num_solved_only_without=solved.count((False, True)),
        median_factor=_median(factors),
    )


def _median(ordered: Sequence[float]) -> float | None:
    middle = len(ordered) // 2
    if not ordered:
        return None
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
