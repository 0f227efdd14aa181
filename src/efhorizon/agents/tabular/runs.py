"""What all algorithms on tables take and give: a task, random streams, and the results of many runs at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.agents.streams import streams
from efhorizon.agents.tabular import kernels
from efhorizon.errors import EfhorizonError, InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import optimal_plan
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.policies import exploration_policy as checked_policy

_MAX_SUM = 2**62  # of absolute rewards in units, in int64
_ROUNDED_UNITS = 2**32  # the largest reward in units where rewards have no common unit
_MAX_SEQUENCES = 2**31
_MIN_PARALLEL_STATES = 8192  # planning wakes all threads for each time, so one thread is faster on small tables


class InvalidSettingError(EfhorizonError, ValueError):
    """A parameter for which an algorithm is not defined."""


@dataclass(frozen=True)
class Runs:
    """What N independent runs of an algorithm returned. Returns are exact integers in reward units."""

    actions: NDArray[np.int32]  # [N, T], what the returned policy does from the start; -1 after the episode's end
    return_units: NDArray[np.int64]  # [N]
    optimal_units: int
    unit: Fraction
    timesteps: int  # of each run, as the algorithm's theorem counts them: T for each episode
    steps_played: NDArray[np.int64]  # [N], steps really taken: no prefix is replayed, and episodes may end early

    def __repr__(self) -> str:
        return f"Runs({self.num_optimal} of {self.num_runs} optimal, {self.timesteps:,} timesteps each)"

    @property
    def num_runs(self) -> int:
        return len(self.return_units)

    @property
    def optimal(self) -> NDArray[np.bool_]:
        """Whether each run's policy has the optimal return [N]."""
        optimal: NDArray[np.bool_] = self.return_units == self.optimal_units
        return optimal

    @property
    def num_optimal(self) -> int:
        return int(self.optimal.sum())

    @property
    def success_rate(self) -> float:
        return self.num_optimal / self.num_runs

    @property
    def returns(self) -> NDArray[np.float64]:
        """Returns as rewards [N]."""
        return np.array([float(int(total) * self.unit) for total in self.return_units])

    @property
    def optimal_return(self) -> float:
        return float(self.optimal_units * self.unit)


@dataclass(frozen=True)
class PreparedTable:
    """A table and an exploration policy as the kernels read them."""

    mdp: TabularMDP
    policy: ExplorationPolicy
    unit: Fraction
    optimal_units: int
    arrays: kernels.TaskArrays

    def check_sum(self, num_episodes: int) -> None:
        """Refuse sums of returns that do not fit in 64 bits."""
        if int(np.abs(self.arrays.units).max()) * self.mdp.horizon * num_episodes > _MAX_SUM:
            raise InvalidSettingError(f"the sum of {num_episodes:,} returns may not fit in 64 bits")

    def played(
        self, kernel: Callable[..., None], *settings: Any, runs: int, rng: np.random.Generator, timesteps: int
    ) -> Runs:
        """Run an algorithm's kernel: (settings, streams, arrays, actions [N, T] and steps [N] to be filled in)."""
        actions = np.full((runs, self.mdp.horizon), -1, np.int32)
        steps = np.zeros(runs, np.int64)
        kernel(*settings, streams(rng, runs), self.arrays, actions, steps)
        return Runs(**self.runs(actions, timesteps, steps))

    def runs(self, actions: NDArray[np.int32], timesteps: int, steps_played: NDArray[np.int64]) -> dict[str, Any]:
        """The fields of a `Runs`: the actions [N, T] played on the table. Every algorithm is judged here alone."""
        returns = np.empty(len(actions), np.int64)
        kernels.play_all(actions, self.arrays.transitions, self.arrays.codes, self.arrays.units, returns)
        return {
            "actions": actions,
            "return_units": returns,
            "optimal_units": self.optimal_units,
            "unit": self.unit,
            "timesteps": timesteps,
            "steps_played": steps_played,
        }


def task(mdp: TabularMDP, policy: ArrayLike | ExplorationPolicy | None = None) -> PreparedTable:
    """Check a table and a policy, and prepare both.

    Where rewards have no common unit they are rounded to 2^-32 of the largest: ties and optimality are then exact for
    the rounded table.
    """
    if not mdp.is_complete:
        raise InvalidTableError(
            "the table is unfinished: some states were never explored, so no algorithm can run on it"
        )
    explorer = checked_policy(mdp, policy)
    probabilities = np.empty((0, 0, 0)) if explorer.probabilities is None else explorer.probabilities.view()
    probabilities.flags.writeable = False
    units, unit = _units(mdp)
    distances = np.full(mdp.num_states, kernels.NO_REWARD, np.int32)
    while kernels.shorten_distances(mdp.transitions, mdp.reward_codes, units, distances):
        pass
    arrays = kernels.TaskArrays(mdp.transitions, mdp.reward_codes, units, distances, probabilities)
    actions = _optimal_actions(mdp)
    optimal = np.empty(1, np.int64)
    kernels.play_all(actions, mdp.transitions, mdp.reward_codes, units, optimal)
    return PreparedTable(mdp, explorer, unit, int(optimal[0]), arrays)


def check_positive(**settings: int) -> None:
    """Refuse settings that are not positive integers."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InvalidSettingError(f"{name} must be a positive integer, got {value!r}")


def num_sequences(mdp: TabularMDP, **length: int) -> int:
    """A^k, after checking that the length of action sequences lies in 1 .. T and that there are not too many."""
    check_positive(**length)
    ((name, value),) = length.items()
    if value > mdp.horizon:
        raise InvalidSettingError(f"{name} must be at most the horizon {mdp.horizon}, got {value}")
    if mdp.num_actions**value > _MAX_SEQUENCES:
        raise InvalidSettingError(f"{name} = {value}: {mdp.num_actions}^{value} action sequences are too many to try")
    return int(mdp.num_actions**value)


def _optimal_actions(mdp: TabularMDP) -> NDArray[np.int32]:
    """One optimal action sequence [1, T]."""
    threads = numba.get_num_threads()
    if mdp.num_states < _MIN_PARALLEL_STATES:
        numba.set_num_threads(1)
    try:
        plan = optimal_plan(mdp)
    finally:
        numba.set_num_threads(threads)
    actions = np.full((1, mdp.horizon), -1, np.int32)
    state = 0
    for time in range(mdp.horizon):
        if state < 0:
            break
        actions[0, time] = plan.action(time, state)
        state = int(mdp.transitions[state, actions[0, time]])
    return actions


def _units(mdp: TabularMDP) -> tuple[NDArray[np.int64], Fraction]:
    exact = mdp.reward_units()
    if exact is not None:
        return exact[0].astype(np.int64), exact[1]
    largest = float(np.abs(mdp.reward_values).max())
    rounded = np.rint(mdp.reward_values / largest * _ROUNDED_UNITS).astype(np.int64)
    return rounded, Fraction(largest) / _ROUNDED_UNITS
