"""Private kernels of dynamic programming: one step backward or forward in time.

Most work on one layer of a timeline: the pairs start .. stop - 1, all of one time; `best_actions` and
`best_actions_along` work on the states of a table. One rule finds the best action everywhere: `_best_action`.

Legend: P pairs, A actions, R distinct rewards. A value is kept in up to three arrays [P]: the number itself, its
residue modulo the prime of `rewards.py` (length 0 where there is none: integers are exact, and given policies are
rounded), and its magnitude, the same sum of absolute rewards, to which rounding errors are relative (length 0 where no
reward is negative: the value is its own magnitude).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from efhorizon.compiled import (
    Flags,
    Floats,
    Integers,
    Numbers,
    Words,
    compiled,
    compiled_parallel,
    compiled_with,
    prange,
)
from efhorizon.planning.modular import plus, times

_ONE: Any = np.uint64(1)
_A_BLOCK = 1 << 10  # pairs or states that one thread takes at a time
_UNDERFLOW = 1e-290  # below, float64 keeps no relative precision over many steps

BELOW, TIED, UNDECIDED = 0, 1, 2  # how a value compares with the largest one
SOUND, FAILED, UNCERTAIN = 0, 1, 2  # whether all greedy actions of a pair are optimal


class Steps(NamedTuple):
    """What each action of each pair leads to."""

    successors: Integers  # [P, A], pairs; -1 where the episode ends
    states: Integers  # [P]
    codes: Integers  # [S, A], of rewards


class Parts(NamedTuple):
    """The values of all pairs, with rewards and discount in their type."""

    numbers: Numbers  # [P]
    residues: Words  # [P] or [0]
    magnitudes: Floats  # [P] or [0]
    units: Numbers  # [R]
    unit_residues: Words  # [R]
    gamma: Any
    gamma_residue: Any


class Optimum(NamedTuple):
    """V*, its actions, and the pairs that optimal policies reach."""

    numbers: Numbers  # [P]
    actions: Flags  # [P, A]
    reached: Flags  # [P]


class Greed(NamedTuple):
    """Where greedy policies go from one layer, and what a sweep measures there; see `greedy_sweep`."""

    start: int  # the first pair of the layer
    stop: int  # that of the next
    here: Integers  # [layer], pairs that a greedy policy can reach
    following: Integers  # [next layer]
    verdict: Integers  # [layer]
    hardness: Floats  # [layer] or [0]
    least: Floats  # [layer] or [0]
    risk: Floats  # [layer] or [0]
    mistake: Floats  # [layer] or [0]


class Table(NamedTuple):
    """An MDP's own arrays."""

    transitions: Integers  # [S, A]
    codes: Integers  # [S, A]
    units: Numbers  # [R]


@compiled
def _number(successor: int, unit: Any, gamma: Any, values: Numbers) -> Any:
    return unit + gamma * values[successor] if successor >= 0 else unit


@compiled
def _residue(successor: int, unit: Any, gamma: Any, residues: Words) -> Any:
    return plus(unit, times(gamma, residues[successor])) if successor >= 0 else unit


@compiled
def _magnitude(successor: int, unit: Any, gamma: Any, magnitudes: Floats, number: Any) -> Any:
    if not len(magnitudes):
        return abs(float(number))
    return abs(float(unit)) + gamma * magnitudes[successor] if successor >= 0 else abs(float(unit))


@compiled
def _comparison(best: Any, number: Any, rounding: float, known: bool, best_residue: Any, residue: Any) -> int:
    if best - number > rounding:
        return BELOW
    return UNDECIDED if known and best_residue != residue else TIED


@compiled_with(inline="always")
def _best_action(
    row: int, successors: Integers, state: int, codes: Integers, units: Numbers, gamma: Any, values: Numbers
) -> tuple[Any, int]:
    """max_a R(s, a) + gamma V(s'), and the lowest action that attains it.

    Not to be used right inside a parallel loop, where numba fails on it from Python 3.12 on (numba issue 10132): loops
    over pairs are cut into blocks, which threads share.
    """
    best, chosen = _number(successors[row, 0], units[codes[state, 0]], gamma, values), 0
    for action in range(1, successors.shape[1]):
        number = _number(successors[row, action], units[codes[state, action]], gamma, values)
        if number > best:
            best, chosen = number, action
    return best, chosen


@compiled
def _tied_action(state: int, table: Table, following: Numbers, best: Any, tie: int) -> int:
    """The first action that attains the best value, counted from `tie` on and around."""
    num_actions = table.transitions.shape[1]
    for i in range(num_actions):
        action = (i + tie) % num_actions
        if _number(table.transitions[state, action], table.units[table.codes[state, action]], 1, following) == best:
            return action
    return 0


@compiled
def best_actions_along(order: Integers, table: Table, ties: Integers, values: Numbers, actions: Integers) -> None:
    """V*(s) and an optimal action of states of which each comes after its successors; time plays no part."""
    transitions, codes, units = table
    for i in range(len(order)):
        state = order[i]
        best, chosen = _best_action(state, transitions, state, codes, units, 1, values)
        values[state] = best
        actions[state] = _tied_action(state, table, values, best, ties[state]) if len(ties) else chosen


@compiled
def _best_actions(
    start: int, stop: int, table: Table, ties: Integers, following: Numbers, values: Numbers, actions: Integers
) -> None:
    transitions, codes, units = table
    for state in range(start, stop):
        best, chosen = _best_action(state, transitions, state, codes, units, 1, following)
        values[state] = best
        actions[state] = chosen
    if len(ties):
        for state in range(start, stop):
            actions[state] = _tied_action(state, table, following, values[state], ties[state])


@compiled_parallel
def best_actions(
    start: int, stop: int, table: Table, ties: Integers, following: Numbers, values: Numbers, actions: Integers
) -> None:
    """V*_t(s) and an optimal action of the states start .. stop - 1, from V*_{t+1}.

    Ties go to the lowest action; if `ties` [S] are given, to the first from an action of each state's own.
    """
    for block in prange(-(-(stop - start) // _A_BLOCK)):
        begin = start + block * _A_BLOCK
        _best_actions(begin, min(begin + _A_BLOCK, stop), table, ties, following, values, actions)


@compiled
def _best_bits(state: int, table: Table, following: Numbers, best: Any) -> Any:
    """All actions that attain the best value, action a as bit a."""
    bits = np.uint64(0)
    for action in range(table.transitions.shape[1]):
        if _number(table.transitions[state, action], table.units[table.codes[state, action]], 1, following) == best:
            bits |= _ONE << np.uint64(action)
    return bits


@compiled
def best_bits_along(order: Integers, table: Table, values: Numbers, bits: Integers) -> None:
    """As `best_actions_along`, with all optimal actions of each state."""
    transitions, codes, units = table
    for i in range(len(order)):
        state = order[i]
        best, _ = _best_action(state, transitions, state, codes, units, 1, values)
        values[state] = best
        bits[state] = _best_bits(state, table, values, best)


@compiled
def _block_of_best_bits(
    start: int, stop: int, table: Table, following: Numbers, values: Numbers, bits: Integers
) -> None:
    transitions, codes, units = table
    for state in range(start, stop):
        best, _ = _best_action(state, transitions, state, codes, units, 1, following)
        values[state] = best
        bits[state] = _best_bits(state, table, following, best)


@compiled_parallel
def best_bits(start: int, stop: int, table: Table, following: Numbers, values: Numbers, bits: Integers) -> None:
    """As `best_actions`, with all optimal actions of each state."""
    for block in prange(-(-(stop - start) // _A_BLOCK)):
        begin = start + block * _A_BLOCK
        _block_of_best_bits(begin, min(begin + _A_BLOCK, stop), table, following, values, bits)


@compiled_parallel
def maximise(start: int, stop: int, steps: Steps, values: Parts, relative_error: float, actions: Flags) -> int:
    """V_t(s) = max_a r + gamma V_{t+1}(s'), and which actions attain it. Returns how many ties are undecided."""
    undecided = 0
    for block in prange(-(-(stop - start) // _A_BLOCK)):
        begin = start + block * _A_BLOCK
        undecided += _maximise(begin, min(begin + _A_BLOCK, stop), steps, values, relative_error, actions)
    return undecided


@compiled
def _maximise(begin: int, end: int, steps: Steps, values: Parts, relative_error: float, actions: Flags) -> int:
    successors, states, codes = steps
    numbers, residues, magnitudes, units, unit_residues, gamma, gamma_residue = values
    known, floor = len(residues) > 0, _UNDERFLOW if relative_error > 0 else 0.0
    undecided = 0
    for pair in range(begin, end):
        state = states[pair]
        best, chosen = _best_action(pair, successors, state, codes, units, gamma, numbers)
        code, successor = codes[state, chosen], successors[pair, chosen]
        best_residue = _residue(successor, unit_residues[code], gamma_residue, residues) if known else _ONE
        best_magnitude = _magnitude(successor, units[code], gamma, magnitudes, best)
        largest = best_magnitude
        for action in range(successors.shape[1]):
            code, successor = codes[state, action], successors[pair, action]
            number = _number(successor, units[code], gamma, numbers)
            residue = _residue(successor, unit_residues[code], gamma_residue, residues) if known else _ONE
            magnitude = _magnitude(successor, units[code], gamma, magnitudes, number)
            rounding = relative_error * (best_magnitude + magnitude) + floor
            comparison = _comparison(best, number, rounding, known, best_residue, residue)
            actions[pair, action] = comparison != BELOW
            undecided += comparison == UNDECIDED
            largest = max(largest, magnitude)
        numbers[pair] = best
        if known:
            residues[pair] = best_residue
        if len(magnitudes):
            magnitudes[pair] = largest
    return undecided


@compiled_parallel
def average(start: int, stop: int, steps: Steps, values: Parts, policy: Floats, share_residue: Any) -> None:
    """V_t(s) = sum_a pi(a | s) (r + gamma V_{t+1}(s')); a policy of no rows is uniform, 1 / A = share_residue."""
    successors, states, codes = steps
    _, _, _, units, unit_residues, gamma, gamma_residue = values
    numbers = values.numbers
    residues = values.residues
    magnitudes = values.magnitudes
    num_actions = successors.shape[1]
    for pair in prange(start, stop):
        state = states[pair]
        total, magnitude, residue = 0.0, 0.0, np.uint64(0)
        for action in range(num_actions):
            code, successor = codes[state, action], successors[pair, action]
            weight = policy[state, action] if len(policy) else 1.0
            number = _number(successor, units[code], gamma, numbers)
            total += weight * number
            if len(residues):
                residue = plus(residue, _residue(successor, unit_residues[code], gamma_residue, residues))
            if len(magnitudes):
                magnitude += weight * _magnitude(successor, units[code], gamma, magnitudes, number)
        numbers[pair] = total if len(policy) else total / num_actions
        if len(residues):
            residues[pair] = times(share_residue, residue)
        if len(magnitudes):
            magnitudes[pair] = magnitude if len(policy) else magnitude / num_actions


@compiled_parallel
def greedy_sweep(
    start: int, stop: int, steps: Steps, values: Parts, relative_error: float, optimal: Optimum, greed: Greed,
    by_gap: bool,
) -> None:  # fmt: skip
    """One layer of Q' = QVI(Q): Q'_t(s, a) = r + gamma V_{t+1}(s'), then V_t(s) = max_a Q'_t(s, a) in place.

    `here` marks the pairs of this layer that a greedy policy can reach, `following` those of the next. Written for
    each pair of the layer: `verdict`, whether all its greedy actions are optimal; and if there is room for them, where
    an optimal policy passes, `hardness`, max Q' V* / gap^2, rounded up, infinite where floats cannot tell the gap
    from 0, and 0 where there is no gap, and `least`, the smallest Q' of an optimal action; where a greedy policy comes
    by, `risk`, max Q' V* / (max Q' - the largest Q' of an action that is not optimal)^2, 0 where every action is
    optimal; and `mistake`, the same where an optimal policy passes, infinite where an action that is not optimal may
    have the largest Q'. With `by_gap`, 1 stands in the place of Q' V* in all of them: where rewards are negative, it
    says nothing about the returns.
    """
    for block in prange(-(-(stop - start) // _A_BLOCK)):
        begin = start + block * _A_BLOCK
        end = min(begin + _A_BLOCK, stop)
        _greedy_sweep(begin, end, steps, values, relative_error, optimal, greed, by_gap)


@compiled
def _greedy_sweep(
    begin: int, end: int, steps: Steps, values: Parts, relative_error: float, optimal: Optimum, greed: Greed,
    by_gap: bool,
) -> None:  # fmt: skip
    successors, states, codes = steps
    numbers, residues, magnitudes, units, unit_residues, gamma, gamma_residue = values
    optimal_numbers, optimal_actions, optimal_reached = optimal
    start, stop, greedy, greedy_next, verdict, hardness, least, risk, mistake = greed
    known, signed, with_gaps = len(residues) > 0, len(magnitudes) > 0, len(hardness) > 0
    floor = _UNDERFLOW if relative_error > 0 else 0.0
    for pair in range(begin, end):
        place, state = pair - start, states[pair]
        best, chosen = _best_action(pair, successors, state, codes, units, gamma, numbers)
        code, successor = codes[state, chosen], successors[pair, chosen]
        best_residue = _residue(successor, unit_residues[code], gamma_residue, residues) if known else _ONE
        best_magnitude = _magnitude(successor, units[code], gamma, magnitudes, best)
        largest, gap, margin, smallest = best_magnitude, np.inf, np.inf, np.inf
        uncertain, failed = False, False
        measured = with_gaps and optimal_reached[pair]
        for action in range(successors.shape[1] if measured or signed or greedy[place] else 0):
            code, successor = codes[state, action], successors[pair, action]
            number = _number(successor, units[code], gamma, numbers)
            residue = _residue(successor, unit_residues[code], gamma_residue, residues) if known else _ONE
            magnitude = _magnitude(successor, units[code], gamma, magnitudes, number)
            rounding = relative_error * (best_magnitude + magnitude) + floor
            comparison = _comparison(best, number, rounding, known, best_residue, residue)
            largest = max(largest, magnitude)
            if optimal_actions[pair, action]:
                smallest = min(smallest, float(number))
            else:
                margin = min(margin, best - number - rounding)
            if comparison == BELOW:
                gap = min(gap, best - number - rounding)
                continue
            uncertain = uncertain or comparison == UNDECIDED
            if greedy[place]:
                failed = failed or not optimal_actions[pair, action]
                if successor >= 0:
                    greedy_next[successor - stop] = 1  # the next layer begins where this one ends
        verdict[place] = SOUND if not failed else UNCERTAIN if uncertain else FAILED
        if with_gaps:
            value = optimal_numbers[pair]
            least[place] = smallest if measured and value > 0 else np.inf
            hardness[place] = 0.0
            if measured and uncertain:
                hardness[place] = np.inf
            elif measured and gap < np.inf:
                hardness[place] = 1 / gap / gap if by_gap else (best / gap) * (value / gap)
            ratio = 0.0 if margin == np.inf else np.inf
            if 0 < margin < np.inf:
                ratio = 1 / margin / margin if by_gap else (best / margin) * (value / margin)
            risk[place] = ratio if greedy[place] and margin > 0 else 0.0
            mistake[place] = ratio if measured else 0.0
        numbers[pair] = best
        if known:
            residues[pair] = best_residue
        if signed:
            magnitudes[pair] = largest


@compiled_parallel
def mark_reached(start: int, stop: int, successors: Integers, actions: Flags, reached: Flags) -> None:
    """Mark what the given actions of marked pairs lead to."""
    for pair in prange(start, stop):
        if reached[pair]:
            for action in range(successors.shape[1]):
                if actions[pair, action] and successors[pair, action] >= 0:
                    reached[successors[pair, action]] = True


@compiled_parallel
def optimal_probability(
    start: int, stop: int, successors: Integers, states: Integers, policy: Floats, optimal_actions: Flags, out: Floats
) -> None:
    """p_t(s) = sum over optimal a of pi(a | s) p_{t+1}(s')."""
    num_actions = successors.shape[1]
    for pair in prange(start, stop):
        total = 0.0
        for action in range(num_actions):
            if optimal_actions[pair, action]:
                weight = policy[states[pair], action] if len(policy) else 1.0 / num_actions
                successor = successors[pair, action]
                total += weight * (out[successor] if successor >= 0 else 1.0)
        out[pair] = total


@compiled
def spread(start: int, stop: int, successors: Integers, states: Integers, policy: Floats, occupancy: Floats) -> None:
    """mu_{t+1}(s') += mu_t(s) pi(a | s). In sequence: two pairs can lead to one."""
    num_actions = successors.shape[1]
    for pair in range(start, stop):
        for action in range(num_actions):
            successor = successors[pair, action]
            if successor >= 0:
                weight = policy[states[pair], action] if len(policy) else 1.0 / num_actions
                occupancy[successor] += occupancy[pair] * weight


@compiled
def used_rewards(states: Integers, codes: Integers, used: Flags) -> None:
    """Mark the reward codes of the given states."""
    for i in range(len(states)):
        for action in range(codes.shape[1]):
            used[codes[states[i], action]] = True
