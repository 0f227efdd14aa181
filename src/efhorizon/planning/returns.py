"""The distribution of the return-to-go under an exploration policy, from any reachable (time, state) pair.

    X_t(s) = R(s, a) + gamma X_{t+1}(f(s, a)),   a ~ pi_t(. | s),   X_T = 0

Where rewards have a unit, returns are integers in the units of `return_units.py`: distributions are arrays on this
lattice, mixed backward layer by layer. Pairs with the same distribution by construction share one array. All sums are
of nonnegative terms, so each probability is right to a relative `mixing_error`, however small it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.compiled import Flags, Floats, Integers, Words, compiled, compiled_parallel, prange
from efhorizon.planning.moments import Mixture, ReturnMoments, mixing_error
from efhorizon.planning.policies import ExplorationPolicy, exploration_policy
from efhorizon.planning.return_units import NoLatticeError, ReturnUnits, return_units
from efhorizon.planning.rewards import reward_scale
from efhorizon.planning.threads import on_layer
from efhorizon.planning.timeline import Timeline

MAX_POINTS = 1 << 26  # lattice points of one layer's distributions: 512 MB
MAX_KEPT_POINTS = 1 << 30  # of all distributions kept: 8 GB
_ENDED = 0  # the class of an episode that is over: it returns 0


class Lattice(NamedTuple):
    """D distributions. Number d gives probability mass[starts[d] + i] to the return offsets[d] + i, in return units."""

    starts: NDArray[np.int64]  # [D + 1]
    offsets: NDArray[np.int64]  # [D], the least return; the last entry of a distribution belongs to the largest
    mass: NDArray[np.float64]

    def part(self, chosen: NDArray[Any]) -> Lattice:
        """Only these distributions."""
        lengths = self.starts[chosen + 1] - self.starts[chosen]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return Lattice(starts, self.offsets[chosen], self.mass[concatenated_ranges(self.starts[chosen], lengths)])


@dataclass(frozen=True)
class ReturnDistributions:
    """The distributions of the returns of N pairs, each of D distinct ones kept once."""

    index: NDArray[np.int64]  # [N], the distribution of each pair asked for
    lattice: Lattice
    unit: Fraction  # of rewards
    relative_error: float  # of each probability
    units: ReturnUnits  # those of each pair's time; without discount, that of rewards

    def of(self, pair: int) -> tuple[int, NDArray[np.float64]]:
        """Least return and probabilities of one of the pairs asked for."""
        starts, offsets, mass = self.lattice
        chosen = self.index[pair]
        return int(offsets[chosen]), mass[starts[chosen] : starts[chosen + 1]]

    def part(self, chosen: NDArray[Any]) -> ReturnDistributions:
        """Only these distributions, which may be given several times."""
        distinct, index = np.unique(chosen, return_inverse=True)
        return replace(self, index=index, lattice=self.lattice.part(distinct))

    def moments(self) -> ReturnMoments:
        """Moments of the returns of the pairs asked for, in their units; the third absolute one is exact."""
        columns = np.empty((8, len(self.lattice.offsets)))
        _lattice_moments(self.lattice, columns)
        least, largest, above, below, variance, third, fourth, two_point = columns[:, self.index]
        return ReturnMoments(least, largest, above, below, variance, third, fourth, two_point > 0, self.relative_error)


def return_distributions(
    timeline: Timeline,
    pairs: ArrayLike,
    policy: ArrayLike | ExplorationPolicy | None = None,
    *,
    gamma: float = 1.0,
    max_points: int = MAX_POINTS,
) -> ReturnDistributions:
    """Distributions of the return-to-go from some pairs (-1: an episode that is over) on the lattice of returns."""
    mdp = timeline.mdp
    scale = reward_scale(mdp, gamma=gamma)
    units = return_units(timeline, scale)
    step, steps = units.after(1), timeline.steps
    if step == 0:  # a discount of 0: what comes after does not count
        steps = steps._replace(successors=np.full_like(timeline.successors, -1))
    explorer = exploration_policy(mdp, policy)
    wanted = np.asarray(pairs, np.int64)
    needed = np.zeros(timeline.num_pairs, np.bool_)
    needed[wanted[wanted >= 0]] = True
    for time in range(mdp.horizon):
        layer = timeline.layer(time)
        _mark_descendants(layer.start, layer.stop, timeline.successors, needed)

    classes = np.zeros(timeline.num_pairs, np.int32)  # within a layer
    following = Lattice(np.array([0, 1]), np.zeros(1, np.int64), np.ones(1))  # class 0: the episode is over
    index = np.zeros(len(wanted), np.int64)
    kept = [following]
    num_kept, num_points = 1, 1
    for time in reversed(range(mdp.horizon)):
        layer = timeline.layer(time)
        here = np.flatnonzero(needed[layer]) + layer.start
        mixture = Mixture(*steps, units.at(time), explorer.at(time))
        rows, classes[here] = _classes(mixture, here, classes)
        following = _mixed(mixture, rows, classes, following, step, time, max_points)
        asked = np.flatnonzero((wanted >= layer.start) & (wanted < layer.stop))
        own = classes[wanted[asked]]
        distinct = np.unique(own[own != _ENDED])
        index[asked] = np.where(own == _ENDED, 0, num_kept + np.searchsorted(distinct, own))
        if len(distinct):
            kept.append(following.part(distinct))
            num_kept, num_points = num_kept + len(distinct), num_points + len(kept[-1].mass)
        if num_points > MAX_KEPT_POINTS:
            raise NoLatticeError(
                f"the distributions of returns need {num_points:,} points, more than {MAX_KEPT_POINTS:,}"
            )
    return ReturnDistributions(index, _joined(kept), scale.unit, mixing_error(timeline), units)


def _classes(
    mixture: Mixture, pairs: NDArray[np.int64], classes: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One pair of each class, and the class of every pair; alike are those that mix the same distributions after the
    same rewards with the same weights."""
    if not len(pairs):
        return pairs, pairs
    states, successors = mixture.states[pairs], mixture.successors[pairs]
    child = np.where(successors >= 0, classes[successors], _ENDED).astype(np.int64)
    codes = mixture.codes[states]
    keys = child * len(mixture.units) + codes
    over = ((child == _ENDED) & (mixture.units[codes] == 0)).all(axis=1)  # pays nothing any more: as good as ended
    if len(mixture.weights):
        keys = np.hstack([keys, mixture.weights[states].view(np.int64)])
    else:
        keys.sort(axis=1)
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


def _mixed(
    mixture: Mixture,
    pairs: NDArray[np.int64],
    classes: NDArray[np.int32],
    following: Lattice,
    step: int,
    time: int,
    max_points: int,
) -> Lattice:
    """Distributions of the classes of one layer, which these pairs stand for; class 0 comes first.

    A point of the lattice that follows is `step` points of this one: more than 1 with a discount p / q, p > 1.
    """
    bounds = np.zeros((2, len(pairs) + 1), np.int64)
    _supports(pairs, mixture, classes, following, step, bounds)
    starts = np.concatenate([[0], np.cumsum(bounds[1] - bounds[0] + 1)])
    if starts[-1] > max_points:
        raise NoLatticeError(
            f"the distributions of returns at time {time} need {starts[-1]:,} points, more than {max_points:,}"
        )
    result = Lattice(starts, bounds[0], np.zeros(int(starts[-1])))
    result.mass[0] = 1.0
    on_layer(_mix, slice(0, len(pairs)), pairs, mixture, classes, following, step, result)
    return result


def _joined(parts: list[Lattice]) -> Lattice:
    """One after the other. The parts are given up on the way, for there is not room for all of them twice."""
    starts = np.zeros(1 + sum(len(part.offsets) for part in parts), np.int64)
    offsets = np.empty(len(starts) - 1, np.int64)
    mass = np.empty(sum(len(part.mass) for part in parts))
    begin = place = 0
    while parts:
        part = parts.pop(0)
        stop = begin + len(part.offsets)
        starts[begin + 1 : stop + 1] = part.starts[1:] + place
        offsets[begin:stop] = part.offsets
        mass[place : place + len(part.mass)] = part.mass
        begin, place = stop, place + len(part.mass)
    return Lattice(starts, offsets, mass)


def concatenated_ranges(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """begins[0], begins[0] + 1, ... (lengths[0] of them), begins[1], ..."""
    ends = np.cumsum(lengths)
    places: NDArray[np.int64] = np.arange(lengths.sum()) + np.repeat(begins - (ends - lengths), lengths)
    return places


@compiled
def _row_hashes(rows: Integers) -> Words:
    hashes = np.zeros(len(rows), np.uint64)
    for i in range(len(rows)):
        mixed = np.uint64(0)
        for j in range(rows.shape[1]):
            mixed = (mixed ^ np.uint64(rows[i, j])) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        hashes[i] = mixed
    return hashes


@compiled
def _mark_descendants(start: int, stop: int, successors: Integers, needed: Flags) -> None:
    for pair in range(start, stop):
        if needed[pair]:
            for action in range(successors.shape[1]):
                if successors[pair, action] >= 0:
                    needed[successors[pair, action]] = True


@compiled
def _supports(
    pairs: Integers, mixture: Mixture, classes: Integers, following: Lattice, step: int, out: Integers
) -> None:
    """Least and largest return of each class; out[:, 0] stays 0."""
    successors, states, codes, units, weights = mixture
    starts, offsets = following.starts, following.offsets
    for i in range(len(pairs)):
        pair = pairs[i]
        first = True
        for action in range(successors.shape[1]):
            if len(weights) and weights[states[pair], action] == 0:
                continue
            child = classes[successors[pair, action]] if successors[pair, action] >= 0 else 0
            low = units[codes[states[pair], action]] + step * offsets[child]
            high = low + step * (starts[child + 1] - starts[child] - 1)
            if first or low < out[0, i + 1]:
                out[0, i + 1] = low
            if first or high > out[1, i + 1]:
                out[1, i + 1] = high
            first = False


@compiled_parallel
def _mix(
    begin: int, end: int, pairs: Integers, mixture: Mixture, classes: Integers, following: Lattice, step: int,
    out: Lattice,
) -> None:  # fmt: skip
    successors, states, codes, units, weights = mixture
    starts, offsets, mass = following
    new_starts, new_offsets, _ = out
    new_mass = out.mass
    num_actions = successors.shape[1]
    for i in prange(begin, end):
        pair = pairs[i]
        for action in range(num_actions):
            weight = weights[states[pair], action] if len(weights) else 1.0 / num_actions
            if weight == 0:
                continue
            child = classes[successors[pair, action]] if successors[pair, action] >= 0 else 0
            shift = units[codes[states[pair], action]] + step * offsets[child] - new_offsets[i + 1]
            place = new_starts[i + 1] + shift
            for j in range(starts[child], starts[child + 1]):
                new_mass[place + step * (j - starts[child])] += weight * mass[j]


@compiled
def _lattice_moments(lattice: Lattice, out: Floats) -> None:
    starts, offsets, mass = lattice
    for index in range(len(offsets)):
        start, stop = starts[index], starts[index + 1]
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
        out[0, index], out[1, index] = offsets[index], offsets[index] + stop - start - 1
        out[2, index], out[3, index], out[4, index] = above, below, second
        out[5, index], out[6, index], out[7, index] = third, fourth, two
