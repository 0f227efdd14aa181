"""The success probability of GORP(k, m) as a fraction, for the cases that floats cannot decide.

Success of exactly 1/2 is common in small MDPs: two actions whose rollouts all return 0 are drawn like a coin. The same
formulas as in `backward.py`, on Python integers. The cost grows fast with m and the number of sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from efhorizon.gorp.decisions import Choices
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.returns import ReturnDistributions

MAX_WORK = 300_000  # lattice points times ties squared: a few seconds

_Distribution = tuple[int, tuple[Fraction, ...]]  # the least value, and the probability of each from there on


def affordable(choices: Choices, returns: ReturnDistributions, explorer: ExplorationPolicy, m: int) -> bool:
    """Whether the fraction can be had in seconds; only for the uniform policy, whose probabilities are rational."""
    if not explorer.is_uniform:
        return False
    spans = m * (np.diff(returns.lattice.starts)[returns.index] - 1) + 1
    sequences = choices.timeline.mdp.num_actions**choices.num_steps
    points = float(spans.sum()) * (1 + m * choices.timeline.mdp.horizon / 256)
    return bool(points * min(sequences, 1 << 20) ** 2 <= MAX_WORK)


def success_fraction(choices: Choices, m: int) -> Fraction:
    """The exact success probability with a uniform exploration policy."""
    timeline, units = choices.timeline, choices.scale.units
    share = Fraction(1, timeline.mdp.num_actions)

    @cache
    def return_distribution(pair: int) -> _Distribution:
        if pair < 0:
            return 0, (Fraction(1),)
        codes = timeline.mdp.reward_codes[timeline.states[pair]]
        parts = [return_distribution(int(successor)) for successor in timeline.successors[pair]]
        lows = [int(units[code]) + low for code, (low, _) in zip(codes, parts, strict=True)]
        first = min(lows)
        last = max(low + len(mass) for low, (_, mass) in zip(lows, parts, strict=True))
        mixed = [Fraction(0)] * (last - first)
        for low, (_, mass) in zip(lows, parts, strict=True):
            for i, probability in enumerate(mass):
                mixed[low - first + i] += share * probability
        return first, tuple(mixed)

    @cache
    def sum_distribution(pair: int) -> _Distribution:
        low, mass = return_distribution(pair)
        return low * m, tuple(_polynomial_power(mass, m))

    for pair in range(timeline.num_pairs - 1, -1, -1):  # successors first, so that no recursion runs deep
        return_distribution(pair)
    success = [Fraction(0)] * choices.num_choices
    for choice in reversed(range(choices.num_choices)):
        groups = range(int(choices.group_starts[choice]), int(choices.group_starts[choice + 1]))
        arms = range(int(choices.arm_starts[choice]), int(choices.arm_starts[choice + 1]))
        counts = dict.fromkeys(groups, 0)
        for arm in arms:
            counts[int(choices.arm_groups[arm])] += int(choices.arm_counts[arm])
        sums = []
        for group in groups:
            low, mass = sum_distribution(int(choices.group_ends[group]))
            sums.append((low + m * int(choices.group_prefixes[group]), mass))
        chances = choice_chances(sums, list(counts.values()))
        for arm in arms:
            after = int(choices.following[choice, choices.arm_actions[arm]])
            if after >= -1:
                chance = chances[int(choices.arm_groups[arm]) - groups.start] * int(choices.arm_counts[arm])
                success[choice] += chance * (success[after] if after >= 0 else 1)
    return success[0]


def choice_chances(sums: Sequence[_Distribution], counts: Sequence[int]) -> list[Fraction]:
    """The chance of one sequence of each group to be drawn, with counts[i] independent sums of each."""
    chances = [Fraction(0)] * len(sums)
    for x in range(max(low for low, _ in sums), max(low + len(mass) for low, mass in sums)):
        here = [mass[x - low] if x - low < len(mass) else Fraction(0) for low, mass in sums]
        below = [sum(mass[: max(x - low, 0)], Fraction(0)) for low, mass in sums]
        for j in range(len(sums)):
            if here[j]:
                product = [Fraction(1)]
                for i in range(len(sums)):
                    power = _polynomial_power((below[i], here[i]), counts[i] - (i == j))
                    product = _polynomial_product(product, power)
                chances[j] += here[j] * sum(c / (n + 1) for n, c in enumerate(product))
    return chances


def _polynomial_product(a: Sequence[Fraction], b: Sequence[Fraction]) -> list[Fraction]:
    product = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        if x:
            for j, y in enumerate(b):
                product[i + j] += x * y
    while len(product) > 1 and not product[-1]:
        product.pop()
    return product


def _polynomial_power(polynomial: Sequence[Fraction], exponent: int) -> list[Fraction]:
    result, square = [Fraction(1)], list(polynomial)
    while exponent:
        if exponent & 1:
            result = _polynomial_product(result, square)
        exponent >>= 1
        if exponent:
            square = _polynomial_product(square, square)
    return result
