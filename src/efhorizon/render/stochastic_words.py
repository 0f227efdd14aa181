"""What is said of tables with chance, the same in the terminal, in Markdown and in the report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from efhorizon.evaluation.stochastic import ALGORITHMS, AlgorithmCount, StochasticLine
from efhorizon.render.learning_curves import ALGORITHM_TITLES
from efhorizon.render.numbers import MISSING, counted, decimal, significant, steps_needed

ABOUT = (
    "Sticky actions: from the second step on, the previous action is repeated with the chance given. A run is solved "
    "when a policy of it is within 1% of the optimal return, computed exactly over all chance: the greedy policy, or "
    "(PPO) the policy as it is played."
)
HEADINGS = (
    *("chance", "states", "least k, without / with", "EPW, without / with", "H without", "H with"),
    *("random return, without / with", "optimal return, without / with"),
    *(f"{ALGORITHM_TITLES[name]}, with" for name in ALGORITHMS if name.startswith("sqirl")),
    *(f"{ALGORITHM_TITLES[name]}, without / with" for name in ("ppo", "dqn")),
)
COUNT_HEADINGS = ("run", "solved", "run both ways", "solved both ways", "only with chance", "only without", "factor")
NOTE = (
    "H without chance is the effective horizon, with chance the stochastic one (returns scaled to [0, 1]): they are "
    "defined differently, so compare orders and not values. Timesteps are medians over seeds, of the best setting."
)


def verdict(counts: Sequence[AlgorithmCount], num_tables: int) -> str:
    """How many each algorithm solves."""
    run = [each for each in counts if each.num_run]
    if not run:
        return f"{counted(num_tables, 'table')} with chance analyzed; nothing was run on them yet."
    solved = ", ".join(f"{ALGORITHM_TITLES[each.algorithm]} {each.num_solved} of {each.num_run}" for each in run)
    return f"{counted(num_tables, 'table')} with chance analyzed. Solved (unshaped MDPs only): {solved}."


def count_cells(count: AlgorithmCount) -> list[str]:
    """With and without chance; the factor is the median of timesteps with chance / without."""
    both = (count.num_both, count.num_solved_both, count.num_solved_only_with, count.num_solved_only_without)
    shown = [str(each) for each in both] if count.num_both else [MISSING] * len(both)
    return [str(count.num_run), str(count.num_solved), *shown, decimal(count.median_factor)]


def cells(line: StochasticLine) -> list[str]:
    """One MDP: a cell for each heading."""
    record, without = line.record, line.without
    k, window, horizon, random, optimal = (
        (None, None, None, None, None)
        if without is None
        else (
            without.k_min,
            without.epw,
            without.effective_horizon,
            without.reward_exploration,
            without.reward_optimal,
        )
    )
    return [
        MISSING if record.sticky is None else f"{record.sticky:g}",
        f"{record.num_states:,}",
        _both(_whole(k), _whole(record.min_k)),
        _both(_whole(window), _whole(record.epw)),
        decimal(horizon),
        decimal(record.normalised_effective_horizon),
        _both(significant(random), significant(record.random_return)),
        _both(significant(optimal), significant(record.optimal_return)),
        *(needed(line, name) for name in ALGORITHMS if name.startswith("sqirl")),
        *(_both(needed_without(line, name), needed(line, name)) for name in ("ppo", "dqn")),
    ]


def needed(line: StochasticLine, algorithm: str) -> str:
    """Timesteps with chance; where it is not solved, how many runs solved it."""
    found = line.needed.get(algorithm)
    if found is None or math.isfinite(found):
        return steps_needed(found)
    solved, of_runs = line.solved_runs[algorithm]
    return f"not ({solved} of {of_runs} runs)"


def needed_without(line: StochasticLine, algorithm: str) -> str:
    found = None if line.without is None else line.without.sample_complexities.get(algorithm)
    return "not" if found is not None and math.isinf(found) else steps_needed(found)


def _whole(number: int | None) -> str:
    return MISSING if number is None else str(number)


def _both(without: str, with_chance: str) -> str:
    return f"{without} / {with_chance}"
