"""GORP's success in a goal MDP, forward from the start and only where GORP is likely to be.

In a goal MDP a rollout's return is 0 or the goal's reward, so a sequence of k actions is one number: the chance p that
the goal is reached, at once or by the exploration policy afterwards. The sum of its m returns is binomial, and the
chance of each action to be chosen the integral of `winning.py`, or the sum of `ties.py` if ties go to the lowest index.
Nothing has to be kept for a choice (`success.py`), and no distribution of returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Flags, Floats, Integers, compiled, compiled_parallel, prange
from efhorizon.gorp.success import Chances, ChancesAt, Success, forward_success
from efhorizon.gorp.sums import WINDOW_EXPONENT, WINDOW_MASS, binomial_distribution, last_inside
from efhorizon.gorp.ties import NOT_FORWARD, Ties, first_at_point
from efhorizon.gorp.winning import win_at_point
from efhorizon.planning.moments import mixing_error
from efhorizon.planning.problem import Problem
from efhorizon.planning.rewards import ROUNDING
from efhorizon.planning.threads import threads_if

MAX_SEQUENCES_A_CHOICE = 1 << 10  # A^k that are compared one by one
MAX_WINDOW = 1 << 22  # lattice points of one distribution; a choice that needs more is as good as left out
_PARALLEL_FROM = 64  # choices


class _GoalTable(NamedTuple):
    states: Integers  # [P]
    successors: Integers  # [P, A]
    pays: Flags  # [S, A], whether an action reaches the goal at once
    chances: Floats  # [P], that the exploration policy reaches it from here
    relative_error: float  # of the chances, twice: half of it is for chances that are taken as equal


class GoalChoices:
    """GORP with k-action sequences in a goal MDP without discount."""

    def __init__(self, problem: Problem, k: int, *, check: Callable[[], None] | None = None) -> None:
        """`check` is called at every time, and may end it all by an exception."""
        if not problem.is_goal_mdp or problem.gamma != 1.0:
            raise ValueError("only in a goal MDP without discount is a return 0 or one other number")
        mdp, line = problem.mdp, problem.timeline
        if mdp.num_actions**k > MAX_SEQUENCES_A_CHOICE:
            raise ValueError(f"{mdp.num_actions}^{k} sequences are too many to compare one by one")
        pays = (mdp.reward_values == problem.rewards[-1])[mdp.reward_codes]
        self._problem, self._k, self._check = problem, k, check
        # a chance of 1 is left to actions that reach the goal at once, for it has no rounding error
        self._table = _GoalTable(line.states, line.successors, pays, problem.goal_chances, 4 * mixing_error(line))

    def success(self, m: int, max_left_out: float, *, least: float = 0.0, ties: Ties = "uniform") -> Success:
        """Success within `max_left_out`, and rounding: choices of at most that chance together are left out."""
        return forward_success(self._problem, self.chances(m, ties), max_left_out=max_left_out, least=least)

    def chances(self, m: int, ties: Ties = "uniform") -> ChancesAt:
        """What gives the chances of each action at some pairs of one time."""
        if ties == "adversarial":
            raise ValueError(NOT_FORWARD)

        def chances_at(pairs: NDArray[np.int64]) -> Chances:
            if self._check is not None:
                self._check()
            chances = np.zeros((len(pairs), self._problem.mdp.num_actions))
            errors, work = np.zeros(len(pairs)), np.zeros(len(pairs), np.int64)
            with threads_if(len(pairs) >= _PARALLEL_FROM):
                _goal_choices(pairs, m, self._k, ties == "lowest", self._table, chances, errors, work)
            return chances, errors, int(work.sum())

        return chances_at


@compiled_parallel
def _goal_choices(
    pairs: Integers, m: int, k: int, lowest: bool, table: _GoalTable, out: Floats, doubts: Floats, work: Integers
) -> None:
    states, successors, pays, values, relative_error = table
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
        if lowest:
            own_counts = np.zeros((n, num_actions))
            for i in range(len(p)):
                own_counts[group[i], i // num_actions ** (k - 1)] += 1.0
            doubts[row], points = _binomial_firsts(m, n, chances, counts, own_counts, relative_error, out[row])
            work[row] = points + len(p)
            doubts[row] += max(0.0, 1.0 - out[row].sum())
            continue
        wins = np.zeros(n)
        doubts[row], points = _binomial_wins(m, n, chances, counts, relative_error, wins)
        work[row] = points + len(p)
        total = 0.0
        for i in range(len(p)):
            out[row, i // num_actions ** (k - 1)] += wins[group[i]]
            total += wins[group[i]]
        doubts[row] += max(0.0, 1.0 - total)


@compiled
def _sequences(
    pair: int, k: int, states: Integers, successors: Integers, pays: Flags, values: Floats, out: Floats
) -> None:
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


@compiled
def _binomial_wins(
    m: int, n: int, chances: Floats, counts: Floats, relative_error: float, wins: Floats
) -> tuple[float, int]:
    """Add each group's chance, for one of its sequences, to have the largest of binomial sums; error bound, points."""
    first = np.empty(n, np.int64)
    last = np.empty(n, np.int64)
    active = np.empty(n, np.int64)
    num_active, floor, top, longest, doubt = _windows(m, n, chances, counts, relative_error, first, last, active)
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
        own_counts[j] = counts[active[j]]
    _fill_masses(m, num_active, chances, first, last, active, floor, masses, below)
    for x in range(floor, top + 1):
        for j in range(num_active):
            i = active[j]
            if x > last[i]:
                mass[j], below[j] = 0.0, 1.0
            else:
                mass[j] = masses[j, x - first[i]]
        win_at_point(num_active, own_counts, mass, below, own_wins)
        for j in range(num_active):
            below[j] = min(1.0, below[j] + mass[j])
    for j in range(num_active):
        wins[active[j]] = own_wins[j]
    return doubt + ROUNDING * (top - floor + 1), num_active * (top - floor + 1)


@compiled
def _binomial_firsts(
    m: int, n: int, chances: Floats, counts: Floats, own_counts: Floats, relative_error: float, out: Floats
) -> tuple[float, int]:
    """Add to `out` the chance of each action [A] if ties go to the lowest; own_counts [n, A] are by first action."""
    first = np.empty(n, np.int64)
    last = np.empty(n, np.int64)
    active = np.empty(n, np.int64)
    num_active, floor, top, longest, doubt = _windows(m, n, chances, counts, relative_error, first, last, active)
    if longest > MAX_WINDOW:
        return 1.0, 1
    masses = np.empty((num_active, longest))
    below = np.zeros(num_active)
    _fill_masses(m, num_active, chances, first, last, active, floor, masses, below)
    order = np.arange(len(out))
    all_below = np.empty(len(out))
    all_reached = np.empty(len(out))
    for x in range(floor, top + 1):
        all_below[:] = 1.0
        all_reached[:] = 1.0
        for j in range(num_active):
            i = active[j]
            reached = 1.0 if x >= last[i] else min(1.0, below[j] + masses[j, x - first[i]])
            for action in range(len(out)):
                if own_counts[i, action] > 0.0:
                    all_below[action] *= below[j] ** own_counts[i, action]
                    all_reached[action] *= reached ** own_counts[i, action]
            below[j] = reached
        first_at_point(order, all_below, all_reached, out)
    return doubt + ROUNDING * (top - floor + 1) * len(out), num_active * (top - floor + 1)


@compiled
def _windows(
    m: int, n: int, chances: Floats, counts: Floats, relative_error: float, first: Integers, last: Integers,
    active: Integers,
) -> tuple[int, int, int, int, float]:  # fmt: skip
    """First and last sum of each group that count, and the groups that can win: how many, from which sum to which, the
    longest window, and a bound on all errors."""
    floor = 0
    for i in range(n):
        first[i], last[i] = _window(m, chances[i])
        floor = max(floor, first[i])
    num_active, top, longest = 0, floor, 0
    doubt = 0.0
    for i in range(n):
        length = last[i] - first[i] + 1
        wrong = binomial_distance(m, chances[i], relative_error * chances[i])
        doubt += counts[i] * (wrong + WINDOW_MASS + (10 * length + 4) * ROUNDING)
        if last[i] >= floor:
            active[num_active] = i
            num_active += 1
            top = max(top, last[i])
            longest = max(longest, length)
    return num_active, floor, top, longest, doubt


@compiled
def _fill_masses(
    m: int, num_active: int, chances: Floats, first: Integers, last: Integers, active: Integers, floor: int,
    masses: Floats, below: Floats,
) -> None:  # fmt: skip
    """Binomial distributions of the active groups from their first sum on, and their chances to be below `floor`."""
    for j in range(num_active):
        i = active[j]
        binomial_distribution(m, chances[i], 1.0 - chances[i], first[i], masses[j, : last[i] - first[i] + 1])
        for x in range(first[i], floor):
            below[j] += masses[j, x - first[i]]


@compiled
def binomial_distance(m: int, p: float, difference: float) -> float:
    """A bound on the total variation distance of binomial distributions whose chances differ by so much.

    m differences add up; and by Pinsker's inequality it is at most sqrt(K / 2), K <= m difference^2 / (p (1 - p)).
    """
    if p <= 0.0 or p >= 1.0:  # these are exact
        return 0.0
    return min(1.0, m * difference, difference * math.sqrt(m / (2 * p * (1.0 - p))))


@compiled
def _window(m: int, p: float) -> tuple[int, int]:
    """The sums outside of which a binomial distribution has less than WINDOW_MASS, by Chernoff's bound."""
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
