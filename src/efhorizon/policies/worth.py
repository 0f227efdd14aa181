"""What a policy is worth on a table: how far it is from random play, what it earns, and where it errs.

    ratio            || uniform / policy ||_inf = max_{t, s, a} 1 / (A pi_t(a | s))            Theorems B.1 and B.2
    entropy          sum_t sum_s mu_t(s) H(pi_t(. | s)) / sum_t sum_s mu_t(s)                  of what it does, in bits
    first mistakes   nu_t(s) sum of pi_t(a | s) over actions that are not optimal

where mu_t(s) is the chance to be in s at time t, and nu_t(s) the chance to be there without a mistake so far. First
mistakes add up to the chance that an episode is not optimal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.mdp import TabularMDP
from efhorizon.planning.occupancy import occupancy, optimal_return_probability
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.problem import Problem, problem
from efhorizon.suites.action_names import action_names

NUM_MISTAKES = 5  # that are listed


@dataclass(frozen=True)
class Mistake:
    """Where episodes that were right so far go wrong, and how many of all episodes do so there."""

    time: int
    state: int
    share: float
    actions: Mapping[str, float]  # name: probability
    optimal_actions: tuple[str, ...]


@dataclass(frozen=True)
class PolicyWorth:
    """How good a policy is, beside random play. Returns are rewards; times count from 0."""

    id: str | None
    num_states: int
    num_actions: int
    horizon: int
    ratio: float | None  # None: infinite, some action has no chance
    entropy: float
    greatest_entropy: float  # log2 A, that of random play
    exploration_return: float
    random_return: float
    optimal_return: float
    optimal_return_probability: float
    random_optimal_return_probability: float
    greedy_return: float  # of the most likely action in each state
    mistakes: tuple[Mistake, ...]  # the largest first

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def policy_worth(mdp: TabularMDP, policy: ArrayLike | ExplorationPolicy | None) -> PolicyWorth:
    """What a policy [S, A] or [T, S, A] is worth on a table."""
    given, random = problem(mdp, policy=policy, max_k=1), problem(mdp, max_k=1)
    visits = occupancy(given.timeline, given.policy)
    return PolicyWorth(
        id=mdp.metadata.get("id"),
        num_states=mdp.num_states,
        num_actions=mdp.num_actions,
        horizon=mdp.horizon,
        ratio=given.uniform_ratio if math.isfinite(given.uniform_ratio) else None,
        entropy=_entropy(given, visits),
        greatest_entropy=math.log2(mdp.num_actions),
        exploration_return=given.exploration.exploration_return,
        random_return=random.exploration.exploration_return,
        optimal_return=given.optimal.values.reward(),
        optimal_return_probability=optimal_return_probability(given.timeline, given.optimal, given.policy),
        random_optimal_return_probability=optimal_return_probability(given.timeline, given.optimal, random.policy),
        greedy_return=_greedy_return(given),
        mistakes=_mistakes(given),
    )


def _rows(given: Problem, time: int) -> NDArray[np.float64]:
    """The policy in the states of one time, [layer, A]."""
    states = given.timeline.states[given.timeline.layer(time)]
    if given.policy.is_uniform:
        return np.full((len(states), given.mdp.num_actions), 1 / given.mdp.num_actions)
    rows: NDArray[np.float64] = given.policy.at(time)[states]
    return rows


def _entropy(given: Problem, visits: NDArray[np.float64]) -> float:
    total = 0.0
    for time in range(given.mdp.horizon):
        rows = _rows(given, time)
        logarithms = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
        total += float(visits[given.timeline.layer(time)] @ -(rows * logarithms).sum(axis=1))
    return total / float(visits.sum())


def _greedy_return(given: Problem) -> float:
    """The return of the episode that takes the most likely action everywhere, the first one if several are."""
    state, total = 0, 0.0
    for time in range(given.mdp.horizon):
        action = int(given.policy.row(time, state).argmax())
        total += float(given.mdp.reward_values[given.mdp.reward_codes[state, action]])
        state = int(given.mdp.transitions[state, action])
        if state < 0:
            break
    return total


def _mistakes(given: Problem) -> tuple[Mistake, ...]:
    """Where first mistakes happen most often."""
    line, is_optimal = given.timeline, given.optimal.actions  # [P, A]
    right_so_far = np.zeros(line.num_pairs)
    right_so_far[0] = 1.0
    shares = np.zeros(line.num_pairs)
    for time in range(given.mdp.horizon):
        layer, rows = line.layer(time), _rows(given, time)
        here = right_so_far[layer]
        shares[layer] = here * (rows * ~is_optimal[layer]).sum(axis=1)
        goes_on = is_optimal[layer] & (line.successors[layer] >= 0)
        np.add.at(right_so_far, line.successors[layer][goes_on], (here[:, None] * rows)[goes_on])
    largest = np.argsort(-shares, kind="stable")[:NUM_MISTAKES]
    names = action_names(given.mdp.metadata, given.mdp.num_actions)
    found = []
    for pair in largest[shares[largest] > 0].tolist():
        time, state = line.time_of(pair), int(line.states[pair])
        row = given.policy.row(time, state)
        found.append(
            Mistake(
                time=time,
                state=state,
                share=float(shares[pair]),
                actions=dict(zip(names, row.tolist(), strict=True)),
                optimal_actions=tuple(name for name, is_right in zip(names, is_optimal[pair], strict=True) if is_right),
            )
        )
    return tuple(found)
