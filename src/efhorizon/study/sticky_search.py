"""How many episodes SQIRL needs on a table: growing m until most runs succeed.

    for m = m_1 < m_2 < ...     until at least half of the runs succeed, or a run takes more timesteps than the budget

A run is decided by its seed and m alone. With a large m a run takes minutes, so no more runs are made with an m than
are needed to know which side of one half it is on; only the last m gets all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from efhorizon.agents.deep.observations import ObservedTable
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sqirl import sqirl
from efhorizon.stochastic.sqirl_network import sqirl_network
from efhorizon.stochastic.training import is_solved


@dataclass(frozen=True)
class SqirlRun:
    """One run: its m, the timesteps that it took, and the exact return of its policy."""

    seed: int
    m: int
    timesteps: int
    found_return: float
    is_success: bool


Player = Callable[[int, int], SqirlRun]  # m, seed
Say = Callable[[str], None]


def tabular(plan: Plan, k: int) -> Player:
    """SQIRL with exact means."""

    def played(m: int, seed: int) -> SqirlRun:
        found = sqirl(plan, k=k, m=m, rng=np.random.default_rng([seed, k, m]))
        return _run(plan, seed, m, int(found.timesteps[0]), float(found.returns[0]))

    return played


def with_network(plan: Plan, table: ObservedTable, k: int, on_progress: Say = lambda _: None) -> Player:
    """SQIRL with a network."""

    def played(m: int, seed: int) -> SqirlRun:
        def said(time: int) -> None:
            on_progress(f"m = {m:,}, seed {seed}: {time} of {plan.mdp.horizon} timesteps planned")

        found = sqirl_network(plan, table, k=k, m=m, seed=seed, on_progress=said)
        return _run(plan, seed, m, found.timesteps, found.found_return)

    return played


def fine_ladder() -> Iterator[int]:
    """1, 2, 3, 4, 6, 8, 12, 16, ...: no step is longer than a doubling."""
    yield 1
    for power in count(1):
        yield 2**power
        yield 3 * 2 ** (power - 1)


def coarse_ladder() -> Iterator[int]:
    """4, 16, 64, ...: fitting a network takes time, so its m is known to a factor of four."""
    return (4**power for power in count(1))


def least_m(
    player: Player,
    ladder: Iterator[int],
    seeds: Sequence[int],
    *,
    max_steps: int,
    on_progress: Say = lambda _: None,
) -> list[SqirlRun]:
    """A run for each seed, with the first m of the ladder with which at least half of them succeed.

    If there is none within the budget, the runs with the largest m whose timesteps fit into it, and the first m anyway.
    """
    runs: list[SqirlRun] = []
    for m in ladder:
        if runs and runs[0].timesteps * m / runs[0].m > max_steps:  # timesteps grow with m, but for rounding
            break
        runs = _decided(player, m, seeds)
        on_progress(f"m = {m:,}: {sum(run.is_success for run in runs)} of {len(runs)} runs succeed")
        if _is_solved_in_half(runs, len(seeds)):
            break
    known = {run.seed: run for run in runs}
    return [known.get(seed) or player(runs[0].m, seed) for seed in seeds]


def _decided(player: Player, m: int, seeds: Sequence[int]) -> list[SqirlRun]:
    """Runs with one m, until it is known whether at least half of all succeed."""
    runs: list[SqirlRun] = []
    for seed in seeds:
        runs.append(player(m, seed))
        failures = sum(not run.is_success for run in runs)
        if _is_solved_in_half(runs, len(seeds)) or 2 * failures > len(seeds):
            break
    return runs


def _is_solved_in_half(runs: Sequence[SqirlRun], num_seeds: int) -> bool:
    return 2 * sum(run.is_success for run in runs) >= num_seeds


def _run(plan: Plan, seed: int, m: int, timesteps: int, found: float) -> SqirlRun:
    return SqirlRun(seed, m, timesteps, found, is_solved(found, plan.optimal.values.at_start))
