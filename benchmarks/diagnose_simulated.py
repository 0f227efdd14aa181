"""The coverage of `diagnose`'s intervals for m on simulated chances of success, thousands of times as cheap as live.

    python benchmarks/diagnose_simulated.py [--curves 300] [--factors 20,5,2] [--seed 0]

Each curve P(m) is a product of decisions: some that wait for a rare reward, some between actions whose returns are
normal, or some between two actions with rewards of 0 and 1. A survey chooses doses as `diagnose` does and draws whether
each run succeeds. The share of the budget is that of k = 1, and a run takes half of T^2 A m, as in games whose
episodes last to the end.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable

import numpy as np
from scipy.stats import binom, norm

from efhorizon.diagnose.doses import Run, interval, next_doses
from efhorizon.diagnose.survey import K_SHARES, PASS_SHARE, PASSES, RANDOM_SHARE

MOST_M = 3000
SHARE = (1 - RANDOM_SHARE) * K_SHARES[0] / sum(K_SHARES) * (1 - PASSES * PASS_SHARE)

Curve = Callable[[int], float]


def rare_rewards(rng: np.random.Generator) -> Curve:
    """1 to 15 decisions, each of which waits for a reward; without it a random action is taken."""
    actions, number = int(rng.choice([3, 6, 9])), int(rng.choice([1, 2, 5, 15]))
    rarest = 10 ** rng.uniform(-2.7, -0.3)
    chances = np.minimum(0.9, rarest * 10 ** rng.uniform(0, 1, number))
    return lambda m: float(np.prod(1 - (1 - chances) ** m * (1 - 1 / actions)))


def normal_returns(rng: np.random.Generator) -> Curve:
    """1 to 10 decisions between actions whose mean returns differ by some standard deviations."""
    actions, number = int(rng.choice([3, 6, 9])), int(rng.choice([1, 3, 10]))
    gaps = 10 ** rng.uniform(-1.3, 0, number)
    return lambda m: float(np.prod(norm.cdf(gaps * math.sqrt(m)) ** (actions - 1)))


def two_proportions(rng: np.random.Generator) -> Curve:
    """1 or 3 equal decisions between two actions that are rewarded with different chances."""
    better, number = 10 ** rng.uniform(-2.5, -0.5), int(rng.choice([1, 3]))
    worse = better * rng.uniform(0, 0.7)

    def success(m: int) -> float:
        sums = np.arange(m + 1)
        lower = binom.cdf(sums, m, worse) - binom.pmf(sums, m, worse) / 2
        return float((binom.pmf(sums, m, better) * lower).sum() ** number)

    return success


def exact_m(curve: Curve) -> int | None:
    """The least m; None where it is large."""
    low, high = 0, MOST_M
    if curve(high) < 0.5:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if curve(middle) >= 0.5 else (middle, high)
    return high


def surveyed(curve: Curve, budget: float, rng: np.random.Generator) -> list[Run]:
    """The runs of one survey; a run with m takes m."""
    runs: list[Run] = []
    while doses := next_doses(runs, 1.0, budget, 1.0):
        runs += [Run(m, float(rng.random() < curve(m)), m) for m in doses]
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=int, default=300)
    parser.add_argument("--factors", default="20,5,2")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("budget  m > 1  covered  too high  too low  median high/low  no upper end")
    for factor in map(float, options.factors.split(",")):
        rng, rows = np.random.default_rng(options.seed), []
        while len(rows) < options.curves:
            curve = (rare_rewards, normal_returns, two_proportions)[rng.integers(3)](rng)
            truth = exact_m(curve)
            if truth is None or truth == 1:
                continue
            runs = surveyed(curve, 2 * SHARE * factor * truth, rng)
            if runs:
                rows.append((truth, interval(runs, 1.0)))
        covered = sum(each.low <= truth <= each.high for truth, each in rows) / len(rows)
        above = sum(truth < each.low for truth, each in rows) / len(rows)
        width = statistics.median(each.width for _, each in rows)
        endless = sum(math.isinf(each.high) for _, each in rows)
        print(
            f"{factor:4g} x  {len(rows):5}  {covered:7.1%}  {above:8.1%}  {1 - covered - above:7.1%}  {width:15.2f}"
            f"  {endless:12}"
        )


if __name__ == "__main__":
    main()
