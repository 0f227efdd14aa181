"""Private kernels of planning with chance: one step backward or forward in time, on one layer of `layers.py`.

    Q(s, a) = sum over outcomes of p (r + V(s'))            V of an episode that is over: 0

A layer's values are [n], one for each of its states; what they lead to is a dense row [S] of the next time. Residues
(modulo the prime of `planning/rewards.py`) decide ties exactly; arrays of length 0 stand for residues that are not
there. Loops with an argmax are cut into blocks, because numba fails on them inside `prange` from Python 3.12 on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from efhorizon.compiled import Flags, Floats, Integers, Words, compiled, compiled_parallel, prange
from efhorizon.planning.modular import plus, times

_A_BLOCK = 1 << 10
TIED, UNDECIDED, CLOSE = 1, 2, 4  # bits: equal to the best action, perhaps equal, within the tolerance of the best


class Outcomes(NamedTuple):
    """The outcomes of all pairs; see `mdp.py`."""

    offsets: Integers  # [S A + 1]
    successors: Integers  # [N]
    reward_codes: Integers  # [N]
    probability_codes: Integers  # [N]
    rewards: Floats  # [R]
    probabilities: Floats  # [V]
    reward_residues: Words  # [R] or [0]
    probability_residues: Words  # [V] or [0]
    num_actions: int


class Best(NamedTuple):
    """What `maximise` writes about one layer."""

    values: Floats  # [n]
    residues: Words  # [n] or [0]
    bits: Integers  # [n, A]
    gaps: Floats  # [n], best minus the best that is not tied; infinite where all tie, negative where undecided


@compiled
def q_value(outcomes: Outcomes, pair: int, following: Floats) -> float:
    total = 0.0
    for i in range(outcomes.offsets[pair], outcomes.offsets[pair + 1]):
        value = outcomes.rewards[outcomes.reward_codes[i]]
        state = outcomes.successors[i]
        if state >= 0:
            value += following[state]
        total += outcomes.probabilities[outcomes.probability_codes[i]] * value
    return total


@compiled
def _q_residue(outcomes: Outcomes, pair: int, following: Words) -> Any:
    total = np.uint64(0)
    for i in range(outcomes.offsets[pair], outcomes.offsets[pair + 1]):
        value = outcomes.reward_residues[outcomes.reward_codes[i]]
        state = outcomes.successors[i]
        if state >= 0:
            value = plus(value, following[state])
        total = plus(total, times(outcomes.probability_residues[outcomes.probability_codes[i]], value))
    return total


@compiled
def _maximise(
    begin: int,
    end: int,
    outcomes: Outcomes,
    states: Integers,
    following: Floats,
    residues: Words,
    rounding: tuple[float, float, float],
    best: Best,
) -> None:
    relative, floor, tolerance = rounding
    num_actions = outcomes.num_actions
    row = np.empty(num_actions)
    for i in range(begin, end):
        first = states[i] * num_actions
        highest, chosen = -np.inf, 0
        for action in range(num_actions):
            row[action] = q_value(outcomes, first + action, following)
            if row[action] > highest:
                highest, chosen = row[action], action
        best_residue = np.uint64(0)
        if len(residues):
            best_residue = _q_residue(outcomes, first + chosen, residues)
            best.residues[i] = best_residue
        error = relative * max(abs(highest), floor)
        second, unsure = -np.inf, False
        for action in range(num_actions):
            bits = 0
            if highest - row[action] <= error:
                is_tied = action == chosen or not len(residues)
                is_tied = is_tied or _q_residue(outcomes, first + action, residues) == best_residue
                bits = TIED if is_tied else UNDECIDED
                unsure = unsure or not is_tied
            elif row[action] > second:
                second = row[action]
            if row[action] >= highest - tolerance:
                bits |= CLOSE
            best.bits[i, action] = bits
        best.values[i] = highest
        best.gaps[i] = -1.0 if unsure else highest - second


@compiled_parallel
def maximise(
    start: int,
    stop: int,
    outcomes: Outcomes,
    states: Integers,
    following: Floats,
    residues: Words,
    rounding: tuple[float, float, float],
    best: Best,
) -> None:
    """V(s) = max_a Q(s, a), which actions attain it, and the gap to the others.

    `rounding`: relative error, least magnitude, tolerance of CLOSE.
    """
    for block in prange(-(-(stop - start) // _A_BLOCK)):
        begin = start + block * _A_BLOCK
        _maximise(begin, min(begin + _A_BLOCK, stop), outcomes, states, following, residues, rounding, best)


@compiled_parallel
def average(
    start: int,
    stop: int,
    outcomes: Outcomes,
    states: Integers,
    policy: Floats,
    following: Floats,
    residues: Words,
    share: Any,
    values: Floats,
    out_residues: Words,
) -> None:
    """V(s) = sum_a pi(a | s) Q(s, a); a policy [0, A] is the uniform one, and only that has residues."""
    num_actions = outcomes.num_actions
    for i in prange(start, stop):
        first = states[i] * num_actions
        total = 0.0
        for action in range(num_actions):
            weight = policy[states[i], action] if len(policy) else 1.0
            if weight > 0.0:
                total += weight * q_value(outcomes, first + action, following)
        values[i] = total if len(policy) else total / num_actions
        if len(residues):
            sum_of_residues = np.uint64(0)
            for action in range(num_actions):
                sum_of_residues = plus(sum_of_residues, _q_residue(outcomes, first + action, residues))
            out_residues[i] = times(share, sum_of_residues)


@compiled_parallel
def minimise(start: int, stop: int, outcomes: Outcomes, states: Integers, following: Floats, values: Floats) -> None:
    """V(s) = min_a Q(s, a)."""
    num_actions = outcomes.num_actions
    for i in prange(start, stop):
        first = states[i] * num_actions
        lowest = np.inf
        for action in range(num_actions):
            lowest = min(lowest, q_value(outcomes, first + action, following))
        values[i] = lowest


@compiled_parallel
def worst_greedy(
    start: int, stop: int, outcomes: Outcomes, states: Integers, bits: Integers, following: Floats, values: Floats
) -> None:
    """V(s) = min over greedy actions of Q(s, a)."""
    num_actions = outcomes.num_actions
    for i in prange(start, stop):
        first = states[i] * num_actions
        lowest = np.inf
        for action in range(num_actions):
            if bits[i, action] & (TIED | UNDECIDED):
                lowest = min(lowest, q_value(outcomes, first + action, following))
        values[i] = lowest


@compiled
def follow_greedy(
    outcomes: Outcomes, states: Integers, greedy: Integers, optimal: Integers, here: Flags, following: Flags
) -> tuple[int, int, int]:
    """Where greedy actions lead from the states marked in `here` [S].

    Returns how many of them are further than the tolerance from optimal, how many are not optimal, and how many floats
    cannot judge.
    """
    num_actions = outcomes.num_actions
    far, wrong, unsure = 0, 0, 0
    for i in range(len(states)):
        if not here[states[i]]:
            continue
        for action in range(num_actions):
            if not greedy[i, action] & (TIED | UNDECIDED):
                continue
            if not optimal[i, action] & CLOSE:
                far += 1
            if (greedy[i, action] | optimal[i, action]) & UNDECIDED:
                unsure += 1
            elif not optimal[i, action] & TIED:
                wrong += 1
            pair = states[i] * num_actions + action
            for j in range(outcomes.offsets[pair], outcomes.offsets[pair + 1]):
                if outcomes.successors[j] >= 0:
                    following[outcomes.successors[j]] = True
    return far, wrong, unsure


@compiled
def spread(outcomes: Outcomes, states: Integers, policy: Floats, here: Floats, following: Floats) -> None:
    """Add the probability [S] of each state to those that it leads to; a policy [0, A] is uniform."""
    num_actions = outcomes.num_actions
    for i in range(len(states)):
        state = states[i]
        for action in range(num_actions):
            weight = here[state] * (policy[state, action] if len(policy) else 1.0 / num_actions)
            if weight > 0.0:
                pair = state * num_actions + action
                for j in range(outcomes.offsets[pair], outcomes.offsets[pair + 1]):
                    if outcomes.successors[j] >= 0:
                        following[outcomes.successors[j]] += (
                            weight * outcomes.probabilities[outcomes.probability_codes[j]]
                        )


@compiled_parallel
def follow(
    start: int, stop: int, outcomes: Outcomes, states: Integers, actions: Integers, following: Floats, values: Floats
) -> None:
    """V(s) = Q(s, a) of one action for each state, `actions` [S]."""
    for i in prange(start, stop):
        values[i] = q_value(outcomes, states[i] * outcomes.num_actions + actions[states[i]], following)
