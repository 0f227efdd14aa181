"""The success probability of GORP(k, m) as a fraction, for the cases that floats cannot decide.

Success of exactly 1/2 is common in small MDPs: two actions whose rollouts all return 0 are drawn like a coin. The same
formulas as in `backward.py`, on Python integers. The cost grows fast with m and the number of sequences.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from efhorizon.gorp.decisions import Choices
from efhorizon.gorp.ties import Ties
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.return_units import return_units
from efhorizon.planning.returns import ReturnDistributions

MAX_WORK = 300_000  # lattice points times ties squared: a few seconds

_Distribution = dict[int, Fraction]  # value: probability


def affordable(choices: Choices, returns: ReturnDistributions, explorer: ExplorationPolicy, m: int) -> bool:
    """Whether the fraction can be had in seconds; only for the uniform policy, whose probabilities are rational."""
    if not explorer.is_uniform:
        return False
    spans = m * (np.diff(returns.lattice.starts)[returns.index] - 1) + 1
    sequences = choices.timeline.mdp.num_actions**choices.num_steps
    points = float(spans.sum()) * (1 + m * choices.timeline.mdp.horizon / 256)
    return bool(points * min(sequences, 1 << 20) ** 2 <= MAX_WORK)


def success_fraction(choices: Choices, m: int, ties: Ties = "uniform") -> Fraction:
    """The exact success probability with a uniform exploration policy."""
    timeline, units = choices.timeline, return_units(choices.timeline, choices.scale)
    share, step, last_step = Fraction(1, timeline.mdp.num_actions), units.after(1), units.after(choices.num_steps)

    @cache
    def return_distribution(pair: int) -> _Distribution:
        if pair < 0:
            return {0: Fraction(1)}
        rewards = units.at(timeline.time_of(pair))[timeline.mdp.reward_codes[timeline.states[pair]]]
        mixed: _Distribution = defaultdict(Fraction)
        for reward, successor in zip(rewards.tolist(), timeline.successors[pair].tolist(), strict=True):
            for value, probability in return_distribution(successor).items():
                mixed[reward + step * value] += share * probability
        return mixed

    @cache
    def sum_distribution(pair: int) -> _Distribution:
        discounted: _Distribution = defaultdict(Fraction)
        for value, probability in return_distribution(pair).items():
            discounted[last_step * value] += probability
        return _power(discounted, m)

    for pair in range(timeline.num_pairs - 1, -1, -1):  # successors first, so that no recursion runs deep
        return_distribution(pair)
    times = np.repeat(choices.times, np.diff(choices.group_starts))
    prefixes = units.sums(choices.group_prefixes, times).tolist()
    success = [Fraction(0)] * choices.num_choices
    for choice in reversed(range(choices.num_choices)):
        groups = range(int(choices.group_starts[choice]), int(choices.group_starts[choice + 1]))
        arms = range(int(choices.arm_starts[choice]), int(choices.arm_starts[choice + 1]))
        sums = [
            {m * prefixes[group] + value: p for value, p in sum_distribution(int(choices.group_ends[group])).items()}
            for group in groups
        ]
        counts = [[0] * timeline.mdp.num_actions for _ in groups]  # of sequences by group and first action
        for arm in arms:
            group, action = int(choices.arm_groups[arm]) - groups.start, int(choices.arm_actions[arm])
            counts[group][action] += int(choices.arm_counts[arm])
        after = [success[i] if i >= 0 else Fraction(1 if i == -1 else 0) for i in choices.following[choice].tolist()]
        if ties == "uniform":
            chances = _uniform_chances(sums, counts)
        else:
            order = sorted(range(len(after)), key=lambda a: (after[a], a) if ties == "adversarial" else a)
            chances = _ordered_chances(sums, counts, order)
        success[choice] = sum((chance * then for chance, then in zip(chances, after, strict=True)), Fraction(0))
    return success[0]


def _points(sums: Sequence[_Distribution]) -> Iterator[tuple[list[Fraction], list[Fraction]]]:
    """At each x that the largest sum can be: the chance of each sum to be x, and to be below."""
    below = [Fraction(0)] * len(sums)
    floor = max(min(each) for each in sums)
    for x in sorted(set().union(*sums)):
        here = [each.get(x, Fraction(0)) for each in sums]
        if x >= floor:
            yield here, below
        below = [b + p for b, p in zip(below, here, strict=True)]


def _ordered_chances(
    sums: Sequence[_Distribution], counts: Sequence[Sequence[int]], order: Sequence[int]
) -> list[Fraction]:
    """The chance of each action if a tie goes to the first in order; counts[i][a] sequences of group i begin with a."""
    chances = [Fraction(0)] * len(order)
    for here, below in _points(sums):
        reached = [b + p for b, p in zip(below, here, strict=True)]
        all_below, all_reached = (
            [math.prod(p ** row[a] for p, row in zip(chance, counts, strict=True)) for a in range(len(order))]
            for chance in (below, reached)
        )
        for rank, action in enumerate(order):
            ahead = math.prod(all_below[b] for b in order[:rank])
            behind = math.prod(all_reached[b] for b in order[rank + 1 :])
            chances[action] += ahead * behind * (all_reached[action] - all_below[action])
    return chances


def _uniform_chances(sums: Sequence[_Distribution], counts: Sequence[Sequence[int]]) -> list[Fraction]:
    """The same if one of the largest sums is drawn: a polynomial is integrated, as `winning.py` explains."""
    chances = [Fraction(0)] * len(counts[0])
    totals = list(map(sum, counts))
    for here, below in _points(sums):
        for j, row in enumerate(counts):
            if here[j]:
                product = {0: Fraction(1)}
                for i, total in enumerate(totals):
                    product = _product(product, _power({0: below[i], 1: here[i]}, total - (i == j)))
                drawn = here[j] * sum((c / (degree + 1) for degree, c in product.items()), Fraction(0))
                for action, count in enumerate(row):
                    chances[action] += count * drawn
    return chances


def _product(a: _Distribution, b: _Distribution) -> _Distribution:
    """The distribution of a sum; and the product of two polynomials."""
    result: _Distribution = defaultdict(Fraction)
    for x, p in a.items():
        if p:
            for y, q in b.items():
                result[x + y] += p * q
    return result


def _power(one: _Distribution, exponent: int) -> _Distribution:
    result, square = {0: Fraction(1)}, one
    while exponent:
        if exponent & 1:
            result = _product(result, square)
        exponent >>= 1
        if exponent:
            square = _product(square, square)
    return result
