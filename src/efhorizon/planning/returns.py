"""The law of the return-to-go under an exploration policy, from any reachable (time, state) pair.

    X_t(s) = R(s, a) + gamma X_{t+1}(f(s, a)),   a ~ pi_t(. | s),   X_T = 0

Without discount, and where rewards have a unit, returns are integers in that unit: laws are arrays on this lattice,
mixed backward layer by layer (`return_laws`). Pairs with the same law by construction share one array. Moments need no
lattice (`return_moments`). All sums are of nonnegative terms, so each probability, mean above the least return and
variance is right to a relative `relative_error`, however small it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import ArrayLike, NDArray

from efhorizon.errors import EfhorizonError
from efhorizon.planning._threads import on_layer
from efhorizon.planning.policies import ExplorationPolicy, exploration_policy
from efhorizon.planning.rewards import ROUNDING, reward_scale
from efhorizon.planning.timeline import Timeline

MAX_POINTS = 1 << 26  # lattice points of one layer's laws: 512 MB
MAX_KEPT_POINTS = 1 << 30  # of all laws kept: 8 GB
_ENDED = 0  # the class of an episode that is over: it returns 0


class NoLatticeError(EfhorizonError):
    """Returns have no lattice, or one too large to hold."""


@dataclass(frozen=True)
class ReturnLaws:
    """L distinct laws. Law l gives probability mass[starts[l] + i] to the return offsets[l] + i, in reward units."""

    index: NDArray[np.int64]  # [N], the law of each pair asked for
    starts: NDArray[np.int64]  # [L + 1]
    offsets: NDArray[np.int64]  # [L], the least return; the last entry of a law belongs to the largest
    mass: NDArray[np.float64]
    unit: Fraction
    relative_error: float  # of each probability

    def law(self, pair: int) -> tuple[int, NDArray[np.float64]]:
        """Least return and probabilities of one of the pairs asked for."""
        law = self.index[pair]
        return int(self.offsets[law]), self.mass[self.starts[law] : self.starts[law + 1]]

    def part(self, laws: NDArray[Any]) -> ReturnLaws:
        """Only these laws, which may be given several times."""
        distinct, index = np.unique(laws, return_inverse=True)
        starts, offsets, mass = _selected((self.starts, self.offsets, self.mass), distinct)
        return ReturnLaws(index, starts, offsets, mass, self.unit, self.relative_error)

    def moments(self) -> ReturnMoments:
        """Moments of the laws of the pairs asked for; the third absolute one is exact."""
        columns = np.empty((8, len(self.offsets)))
        _law_moments(self.starts, self.offsets, self.mass, columns)
        least, largest, above, below, variance, third, fourth, two_point = columns[:, self.index]
        return ReturnMoments(least, largest, above, below, variance, third, fourth, two_point > 0, self.relative_error)


@dataclass(frozen=True)
class ReturnMoments:
    """Moments of the return-to-go of N pairs, in reward units."""

    least: NDArray[np.float64]  # [N], alpha in Appendix C: the least return of positive probability
    largest: NDArray[np.float64]  # [N], beta
    above: NDArray[np.float64]  # [N], mean - least, kept apart because it can be 1e-11
    below: NDArray[np.float64]  # [N], largest - mean
    variance: NDArray[np.float64]  # [N]
    third_absolute: NDArray[np.float64]  # [N], E|X - mean|^3, or an upper bound of it
    fourth: NDArray[np.float64]  # [N], E(X - mean)^4
    two_point: NDArray[np.bool_]  # [N], whether only the least and the largest return occur
    relative_error: float

    @property
    def mean(self) -> NDArray[np.float64]:
        return self.least + self.above


def relative_error(timeline: Timeline) -> float:
    """Bound on the relative rounding error of a nonnegative sum over all times and actions."""
    return (timeline.mdp.horizon + 1) * (timeline.mdp.num_actions + 8) * ROUNDING


def return_moments(
    timeline: Timeline,
    pairs: ArrayLike,
    policy: ArrayLike | ExplorationPolicy | None = None,
    *,
    gamma: float = 1.0,
) -> ReturnMoments:
    """Moments of the return-to-go from some pairs (-1: an episode that is over), by recursion of central moments.

    With weights w, component means mu_i, variances v_i and d_i = mu_i - mu: v = sum w (v_i + d_i^2), and likewise up to
    the fourth. E|Y|^3 has no recursion: it is at most sqrt(E Y^2 E Y^4), and at most max|Y| E Y^2.
    """
    mdp = timeline.mdp
    scale = reward_scale(mdp, gamma=gamma)
    explorer = exploration_policy(mdp, policy)
    wanted = np.asarray(pairs, np.int64)
    columns = np.zeros((8, len(wanted)))
    columns[7, wanted < 0] = 1
    units = scale.units.astype(np.float64)
    following = np.zeros((8, 0))
    for time in reversed(range(mdp.horizon)):
        layer = timeline.layer(time)
        current = np.empty((8, layer.stop - layer.start))
        arrays = (timeline.successors, timeline.states, mdp.reward_codes, units)
        on_layer(_mix_moments, layer, *arrays, scale.discount, explorer.at(time), following, current)
        here = np.flatnonzero((wanted >= layer.start) & (wanted < layer.stop))
        columns[:, here] = current[:, wanted[here] - layer.start]
        following = current
    least, largest, above, below, variance, _, fourth, two_point = columns
    span = np.where(above + below > 0, above + below, 1.0)
    exact = variance * (above**2 + below**2) / span  # p q (p^2 + q^2) C^3 of a law on two points C apart
    bound = np.minimum(np.sqrt(variance) * np.sqrt(fourth), variance * np.maximum(above, below))
    third = np.where(two_point > 0, exact, bound)
    return ReturnMoments(least, largest, above, below, variance, third, fourth, two_point > 0, relative_error(timeline))


def return_laws(
    timeline: Timeline,
    pairs: ArrayLike,
    policy: ArrayLike | ExplorationPolicy | None = None,
    *,
    gamma: float = 1.0,
    max_points: int = MAX_POINTS,
) -> ReturnLaws:
    """Laws of the return-to-go from some pairs (-1: an episode that is over) on the reward lattice."""
    mdp = timeline.mdp
    scale = reward_scale(mdp, gamma=gamma)
    if gamma != 1.0:
        raise NoLatticeError(f"discounted returns (gamma = {gamma}) lie on no lattice")
    if not scale.exact:
        raise NoLatticeError("rewards have no common unit, so returns lie on no lattice")
    explorer = exploration_policy(mdp, policy)
    wanted = np.asarray(pairs, np.int64)
    needed = np.zeros(timeline.num_pairs, np.bool_)
    needed[wanted[wanted >= 0]] = True
    for time in range(mdp.horizon):
        layer = timeline.layer(time)
        _mark_descendants(layer.start, layer.stop, timeline.successors, needed)

    classes = np.zeros(timeline.num_pairs, np.int32)  # within a layer
    following = (np.array([0, 1]), np.zeros(1, np.int64), np.ones(1))  # class 0: the episode is over
    index = np.zeros(len(wanted), np.int64)
    kept = [following]
    num_kept, num_points = 1, 1
    for time in reversed(range(mdp.horizon)):
        layer = timeline.layer(time)
        here = np.flatnonzero(needed[layer]) + layer.start
        rows, classes[here] = _classes(timeline, explorer, time, here, classes, scale.units)
        following = _layer_laws(timeline, explorer, time, rows, classes, scale.units, following, max_points)
        asked = np.flatnonzero((wanted >= layer.start) & (wanted < layer.stop))
        own = classes[wanted[asked]]
        distinct = np.unique(own[own != _ENDED])
        index[asked] = np.where(own == _ENDED, 0, num_kept + np.searchsorted(distinct, own))
        if len(distinct):
            kept.append(_selected(following, distinct))
            num_kept, num_points = num_kept + len(distinct), num_points + int(kept[-1][0][-1])
        if num_points > MAX_KEPT_POINTS:
            raise NoLatticeError(f"laws of returns need {num_points} lattice points, more than {MAX_KEPT_POINTS}")
    return ReturnLaws(index, *_joined(kept), scale.unit, relative_error(timeline))


def _classes(
    timeline: Timeline,
    explorer: ExplorationPolicy,
    time: int,
    pairs: NDArray[np.int64],
    classes: NDArray[np.int32],
    units: NDArray[Any],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs that mix the same laws after the same rewards with the same weights: one pair a class, and every class."""
    if not len(pairs):
        return pairs, pairs
    states, successors = timeline.states[pairs], timeline.successors[pairs]
    child = np.where(successors >= 0, classes[successors], _ENDED).astype(np.int64)
    codes = timeline.mdp.reward_codes[states]
    keys = child * len(units) + codes
    over = ((child == _ENDED) & (units[codes] == 0)).all(axis=1)  # pays nothing any more: as good as ended
    if explorer.is_uniform:
        keys.sort(axis=1)
    else:
        keys = np.hstack([keys, explorer.at(time)[states].view(np.int64)])
    first, number = _distinct_rows(keys[~over])
    found = np.full(len(pairs), _ENDED, np.int64)
    found[~over] = number + 1
    return pairs[~over][first], found


def _distinct_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of each sort of equal rows, and the sort of every row. By hashes, which is quick; they are checked."""
    _, first, number = np.unique(_row_hashes(rows), return_index=True, return_inverse=True)
    if not np.array_equal(rows[first[number]], rows):
        _, first, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, number.ravel()


_Laws = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # starts, offsets, mass


def _layer_laws(
    timeline: Timeline,
    explorer: ExplorationPolicy,
    time: int,
    pairs: NDArray[np.int64],
    classes: NDArray[np.int32],
    units: NDArray[Any],
    following: _Laws,
    max_points: int,
) -> _Laws:
    """Laws of the classes of one layer, which these pairs stand for; class 0 comes first."""
    arrays = (timeline.successors, timeline.states, timeline.mdp.reward_codes, units, explorer.at(time), classes)
    bounds = np.zeros((2, len(pairs) + 1), np.int64)
    _supports(pairs, *arrays, following[0], following[1], bounds)
    starts = np.concatenate([[0], np.cumsum(bounds[1] - bounds[0] + 1)])
    if starts[-1] > max_points:
        raise NoLatticeError(f"laws of returns at time {time} need {starts[-1]} lattice points, more than {max_points}")
    mass = np.zeros(int(starts[-1]))
    mass[0] = 1.0
    on_layer(_mix_laws, slice(0, len(pairs)), pairs, *arrays, *following, starts, bounds[0], mass)
    return starts, bounds[0], mass


def _selected(laws: _Laws, chosen: NDArray[Any]) -> _Laws:
    starts, offsets, mass = laws
    lengths = starts[chosen + 1] - starts[chosen]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return ends, offsets[chosen], mass[concatenated_ranges(starts[chosen], lengths)]


def _joined(parts: list[_Laws]) -> _Laws:
    """One after the other. The parts are given up on the way, for there is not room for all laws twice."""
    starts = np.zeros(1 + sum(len(part[1]) for part in parts), np.int64)
    offsets = np.empty(len(starts) - 1, np.int64)
    mass = np.empty(sum(int(part[0][-1]) for part in parts))
    law = place = 0
    while parts:
        own_starts, own_offsets, own_mass = parts.pop(0)
        stop = law + len(own_offsets)
        starts[law + 1 : stop + 1] = own_starts[1:] + place
        offsets[law:stop] = own_offsets
        mass[place : place + len(own_mass)] = own_mass
        law, place = stop, place + len(own_mass)
    return starts, offsets, mass


def concatenated_ranges(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """begins[0], begins[0] + 1, ... (lengths[0] of them), begins[1], ..."""
    ends = np.cumsum(lengths)
    places: NDArray[np.int64] = np.arange(lengths.sum()) + np.repeat(begins - (ends - lengths), lengths)
    return places


@njit(cache=True)
def _row_hashes(rows):  # type: ignore[no-untyped-def]
    hashes = np.zeros(len(rows), np.uint64)
    for i in range(len(rows)):
        mixed = np.uint64(0)
        for j in range(rows.shape[1]):
            mixed = (mixed ^ np.uint64(rows[i, j])) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        hashes[i] = mixed
    return hashes


@njit(cache=True)
def _mark_descendants(start, stop, successors, needed):  # type: ignore[no-untyped-def]
    for pair in range(start, stop):
        if needed[pair]:
            for action in range(successors.shape[1]):
                if successors[pair, action] >= 0:
                    needed[successors[pair, action]] = True


@njit(cache=True)
def _supports(pairs, successors, states, codes, units, weights, classes, starts, offsets, out):  # type: ignore[no-untyped-def]
    """Least and largest return of each class; out[:, 0] stays 0."""
    for i in range(len(pairs)):
        pair = pairs[i]
        first = True
        for action in range(successors.shape[1]):
            if len(weights) and weights[states[pair], action] == 0:
                continue
            child = classes[successors[pair, action]] if successors[pair, action] >= 0 else 0
            low = units[codes[states[pair], action]] + offsets[child]
            high = low + starts[child + 1] - starts[child] - 1
            if first or low < out[0, i + 1]:
                out[0, i + 1] = low
            if first or high > out[1, i + 1]:
                out[1, i + 1] = high
            first = False


@njit(cache=True, parallel=True)
def _mix_laws(  # type: ignore[no-untyped-def]
    first,
    last,
    pairs,
    successors,
    states,
    codes,
    units,
    weights,
    classes,
    starts,
    offsets,
    mass,
    new_starts,
    new_offsets,
    out,
):
    num_actions = successors.shape[1]
    for i in prange(first, last):
        pair = pairs[i]
        for action in range(num_actions):
            weight = weights[states[pair], action] if len(weights) else 1.0 / num_actions
            if weight == 0:
                continue
            child = classes[successors[pair, action]] if successors[pair, action] >= 0 else 0
            shift = units[codes[states[pair], action]] + offsets[child] - new_offsets[i + 1]
            place = new_starts[i + 1] + shift - starts[child]
            for j in range(starts[child], starts[child + 1]):
                out[place + j] += weight * mass[j]


@njit(cache=True, parallel=True)
def _mix_moments(start, stop, successors, states, codes, units, gamma, weights, following, out):  # type: ignore[no-untyped-def]
    """Rows: least, largest, mean - least, largest - mean, central moments 2 to 4, whether only two returns occur."""
    num_actions = successors.shape[1]
    for i in prange(stop - start):
        pair = start + i
        parts = np.zeros((8, num_actions))
        shares = np.zeros(num_actions)
        count = 0
        least, largest = np.inf, -np.inf
        for action in range(num_actions):
            weight = weights[states[pair], action] if len(weights) else 1.0 / num_actions
            if weight == 0:
                continue
            shares[count] = weight
            successor = successors[pair, action]
            reward = units[codes[states[pair], action]]
            if successor >= 0:
                child = successor - stop  # the next layer begins where this one stops
                factor = 1.0
                for row in range(2, 7):
                    if row != 3:
                        factor *= gamma
                    parts[row, count] = factor * following[row, child]
                parts[0, count] = reward + gamma * following[0, child]
                parts[1, count] = reward + gamma * following[1, child]
                parts[7, count] = following[7, child]
            else:
                parts[0, count] = parts[1, count] = reward
                parts[7, count] = 1.0
            least, largest = min(least, parts[0, count]), max(largest, parts[1, count])
            count += 1
        above = below = 0.0
        two = 1.0
        for j in range(count):
            above += shares[j] * (parts[0, j] - least + parts[2, j])
            below += shares[j] * (largest - parts[1, j] + parts[3, j])
            for row in range(2):
                if parts[row, j] != least and parts[row, j] != largest:
                    two = 0.0
            two = min(two, parts[7, j])
        second = third = fourth = 0.0
        for j in range(count):
            d = parts[0, j] - least + parts[2, j] - above
            v, c = parts[4, j], parts[5, j]
            second += shares[j] * (v + d * d)
            third += shares[j] * (c + 3 * v * d + d**3)
            fourth += shares[j] * (parts[6, j] + 4 * c * d + 6 * v * d * d + d**4)
        out[0, i], out[1, i], out[2, i], out[3, i] = least, largest, above, below
        out[4, i], out[5, i], out[6, i], out[7, i] = second, third, max(fourth, second * second), two


@njit(cache=True)
def _law_moments(starts, offsets, mass, out):  # type: ignore[no-untyped-def]
    for law in range(len(offsets)):
        start, stop = starts[law], starts[law + 1]
        above = below = second = third = fourth = 0.0
        two = 1.0
        for j in range(start, stop):
            above += mass[j] * (j - start)
            below += mass[j] * (stop - 1 - j)
            if start < j < stop - 1 and mass[j] > 0:
                two = 0.0
        for j in range(start, stop):
            # from the nearer end, so that a mean of 1e-11 above the least return keeps its digits
            d = abs((j - start) - above) if above <= below else abs((stop - 1 - j) - below)
            second += mass[j] * d**2
            third += mass[j] * d**3
            fourth += mass[j] * d**4
        out[0, law], out[1, law] = offsets[law], offsets[law] + stop - start - 1
        out[2, law], out[3, law], out[4, law] = above, below, second
        out[5, law], out[6, law], out[7, law] = third, fourth, two
