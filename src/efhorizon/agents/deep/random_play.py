"""What random play needs to pass the protocol's rule on training episodes (`protocol.py`), from the exact table.

The rule asks that more than half of the last w episodes were optimal. An episode of the exploration policy is optimal
with probability p, each independently of the others, so that random play passes it by luck sooner or later. Let Q_n be
the chance that it has not after n episodes. Q_w is a binomial sum; Q_2w and Q_3w are exact too (Naus 1982,
"Approximations for distributions of scan statistics"), and in between and from there on Q_n falls geometrically, to
within a few percent of n:

    Q_n = Q_w (Q_2w / Q_w)^((n - w) / w) for n up to 2w,    Q_n = Q_2w (Q_3w / Q_2w)^((n - 2w) / w) beyond

What random play needs is the n with Q_n = 1/2, times the mean length of an episode, which is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from efhorizon.mdp import TabularMDP
from efhorizon.planning.occupancy import occupancy, optimal_return_probability
from efhorizon.planning.optimal import optimal_values
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.planning.timeline import timeline

_SMALLEST_FALL = 1e-12  # of Q_n over w episodes: below it, rounding decides, and no run is that long


@dataclass(frozen=True)
class RandomPlay:
    """Episodes of the exploration policy."""

    optimal_probability: float
    length: float  # timesteps on average

    def steps_needed(self, window: int | None) -> float:
        """Timesteps until half of all runs have passed the rule; infinite where none does, or there is no such rule."""
        return math.inf if window is None else self.length * median_episodes(self.optimal_probability, window)


def random_play(mdp: TabularMDP, policy: ExplorationPolicy | None = None) -> RandomPlay:
    """From the table: both numbers are exact up to rounding."""
    time = timeline(mdp)
    return RandomPlay(
        optimal_return_probability(time, optimal_values(time), policy), float(occupancy(time, policy).sum())
    )


def median_episodes(probability: float, window: int) -> float:
    """After how many episodes half of all runs had more than half of a window optimal."""
    once, twice, thrice = _not_yet(probability, window)
    if once <= 0.5:
        return float(window)
    if twice <= 0.5:
        return window * (1 + math.log(once / 0.5) / math.log(once / twice))
    fall = 1 - thrice / twice
    return window * (2 + math.log(twice / 0.5) / -math.log1p(-fall)) if fall > _SMALLEST_FALL else math.inf


def _not_yet(p: float, w: int) -> tuple[float, float, float]:
    """Q_w, Q_2w and Q_3w: the chance that no w successive trials out of so many have k or more successes."""
    k = w // 2 + 1
    chances = {n: _binomial(n, p) for n in (w, w - 1, w - 2)}
    sums = {n: [math.fsum(each[: x + 1]) for x in range(n + 1)] for n, each in chances.items()}

    def b(x: int) -> float:
        return chances[w][x] if x <= w else 0.0

    def below(x: int, n: int = w) -> float:  # at most x successes in n trials
        return 0.0 if x < 0 else sums[n][min(x, n)]

    def mean_below(x: int) -> float:
        return x * below(x - 1) - w * p * below(x - 2, w - 1)

    twice = below(k - 1) ** 2 - b(k) * mean_below(k - 1)
    pairs = (k - 1) * (k - 2) * below(k - 3) - 2 * (k - 2) * w * p * below(k - 4, w - 1)
    pairs += w * (w - 1) * p**2 * below(k - 5, w - 2)
    thrice = (
        below(k - 1) ** 3
        - 2 * b(k) * below(k - 1) * mean_below(k - 1)
        + b(k) ** 2 * pairs / 2
        + math.fsum(b(2 * k - r) * below(r - 1) ** 2 for r in range(1, k))
        - math.fsum(b(2 * k - r) * b(r) * mean_below(r - 1) for r in range(2, k))
    )
    return below(k - 1), twice, thrice


def _binomial(n: int, p: float) -> list[float]:
    """The chance of x successes in n trials, for each x."""
    if p in (0.0, 1.0):
        return [float(x == round(p * n)) for x in range(n + 1)]
    log_p, log_q = math.log(p), math.log1p(-p)
    ways = [math.lgamma(n + 1) - math.lgamma(x + 1) - math.lgamma(n - x + 1) for x in range(n + 1)]
    return [math.exp(ways[x] + x * log_p + (n - x) * log_q) for x in range(n + 1)]
