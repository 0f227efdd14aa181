"""GORP's success in a goal MDP, forward from the start and only where GORP is likely to be.

In a goal MDP a rollout's return is 0 or the goal's reward, so a sequence of k actions is one number: the chance p that
the goal is reached, at once or by the exploration policy afterwards. The sum of its m returns is binomial, and the
chance of each action to be chosen the integral of `_choice_exact.py`. Nothing has to be kept for a choice
(`_forward_success.py`), and no law of returns.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from efhorizon.gorp.backward import NODES, RATES, WEIGHTS, win_at_point
from efhorizon.gorp.success import Chances, Success, forward_success
from efhorizon.gorp.sums import WINDOW_EXPONENT, WINDOW_MASS, binomial_law, last_inside
from efhorizon.gorp.threads import threads_if
from efhorizon.planning.problem import Problem
from efhorizon.planning.returns import relative_error
from efhorizon.planning.rewards import ROUNDING
from efhorizon.planning.values import policy_values

MAX_SEQUENCES = 1 << 10  # A^k that are compared one by one
MAX_WINDOW = 1 << 22  # lattice points of one law; a choice that needs more is as good as left out
_PARALLEL_FROM = 64  # choices


class GoalChoices:
    """GORP with k-action sequences in a goal MDP without discount."""

    def __init__(self, problem: Problem, k: int) -> None:
        if not problem.is_goal_mdp or problem.gamma != 1.0:
            raise ValueError("only in a goal MDP without discount is a return 0 or one other number")
        mdp, line = problem.mdp, problem.timeline
        if mdp.num_actions**k > MAX_SEQUENCES:
            raise ValueError(f"{mdp.num_actions}^{k} sequences are too many to compare one by one")
        pays = mdp.reward_values == problem.rewards[-1]
        values = policy_values(line, problem.policy)
        self._timeline, self._optimal, self._k = line, problem.optimal, k
        # [P], to reach the goal from here; 1 is left to actions that reach it at once, for it has no rounding error
        self._chances = np.minimum(values.numbers / values.scale.units[pays].max(), np.nextafter(1.0, 0.0))
        self._pays = pays[mdp.reward_codes]  # [S, A]
        self._relative_error = 4 * relative_error(line)  # half of it is for chances that are taken as equal

    def success(self, m: int, max_left_out: float, *, least: float = 0.0) -> Success:
        """Success within `max_left_out`, and rounding: choices of at most that chance together are left out."""
        return forward_success(
            self._timeline, self._optimal, lambda pairs: self._chances_at(pairs, m),
            max_left_out=max_left_out, least=least,
        )  # fmt: skip

    def _chances_at(self, pairs: NDArray[np.int64], m: int) -> Chances:
        chances = np.zeros((len(pairs), self._timeline.mdp.num_actions))
        errors = np.zeros(len(pairs))
        work = np.zeros(len(pairs), np.int64)
        with threads_if(len(pairs) >= _PARALLEL_FROM):
            _goal_choices(
                pairs, m, self._k, self._timeline.states, self._timeline.successors, self._pays, self._chances,
                self._relative_error, chances, errors, work,
            )  # fmt: skip
        return chances, errors, int(work.sum())


@njit(cache=True, parallel=True)
def _goal_choices(  # type: ignore[no-untyped-def]
    pairs, m, k, states, successors, pays, values, relative_error, out, doubts, work
):
    num_actions = successors.shape[1]
    for row in prange(len(pairs)):
        p = np.empty(num_actions**k)
        _sequences(pairs[row], k, states, successors, pays, values, p)
        order = np.argsort(p)
        group = np.empty(len(p), np.int64)
        counts = np.zeros(len(p))
        chances = np.empty(len(p))
        n = 0
        for i in range(len(p)):
            if n == 0 or p[order[i]] - chances[n - 1] > 0.5 * relative_error * p[order[i]]:
                chances[n] = p[order[i]]
                n += 1
            group[order[i]] = n - 1
            counts[n - 1] += 1.0
        wins = np.zeros(n)
        doubts[row], points = _binomial_wins(m, n, chances, counts, relative_error, wins)
        work[row] = points + len(p)
        total = 0.0
        for i in range(len(p)):
            out[row, i // num_actions ** (k - 1)] += wins[group[i]]
            total += wins[group[i]]
        doubts[row] += max(0.0, 1.0 - total)


@njit(cache=True)
def _sequences(pair, k, states, successors, pays, values, out):  # type: ignore[no-untyped-def]
    """The chance to reach the goal with each sequence; those with the same first actions stand together."""
    num_actions = successors.shape[1]
    places = np.empty(len(out), np.int64)
    places[0] = pair
    size = 1
    for _ in range(k):
        for i in range(size - 1, -1, -1):  # from behind: a row is read before it is written over
            place = places[i]
            for action in range(num_actions - 1, -1, -1):
                if place < 0:
                    following = place
                elif pays[states[place], action]:
                    following = -2  # the goal
                else:
                    following = successors[place, action]
                places[i * num_actions + action] = following
        size *= num_actions
    for i in range(size):
        out[i] = values[places[i]] if places[i] >= 0 else (1.0 if places[i] == -2 else 0.0)


@njit(cache=True)
def _binomial_wins(m, n, chances, counts, relative_error, wins):  # type: ignore[no-untyped-def]
    """Add each group's chance, for one of its sequences, to have the largest of binomial sums; error bound, points."""
    first = np.empty(n, np.int64)
    last = np.empty(n, np.int64)
    floor = np.int64(0)
    for i in range(n):
        first[i], last[i] = _window(m, chances[i])
        floor = max(floor, first[i])
    active = np.empty(n, np.int64)
    num_active, top, longest = 0, floor, 0
    doubt = 0.0
    for i in range(n):
        length = last[i] - first[i] + 1
        wrong = _distance(m, chances[i], relative_error * chances[i])
        doubt += counts[i] * (wrong + WINDOW_MASS + (10 * length + 4) * ROUNDING)
        if last[i] >= floor:
            active[num_active] = i
            num_active += 1
            top = max(top, last[i])
            longest = max(longest, length)
    if num_active == 1:
        wins[active[0]] = 1.0 / counts[active[0]]
        return doubt, 1
    if longest > MAX_WINDOW:
        return 1.0, 1
    masses = np.empty((num_active, longest))
    mass = np.empty(num_active)
    below = np.zeros(num_active)
    own_counts = np.empty(num_active)
    own_wins = np.zeros(num_active)
    for j in range(num_active):
        i = active[j]
        own_counts[j] = counts[i]
        binomial_law(m, chances[i], 1.0 - chances[i], first[i], masses[j, : last[i] - first[i] + 1])
        for x in range(first[i], floor):
            below[j] += masses[j, x - first[i]]
    for x in range(floor, top + 1):
        for j in range(num_active):
            i = active[j]
            if x > last[i]:
                mass[j], below[j] = 0.0, 1.0
            else:
                mass[j] = masses[j, x - first[i]]
        win_at_point(num_active, own_counts, mass, below, NODES, WEIGHTS, RATES, own_wins)
        for j in range(num_active):
            below[j] = min(1.0, below[j] + mass[j])
    for j in range(num_active):
        wins[active[j]] = own_wins[j]
    return doubt + ROUNDING * (top - floor + 1), num_active * (top - floor + 1)


@njit(cache=True)
def _distance(m, p, difference):  # type: ignore[no-untyped-def]
    """A bound on the total variation distance of binomial laws whose chances differ by so much.

    m differences add up; and by Pinsker's inequality it is at most sqrt(K / 2), K <= m difference^2 / (p (1 - p)).
    """
    if p <= 0.0 or p >= 1.0:  # these are exact
        return 0.0
    return min(1.0, m * difference, difference * math.sqrt(m / (2 * p * (1.0 - p))))


@njit(cache=True)
def _window(m, p):  # type: ignore[no-untyped-def]
    """The sums outside of which a binomial law has less than WINDOW_MASS, by Chernoff's bound."""
    if p <= 0.0:
        return 0, 0
    if p >= 1.0:
        return m, m
    linear = WINDOW_EXPONENT / 3
    width = linear + math.sqrt(linear**2 + 2 * m * p * (1.0 - p) * WINDOW_EXPONENT)  # Bernstein's inequality
    mean = int(m * p)
    lowest = max(int(m * p - width) - 1, 0)
    highest = min(int(m * p + width) + 2, m)
    low = last_inside(mean, lowest - 1, m, p, WINDOW_EXPONENT)
    high = last_inside(min(mean + 1, m), highest + 1, m, p, WINDOW_EXPONENT)
    return max(low, lowest), min(high, highest)
