"""How well does a number predict the timesteps that an algorithm needs? The paper's four metrics, and concordance.

Every metric takes weights [B, N], how often each of N MDPs counts, and gives B values at once: the estimate itself is
the row of ones, a bootstrap resample is a row of counts, leaving a family out is a row with zeros. NaN means undefined;
`reason` says why. Predictions and outcomes are logarithms (base 10) of timesteps. An infinite prediction ranks last,
tied with others of its kind, and is infinitely far from every outcome.

Legend: B rows of weights, N MDPs, S solved, U unsolved, K distinct predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sample:
    """One predictor against one algorithm, on N MDPs."""

    predictions: Floats  # [N] log10 of timesteps; may be infinite
    outcomes: Floats  # [N] log10 of timesteps; infinite where not solved
    budgets: Floats  # [N] log10 of the timesteps per run, at most
    is_timesteps: bool = True  # whether predictions are timesteps; else only their order counts

    @property
    def num_mdps(self) -> int:
        return len(self.predictions)

    @property
    def solved(self) -> NDArray[np.bool_]:
        return np.isfinite(self.outcomes)

    def part(self, chosen: NDArray[np.bool_]) -> Sample:
        return Sample(self.predictions[chosen], self.outcomes[chosen], self.budgets[chosen], self.is_timesteps)


@dataclass(frozen=True)
class Metric:
    """One metric."""

    name: str
    title: str
    higher_is_better: bool
    values: Callable[[Sample, Floats], Floats]  # weights [B, N] to values [B]
    reason: Callable[[Sample], str | None]  # why the metric is undefined on a sample
    num_used: Callable[[Sample], int]  # MDPs that enter


def value(metric: Metric, sample: Sample) -> float | None:
    """The metric of a sample; None where it is undefined."""
    if metric.reason(sample) is not None:
        return None
    return float(metric.values(sample, np.ones((1, sample.num_mdps)))[0])


def correlations(sample: Sample, weights: Floats) -> Floats:
    """Spearman: the correlation between the ranks of predictions and outcomes of the solved MDPs; ties share ranks."""
    solved = sample.solved
    weights = weights[:, solved]
    first = _centred_ranks(sample.predictions[solved], weights)
    second = _centred_ranks(sample.outcomes[solved], weights)
    square = (weights * first**2).sum(axis=1) * (weights * second**2).sum(axis=1)
    return _quotients((weights * first * second).sum(axis=1), np.sqrt(square))


def median_ratios(sample: Sample, weights: Floats) -> Floats:
    """log10 of the median over solved MDPs of max(prediction / outcome, outcome / prediction).

    With an even number it is the mean of the two ratios in the middle, not of their logarithms.
    """
    solved = sample.solved
    ratios = np.abs(sample.predictions[solved] - sample.outcomes[solved])
    if not len(ratios):
        return np.full(len(weights), np.nan)
    order = np.argsort(ratios, kind="stable")
    ratios, counts = ratios[order], weights[:, solved][:, order].cumsum(axis=1)
    total = counts[:, -1:]
    low = ratios[(counts > (total - 1) // 2).argmax(axis=1)]
    high = ratios[(counts > total // 2).argmax(axis=1)]
    differ = low < high
    gap = np.where(differ, low, 0.0) - np.where(differ, high, 0.0)  # no infinity minus infinity
    medians = high + np.log10((1 + 10.0**gap) / 2)
    return np.where(total[:, 0] > 0, medians, np.nan)


def aurocs(sample: Sample, weights: Floats) -> Floats:
    """The chance that a solved MDP has a lower prediction than an unsolved one; ties count one half."""
    solved = sample.solved
    lower = _is_lower(sample.predictions[solved], sample.predictions[~solved])  # [S, U]
    of_solved, of_unsolved = weights[:, solved], weights[:, ~solved]
    pairs = of_solved.sum(axis=1) * of_unsolved.sum(axis=1)
    return _quotients(((of_solved @ lower) * of_unsolved).sum(axis=1), pairs)


def accuracies(sample: Sample, weights: Floats) -> Floats:
    """The share of MDPs that "solved if the prediction is at most x" classifies correctly, for the best x."""
    solved = sample.solved
    _, groups = np.unique(sample.predictions, return_inverse=True)
    right_below = _grouped(weights * solved, groups).cumsum(axis=1)  # [B, K] solved up to each cut
    unsolved = _grouped(weights * ~solved, groups)
    num_unsolved = unsolved.sum(axis=1, keepdims=True)
    right = right_below + num_unsolved - unsolved.cumsum(axis=1)
    best = np.maximum(right.max(axis=1, initial=0), num_unsolved[:, 0])  # the last: nothing is taken as solved
    total = weights.sum(axis=1)
    has_both = (num_unsolved[:, 0] > 0) & (num_unsolved[:, 0] < total)
    return _quotients(best, np.where(has_both, total, 0))


def concordances(sample: Sample, weights: Floats) -> Floats:
    """Harrell's C: of the pairs whose order of difficulty is known, the share that predictions put in that order.

    The order is known if both are solved after different numbers of timesteps, or if one is solved and the other's
    budget is at least as large; ties between predictions count one half.
    """
    known = _known_orders(sample).astype(np.float64)  # [N, N]
    alike = known * _is_lower(sample.predictions, sample.predictions)
    return _quotients(((weights @ alike) * weights).sum(axis=1), ((weights @ known) * weights).sum(axis=1))


def _known_orders(sample: Sample) -> NDArray[np.bool_]:
    """[N, N] whether MDP i is known to be solved with fewer timesteps than MDP j."""
    outcomes, solved = sample.outcomes, sample.solved
    sooner = outcomes[:, None] < outcomes[None, :]
    within_budget = outcomes[:, None] <= sample.budgets[None, :]
    known: NDArray[np.bool_] = solved[:, None] & np.where(solved[None, :], sooner, within_budget)
    return known


def _is_lower(first: Floats, second: Floats) -> Floats:
    lower: Floats = (first[:, None] < second[None, :]) + 0.5 * (first[:, None] == second[None, :])
    return lower


def _centred_ranks(values: Floats, weights: Floats) -> Floats:
    """Twice the distance of each rank from the mean rank, [B, S]: whole numbers, so that all-equal is exactly 0.

    A group of g equal values after b lower ones has the ranks b + 1 ... b + g, whose mean is b + (g + 1) / 2.
    """
    _, groups = np.unique(values, return_inverse=True)
    sizes = _grouped(weights, groups)
    before = sizes.cumsum(axis=1) - sizes
    ranks: Floats = (2 * before + sizes - weights.sum(axis=1, keepdims=True))[:, groups]
    return ranks


def _grouped(weights: Floats, groups: NDArray[np.intp]) -> Floats:
    """Sums over groups [B, K]."""
    is_in_group = np.eye(int(groups.max(initial=-1)) + 1)[groups]  # [N, K]
    sums: Floats = weights @ is_in_group
    return sums


def _quotients(numerators: Floats, denominators: Floats) -> Floats:
    result = np.full(len(numerators), np.nan)
    np.divide(numerators, denominators, out=result, where=denominators > 0)
    return result


def _correlation_reason(sample: Sample) -> str | None:
    solved = sample.solved
    if solved.sum() < 2:
        return "fewer than two MDPs were solved"
    if len(np.unique(sample.predictions[solved])) == 1:
        return "all predictions are equal"
    if len(np.unique(sample.outcomes[solved])) == 1:
        return "all solved MDPs took equally long"
    return None


def _median_ratio_reason(sample: Sample) -> str | None:
    if not sample.is_timesteps:
        return "a measure of hardness is no number of timesteps, so it is off by no factor"
    return None if sample.solved.any() else "no MDP was solved"


def _classes_reason(sample: Sample) -> str | None:
    if not sample.num_mdps:
        return "there is no MDP"
    if len(set(sample.budgets.tolist())) > 1:
        low, high = 10 ** sample.budgets.min(), 10 ** sample.budgets.max()
        return f"solved within {low:,.0f} timesteps and within {high:,.0f} are two questions; see concordance"
    if sample.solved.all():
        return "all MDPs were solved, so there is nothing to separate"
    return None if sample.solved.any() else "no MDP was solved, so there is nothing to separate"


def _concordance_reason(sample: Sample) -> str | None:
    return None if _known_orders(sample).any() else "for no two MDPs is it known which one is harder"


def _num_solved(sample: Sample) -> int:
    return int(sample.solved.sum())


def _num_mdps(sample: Sample) -> int:
    return sample.num_mdps


CORRELATION = Metric("correlation", "correlation", True, correlations, _correlation_reason, _num_solved)
MEDIAN_RATIO = Metric("median_ratio_log10", "median ratio", False, median_ratios, _median_ratio_reason, _num_solved)
AUROC = Metric("auroc", "AUROC", True, aurocs, _classes_reason, _num_mdps)
ACCURACY = Metric("accuracy", "accuracy", True, accuracies, _classes_reason, _num_mdps)
CONCORDANCE = Metric("concordance", "concordance", True, concordances, _concordance_reason, _num_mdps)
METRICS = (CORRELATION, MEDIAN_RATIO, AUROC, ACCURACY, CONCORDANCE)
