"""Private numba kernels over one layer of a timeline: the pairs start .. stop - 1, all of one time.

Legend: P pairs, A actions, R distinct rewards. A value is kept in up to three arrays [P]: the number itself, its
residue modulo the prime of `rewards.py` (length 0 where there is none: integers are exact, and given policies are
rounded), and its magnitude, the same sum of absolute rewards, to which rounding errors are relative (length 0 where no
reward is negative: the value is its own magnitude).
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from efhorizon.planning.rewards import PRIME

_PRIME = np.uint64(PRIME)
_ONE = np.uint64(1)
_LOW_31 = np.uint64(2**31 - 1)
_LOW_30 = np.uint64(2**30 - 1)
_S30, _S31, _S61 = np.uint64(30), np.uint64(31), np.uint64(61)
_UNDERFLOW = 1e-290  # below, float64 keeps no relative precision over many steps

BELOW, TIED, UNDECIDED = 0, 1, 2  # how a value compares with the largest one
SOUND, FAILED, UNCERTAIN = 0, 1, 2  # whether all greedy actions of a pair are optimal


@njit(cache=True)
def _plus(x, y):  # type: ignore[no-untyped-def]
    total = x + y
    return total - _PRIME if total >= _PRIME else total


@njit(cache=True)
def _times(x, y):  # type: ignore[no-untyped-def]
    """Product modulo 2^61 - 1 in 64-bit words: x and y are cut at 31 bits, and 2^61 counts as 1."""
    if x == _ONE:
        return y
    x_high, x_low, y_high, y_low = x >> _S31, x & _LOW_31, y >> _S31, y & _LOW_31
    middle = x_high * y_low + x_low * y_high
    total = (x_high * y_high << _ONE) + (middle >> _S30) + ((middle & _LOW_30) << _S31) + x_low * y_low
    total = (total & _PRIME) + (total >> _S61)
    return total - _PRIME if total >= _PRIME else total


@njit(cache=True)
def _number(successor, unit, gamma, values):  # type: ignore[no-untyped-def]
    return unit + gamma * values[successor] if successor >= 0 else unit


@njit(cache=True)
def _residue(successor, unit, gamma, residues):  # type: ignore[no-untyped-def]
    return _plus(unit, _times(gamma, residues[successor])) if successor >= 0 else unit


@njit(cache=True)
def _magnitude(successor, unit, gamma, magnitudes, number):  # type: ignore[no-untyped-def]
    if not len(magnitudes):
        return abs(float(number))
    return abs(float(unit)) + gamma * magnitudes[successor] if successor >= 0 else abs(float(unit))


@njit(cache=True)
def _comparison(best, number, rounding, known, best_residue, residue):  # type: ignore[no-untyped-def]
    if best - number > rounding:
        return BELOW
    return UNDECIDED if known and best_residue != residue else TIED


@njit(cache=True, parallel=True)
def maximise(  # type: ignore[no-untyped-def]
    start, stop, successors, states, codes, scale, relative_error, values, residues, magnitudes, actions
):
    """V_t(s) = max_a r + gamma V_{t+1}(s'), and which actions attain it. Returns how many ties are undecided."""
    units, unit_residues, gamma, gamma_residue = scale
    known, floor = len(residues) > 0, _UNDERFLOW if relative_error > 0 else 0.0
    undecided = 0
    for pair in prange(start, stop):
        state = states[pair]
        best = _number(successors[pair, 0], units[codes[state, 0]], gamma, values)
        best_action = 0
        for action in range(1, successors.shape[1]):
            number = _number(successors[pair, action], units[codes[state, action]], gamma, values)
            if number > best:
                best, best_action = number, action
        code, successor = codes[state, best_action], successors[pair, best_action]
        best_residue = _residue(successor, unit_residues[code], gamma_residue, residues) if known else _ONE
        best_magnitude = _magnitude(successor, units[code], gamma, magnitudes, best)
        largest = best_magnitude
        for action in range(successors.shape[1]):
            code, successor = codes[state, action], successors[pair, action]
            number = _number(successor, units[code], gamma, values)
            residue = _residue(successor, unit_residues[code], gamma_residue, residues) if known else _ONE
            magnitude = _magnitude(successor, units[code], gamma, magnitudes, number)
            rounding = relative_error * (best_magnitude + magnitude) + floor
            comparison = _comparison(best, number, rounding, known, best_residue, residue)
            actions[pair, action] = comparison != BELOW
            undecided += comparison == UNDECIDED
            largest = max(largest, magnitude)
        values[pair] = best
        if known:
            residues[pair] = best_residue
        if len(magnitudes):
            magnitudes[pair] = largest
    return undecided


@njit(cache=True, parallel=True)
def average(  # type: ignore[no-untyped-def]
    start, stop, successors, states, codes, scale, policy, share_residue, values, residues, magnitudes
):
    """V_t(s) = sum_a pi(a | s) (r + gamma V_{t+1}(s')); a policy of no rows is uniform, 1 / A = share_residue."""
    units, unit_residues, gamma, gamma_residue = scale
    num_actions = successors.shape[1]
    for pair in prange(start, stop):
        state = states[pair]
        total, magnitude, residue = 0.0, 0.0, np.uint64(0)
        for action in range(num_actions):
            code, successor = codes[state, action], successors[pair, action]
            weight = policy[state, action] if len(policy) else 1.0
            number = _number(successor, units[code], gamma, values)
            total += weight * number
            if len(residues):
                residue = _plus(residue, _residue(successor, unit_residues[code], gamma_residue, residues))
            if len(magnitudes):
                magnitude += weight * _magnitude(successor, units[code], gamma, magnitudes, number)
        values[pair] = total if len(policy) else total / num_actions
        if len(residues):
            residues[pair] = _times(share_residue, residue)
        if len(magnitudes):
            magnitudes[pair] = magnitude if len(policy) else magnitude / num_actions


@njit(cache=True, parallel=True)
def greedy_sweep(  # type: ignore[no-untyped-def]
    start,
    stop,
    successors,
    states,
    codes,
    scale,
    relative_error,
    values,
    residues,
    magnitudes,
    optimal,
    optimal_actions,
    optimal_reached,
    with_gaps,
    by_gap,
    greedy,
    greedy_next,
    verdict,
    hardness,
    least,
    risk,
):
    """One layer of Q' = QVI(Q): Q'_t(s, a) = r + gamma V_{t+1}(s'), then V_t(s) = max_a Q'_t(s, a) in place.

    `greedy` marks the pairs of this layer that a greedy policy can reach, `greedy_next` those of the next. Written for
    each pair of the layer: `verdict`, whether all its greedy actions are optimal; and if `with_gaps`, where an optimal
    policy comes by, `hardness`, max Q' V* / gap^2, rounded up, infinite where floats cannot tell the gap from 0, and 0
    where there is no gap, and `least`, the smallest Q' of an optimal action; where a greedy policy comes by, `risk`,
    max Q' V* / (max Q' - the largest Q' of an action that is not optimal)^2, 0 where every action is optimal. With
    `by_gap`, 1 stands in the place of Q' V* in both: where rewards are negative, it says nothing about the returns.
    """
    units, unit_residues, gamma, gamma_residue = scale
    known, signed = len(residues) > 0, len(magnitudes) > 0
    floor = _UNDERFLOW if relative_error > 0 else 0.0
    for pair in prange(start, stop):
        place, state = pair - start, states[pair]
        best = _number(successors[pair, 0], units[codes[state, 0]], gamma, values)
        best_action = 0
        for action in range(1, successors.shape[1]):
            number = _number(successors[pair, action], units[codes[state, action]], gamma, values)
            if number > best:
                best, best_action = number, action
        code, successor = codes[state, best_action], successors[pair, best_action]
        best_residue = _residue(successor, unit_residues[code], gamma_residue, residues) if known else _ONE
        best_magnitude = _magnitude(successor, units[code], gamma, magnitudes, best)
        largest, gap, margin, smallest = best_magnitude, np.inf, np.inf, np.inf
        uncertain, failed = False, False
        measured = with_gaps and optimal_reached[pair]
        for action in range(successors.shape[1] if measured or signed or greedy[place] else 0):
            code, successor = codes[state, action], successors[pair, action]
            number = _number(successor, units[code], gamma, values)
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
            least[place] = smallest if measured and optimal[pair] > 0 else np.inf
            hardness[place] = 0.0
            if measured and uncertain:
                hardness[place] = np.inf
            elif measured and gap < np.inf:
                hardness[place] = 1 / gap / gap if by_gap else (best / gap) * (optimal[pair] / gap)
            risk[place] = 0.0
            if greedy[place] and 0 < margin < np.inf:
                risk[place] = 1 / margin / margin if by_gap else (best / margin) * (optimal[pair] / margin)
        values[pair] = best
        if known:
            residues[pair] = best_residue
        if signed:
            magnitudes[pair] = largest


@njit(cache=True, parallel=True)
def mark_reached(start, stop, successors, actions, reached):  # type: ignore[no-untyped-def]
    """Mark what the given actions of marked pairs lead to."""
    for pair in prange(start, stop):
        if reached[pair]:
            for action in range(successors.shape[1]):
                if actions[pair, action] and successors[pair, action] >= 0:
                    reached[successors[pair, action]] = True


@njit(cache=True, parallel=True)
def optimal_probability(start, stop, successors, states, policy, optimal_actions, out):  # type: ignore[no-untyped-def]
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


@njit(cache=True)
def spread(start, stop, successors, states, policy, occupancy):  # type: ignore[no-untyped-def]
    """mu_{t+1}(s') += mu_t(s) pi(a | s). In sequence: two pairs can lead to one."""
    num_actions = successors.shape[1]
    for pair in range(start, stop):
        for action in range(num_actions):
            successor = successors[pair, action]
            if successor >= 0:
                weight = policy[states[pair], action] if len(policy) else 1.0 / num_actions
                occupancy[successor] += occupancy[pair] * weight


@njit(cache=True)
def used_rewards(states, codes, used):  # type: ignore[no-untyped-def]
    """Mark the reward codes of the given states."""
    for i in range(len(states)):
        for action in range(codes.shape[1]):
            used[codes[states[i], action]] = True
