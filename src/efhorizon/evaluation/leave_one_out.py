"""Leave one family out: does a bound predict others than its threshold was fitted on, and does one family decide?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.evaluation.metrics import CORRELATION, Floats, Sample


@dataclass(frozen=True)
class LeaveOneOut:
    """What changes if each family is left out in turn; None with a reason if that is undefined."""

    num_families: int
    accuracy: float | None  # of thresholds fitted on all other families
    accuracy_reason: str | None
    correlation_low: float | None  # the least correlation without one family
    correlation_low_without: str | None  # that family
    correlation_high: float | None
    correlation_high_without: str | None
    correlation_reason: str | None


@dataclass(frozen=True)
class Threshold:
    """A cut between two neighbouring predictions. In between, the nearer of the two decides."""

    below: float  # the largest prediction taken as solved; -inf: none
    above: float | None  # the smallest taken as unsolved; None: all are taken as solved

    def is_solved(self, prediction: float) -> bool:
        if self.above is None or prediction <= self.below:
            return True
        return prediction < self.above and prediction - self.below < self.above - prediction


def leave_one_family_out(sample: Sample, families: Sequence[str]) -> LeaveOneOut:
    """Every family of the sample is left out once, with all its MDPs."""
    names = sorted(set(families))
    labels = np.array(families, dtype=object)
    accuracy, accuracy_reason = _accuracy(sample, labels, names)
    weights = np.array([labels != name for name in names], np.float64).reshape(len(names), sample.num_mdps)
    correlations = CORRELATION.values(sample, weights)
    defined = np.flatnonzero(~np.isnan(correlations))
    reason = CORRELATION.reason(sample)
    if reason is None and not len(defined):
        reason = "undefined without any one family"
    if reason is not None:
        return LeaveOneOut(len(names), accuracy, accuracy_reason, None, None, None, None, reason)
    lowest, highest = defined[correlations[defined].argmin()], defined[correlations[defined].argmax()]
    return LeaveOneOut(
        num_families=len(names),
        accuracy=accuracy,
        accuracy_reason=accuracy_reason,
        correlation_low=float(correlations[lowest]),
        correlation_low_without=names[lowest],
        correlation_high=float(correlations[highest]),
        correlation_high_without=names[highest],
        correlation_reason=None,
    )


def best_threshold(predictions: Floats, solved: NDArray[np.bool_]) -> Threshold:
    """The cut that classifies the most MDPs correctly; of several equally good ones, the middle one."""
    values, groups = np.unique(predictions, return_inverse=True)
    gains = np.bincount(groups, weights=np.where(solved, 1.0, -1.0), minlength=len(values))  # of moving the cut up
    right = np.concatenate([[0.0], gains.cumsum()])
    best = np.flatnonzero(right == right.max())
    cut = int(best[(len(best) - 1) // 2])
    return Threshold(
        below=float(values[cut - 1]) if cut > 0 else -np.inf,
        above=float(values[cut]) if cut < len(values) else None,
    )


def _accuracy(sample: Sample, labels: NDArray[np.object_], names: Sequence[str]) -> tuple[float | None, str | None]:
    if len(names) < 2:
        return None, "there is no other family to fit a threshold on"
    right, solved = 0, sample.solved
    for name in names:
        is_left_out = labels == name
        threshold = best_threshold(sample.predictions[~is_left_out], solved[~is_left_out])
        predicted = [threshold.is_solved(prediction) for prediction in sample.predictions[is_left_out]]
        right += int((np.array(predicted) == solved[is_left_out]).sum())
    return right / sample.num_mdps, None
