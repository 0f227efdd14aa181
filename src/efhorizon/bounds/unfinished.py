"""Analysis of an unfinished table: what a search that stopped early knows for certain, as intervals.

Some states were found but not expanded (`mdp.unexplored`). What follows them is unknown, except that every reward lies
between two bounds, by default the least and the largest reward in the table. An episode can also end there at once, so
from an unexplored state with n steps to go the return lies in

    [n min(0, lowest reward), n max(0, highest reward)]        (discounted where there is a discount).

Two completions of the table attain these ends: there, an unexplored state pays one of the bounds for ever. Optimal,
worst and policy values, and Q-value iteration, grow with what follows, so values of the two completions bracket those
of any true continuation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.bounds.analysis_methods import AnalysisMethods
from efhorizon.bounds.interval import Interval
from efhorizon.errors import EfhorizonError, InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.planning.occupancy import occupancy
from efhorizon.planning.optimal import optimal_values, worst_values
from efhorizon.planning.policies import ExplorationPolicy, exploration_policy
from efhorizon.planning.rewards import reward_scale
from efhorizon.planning.timeline import Timeline, timeline
from efhorizon.planning.values import Values, action_values, policy_values, relative_error, zero_values

_REASON = "the table is unfinished"


class InvalidRewardBoundsError(EfhorizonError, ValueError):
    """Reward bounds that the table itself breaks."""


@dataclass(frozen=True)
class AnytimeAnalysis(AnalysisMethods):
    """What is known of an unfinished table. Sample complexities without a `high` are unbounded as far as is known."""

    id: str | None
    num_actions: int
    horizon: int
    gamma: float
    num_explored: int
    num_unexplored: int
    reward_bounds: tuple[float, float]
    intervals: dict[str, Interval]
    sample_complexity: dict[str, int | Interval | None]

    def as_json(self) -> dict[str, Any]:
        """The keys of a full analysis, each figure that depends on unexplored states as [low, high]."""
        figures = {name: interval.as_json() for name, interval in self.intervals.items()}
        horizon = figures.pop("effective_horizon")
        return {
            "id": self.id,
            "complete": False,
            "num_explored_states": self.num_explored,
            "num_unexplored_states": self.num_unexplored,
            "reward_bounds": list(self.reward_bounds),
            "num_actions": self.num_actions,
            "horizon": self.horizon,
            "gamma": self.gamma,
            **figures,
            "effective_horizon": {"value": horizon, "k": None, "m": None, "kind": "interval", "by_k": {}},
            "sample_complexity": {
                name: value.as_json() if isinstance(value, Interval) else value
                for name, value in self.sample_complexity.items()
            },
            "reasons": {name: _REASON for name, value in self.sample_complexity.items() if value is None},
        }


def analyze_unfinished(
    mdp: TabularMDP,
    *,
    gamma: float = 1.0,
    exploration: ArrayLike | ExplorationPolicy | None = None,
    reward_bounds: tuple[float, float] | None = None,
) -> AnytimeAnalysis:
    """Intervals for every figure of an analysis that depends on unexplored states."""
    if mdp.unexplored is None:
        raise InvalidTableError("every state of this table is explored: there is nothing to bracket")
    policy = exploration_policy(mdp, exploration)
    bounds = _checked_bounds(mdp, reward_bounds)
    low, high = (timeline(_completion(mdp, bounds, end)) for end in (0, 1))
    known = _Known(low, high, mdp.unexplored, policy, gamma)
    horizon, num_actions = mdp.horizon, mdp.num_actions
    min_k = known.least_k(policy_values(low, policy, gamma=gamma), policy_values(high, policy, gamma=gamma))
    scales = reward_scale(low.mdp, gamma=gamma), reward_scale(high.mdp, gamma=gamma)
    window = known.least_k(zero_values(low, scales[0]), zero_values(high, scales[1]))
    occupancies = known.occupancies()
    rarest = occupancies["min_sum_state_action_occupancy"]
    cover = max(1.0, math.log(2) / (2 * rarest)) if rarest > 0 else 1.0  # Lemma D.4; at least one episode in any case
    num_known = mdp.num_states
    intervals = {
        "num_states": Interval(num_known, None),
        "optimal_return": Interval(known.best[0].values.reward(), known.best[1].values.reward()),
        "exploration_return": _start_interval(low, high, policy_values, policy, gamma=gamma),
        "worst_return": _start_interval(low, high, worst_values, gamma=gamma),
        "optimal_return_probability": known.optimal_probability(),
        "min_k": min_k,
        "epw": window,
        **{name: Interval(0.0, value) for name, value in occupancies.items()},
        "covering_length": Interval(cover, None),
        "effective_horizon": Interval(1.0, float(horizon)),  # k = T with m = 1 tries every sequence
    }
    complexity: dict[str, int | Interval | None] = {
        "worst_case": horizon * -(-(num_actions**horizon) // 2),
        "ucb": Interval(num_known * num_actions * horizon, None),
        "covering_length": Interval(horizon * cover, None),
        "epw": Interval(*(horizon**2 * num_actions ** int(k) for k in (window.low, window.high or horizon))),
        "effective_horizon": Interval(horizon**2 * num_actions, horizon**2 * num_actions**horizon),
        "goal": None,
        "pg_gorp": None,
        "fqi_gorp": None,
    }
    num_unexplored = int(mdp.unexplored.sum())
    return AnytimeAnalysis(
        id=mdp.metadata.get("id"),
        num_actions=num_actions,
        horizon=horizon,
        gamma=gamma,
        num_explored=mdp.num_states - num_unexplored,
        num_unexplored=num_unexplored,
        reward_bounds=bounds,
        intervals=intervals,
        sample_complexity=complexity,
    )


class _Known:
    """Two completions of one table, and what holds in both."""

    def __init__(
        self,
        low: Timeline,
        high: Timeline,
        unexplored: NDArray[np.bool_],
        policy: ExplorationPolicy,
        gamma: float,
    ) -> None:
        self.lines = low, high  # the same pairs
        self.unexplored = unexplored[low.states]  # [P]
        self.policy = policy
        self.best = optimal_values(low, gamma=gamma), optimal_values(high, gamma=gamma)

    def optimal_probability(self) -> Interval:
        """Chance that all actions are surely optimal, and that all may be."""
        line = self.lines[0]
        chances = np.zeros((2, line.num_pairs))
        for time in reversed(range(line.mdp.horizon)):
            layer = line.layer(time)
            successors = line.successors[layer]
            share = self._shares(time, layer)
            for end, allowed in enumerate((self._surely_best(layer), self._maybe_best(layer))):
                following = np.where(successors >= 0, chances[end][successors], 1.0)
                chances[end, layer] = (share * allowed * following).sum(axis=1)
            chances[0, layer][self.unexplored[layer]] = 0.0
            chances[1, layer][self.unexplored[layer]] = 1.0
        return Interval(float(chances[0, 0]), float(chances[1, 0]))

    def occupancies(self) -> dict[str, float]:
        """Upper bounds of the least occupancies: a known state can be visited through unexplored ones besides."""
        line = self.lines[0]
        measure = occupancy(line, self.policy)
        layers = [line.layer(time) for time in range(line.mdp.horizon)]
        hidden = np.array([measure[layer][self.unexplored[layer]].sum() for layer in layers])
        most = np.zeros((line.mdp.num_states, line.mdp.num_actions))
        total = np.zeros_like(most)
        for time, layer in enumerate(layers):
            states = line.states[layer]
            visits = measure[layer][:, None] * self._shares(time, layer)
            most[states] = np.maximum(most[states], visits)
            total[states] += visits
        explored = np.zeros(line.mdp.num_states, np.bool_)
        explored[line.states[~self.unexplored]] = True
        return {
            "min_state_action_occupancy": min(1.0, float(most[explored].min(initial=1.0) + hidden.max())),
            "min_sum_state_action_occupancy": float(total[explored].min(initial=line.mdp.horizon) + hidden.sum()),
        }

    def least_k(self, low: Values, high: Values) -> Interval:
        """The least k for which greedy policies are optimal: from the first that may do to the first that does.

        `low` and `high` are the values that Q^1 starts from, and are overwritten.
        """
        horizon = self.lines[0].mdp.horizon
        first_open = None
        for k in range(1, horizon + 1):
            fails, works = self._sweep((low, high))
            if works:
                return Interval(first_open or k, k)
            if not fails and first_open is None:
                first_open = k
        return Interval(first_open or horizon, horizon)

    def _sweep(self, values: tuple[Values, Values]) -> tuple[bool, bool]:
        """Whether some greedy action surely is not optimal, and whether surely all are; then V = max_a Q in place."""
        line = self.lines[0]
        fails, works = False, True
        surely, maybe = np.zeros((2, line.num_pairs), np.bool_)
        surely[0] = maybe[0] = True
        for time in range(line.mdp.horizon):
            layer = line.layer(time)
            q = action_values(self.lines[0], values[0], layer), action_values(self.lines[1], values[1], layer)
            error = relative_error(line, values[0], time) * (np.abs(q[0]) + np.abs(q[1])).max(axis=1)
            greedy = _surely_largest(q, error), _maybe_largest(q, error)
            hidden = self.unexplored[layer][:, None]
            here = surely[layer][:, None] & greedy[0] & ~hidden, maybe[layer][:, None] & greedy[1]
            fails = fails or bool((here[0] & ~self._maybe_best(layer)).any())
            works = works and not bool((here[1] & (~self._surely_best(layer) | hidden)).any())
            for mark, chosen in zip((surely, maybe), here, strict=True):
                following = line.successors[layer][chosen]
                mark[following[following >= 0]] = True
            for end in (0, 1):
                values[end].numbers[layer] = q[end].max(axis=1)
        return fails, works

    def _q_star(self, layer: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        low, high = (action_values(line, best.values, layer) for line, best in zip(self.lines, self.best, strict=True))
        return low, high

    def _surely_best(self, layer: slice) -> NDArray[np.bool_]:
        q = self._q_star(layer)
        return _surely_largest(q, self._star_error(layer, q))

    def _maybe_best(self, layer: slice) -> NDArray[np.bool_]:
        q = self._q_star(layer)
        return _maybe_largest(q, self._star_error(layer, q))

    def _star_error(self, layer: slice, q: tuple[NDArray[Any], NDArray[Any]]) -> NDArray[np.float64]:
        time = self.lines[0].time_of(layer.start) if layer.stop > layer.start else 0
        relative = relative_error(self.lines[0], self.best[0].values, time)
        error: NDArray[np.float64] = relative * (np.abs(q[0]) + np.abs(q[1])).max(axis=1)
        return error

    def _shares(self, time: int, layer: slice) -> NDArray[np.float64]:
        states = self.lines[0].states[layer]
        if self.policy.is_uniform:
            return np.full((len(states), self.policy.num_actions), 1 / self.policy.num_actions)
        shares: NDArray[np.float64] = self.policy.at(time)[states]
        return shares


def _surely_largest(q: tuple[NDArray[Any], NDArray[Any]], error: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Actions whose lowest value is at least the highest of every other action."""
    low, high = q
    result = np.empty(low.shape, np.bool_)
    for action in range(low.shape[1]):
        others = np.delete(high, action, axis=1)
        result[:, action] = (low[:, [action]] - others >= error[:, None]).all(axis=1)
    return result


def _maybe_largest(q: tuple[NDArray[Any], NDArray[Any]], error: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Actions whose highest value is not below the lowest of another."""
    low, high = q
    result: NDArray[np.bool_] = high >= (low.max(axis=1) - error)[:, None]
    return result


def _start_interval(low: Timeline, high: Timeline, values: Any, *arguments: Any, **options: Any) -> Interval:
    return Interval(values(low, *arguments, **options).reward(), values(high, *arguments, **options).reward())


def _checked_bounds(mdp: TabularMDP, given: tuple[float, float] | None) -> tuple[float, float]:
    assert mdp.unexplored is not None
    met = mdp.reward_values[np.unique(mdp.reward_codes[~mdp.unexplored])]
    least, largest = (float(met.min()), float(met.max())) if len(met) else (given or (0.0, 0.0))
    if given is None:
        return least, largest
    if not given[0] <= least <= largest <= given[1]:
        raise InvalidRewardBoundsError(
            f"rewards of the table range from {least:g} to {largest:g}, beyond the bounds {given[0]:g} and {given[1]:g}"
        )
    return float(given[0]), float(given[1])


def _completion(mdp: TabularMDP, bounds: tuple[float, float], end: int) -> TabularMDP:
    """The table in which unexplored states pay the lower (0) or the upper (1) bound for ever."""
    assert mdp.unexplored is not None
    ends = min(0.0, bounds[0]), max(0.0, bounds[1])
    values, places = np.unique(np.concatenate([mdp.reward_values, ends]), return_inverse=True)
    dtype = np.min_scalar_type(len(values) - 1)
    codes = places[:-2].astype(dtype)[mdp.reward_codes]
    codes[mdp.unexplored] = places[-2 + end]
    transitions = mdp.transitions.copy()
    transitions[mdp.unexplored] = np.flatnonzero(mdp.unexplored)[:, None]
    for array in (codes, transitions):
        array.flags.writeable = False
    return TabularMDP(transitions, (codes, values), mdp.horizon)
