"""Metrics against hand-computed values, scipy and scikit-learn; stated results where they are undefined."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from evaluation_data import sample
from scipy import stats
from sklearn import metrics as sklearn_metrics

from efhorizon.evaluation.metrics import (
    ACCURACY,
    AUROC,
    CONCORDANCE,
    CORRELATION,
    MEDIAN_RATIO,
    METRICS,
    Metric,
    Sample,
    value,
)

INF = math.inf


def random_sample(rng: np.random.Generator, *, num_mdps: int = 40) -> Sample:
    """With ties, infinite predictions and unsolved MDPs of several budgets."""
    predictions = rng.integers(0, 12, num_mdps).astype(float)
    predictions[rng.random(num_mdps) < 0.1] = INF
    budgets = rng.choice([5.0, 7.0], num_mdps)
    outcomes = rng.integers(2, 9, num_mdps).astype(float)
    outcomes[outcomes > budgets] = INF
    return Sample(predictions, outcomes, budgets)


def test_correlation_is_scipys(rng: np.random.Generator) -> None:
    for _ in range(20):
        given = random_sample(rng)
        expected = stats.spearmanr(given.predictions[given.solved], given.outcomes[given.solved]).statistic
        assert value(CORRELATION, given) == pytest.approx(expected, abs=1e-12)


def test_correlation_with_ties_by_hand() -> None:
    # ranks of the predictions 1, 2.5, 2.5, 4; of the outcomes 1, 3, 2, 4: covariance 4.5, variances 4.5 and 5
    found = value(CORRELATION, sample([1, 5, 5, 9], [1, 3, 2, 4]))
    assert found == pytest.approx(4.5 / math.sqrt(4.5 * 5))


def with_one_budget(given: Sample) -> Sample:
    return replace(given, budgets=np.full(given.num_mdps, 10.0))


def test_different_budgets_are_different_questions() -> None:
    given = replace(sample([1, 2, 3], [1, 2, INF]), budgets=np.array([5.0, 5.0, 6.0]))
    for metric in (AUROC, ACCURACY):
        assert value(metric, given) is None
        reason = "solved within 100,000 timesteps and within 1,000,000 are two questions; see concordance"
        assert metric.reason(given) == reason
    assert value(CONCORDANCE, given) == 1.0


def test_auroc_is_scikit_learns(rng: np.random.Generator) -> None:
    for _ in range(20):
        given = with_one_budget(random_sample(rng))
        finite = np.where(np.isinf(given.predictions), 1e9, given.predictions)  # it takes no infinities
        assert value(AUROC, given) == pytest.approx(sklearn_metrics.roc_auc_score(given.solved, -finite))


def test_auroc_with_ties_by_hand() -> None:
    # solved 1, 3; unsolved 3, 4, 2: of six pairs 1 is below all three, 3 below 4, tied with 3, above 2
    assert value(AUROC, sample([1, 3, 3, 4, 2], [1, 1, INF, INF, INF])) == pytest.approx(4.5 / 6)


def test_accuracy_is_the_best_of_all_thresholds(rng: np.random.Generator) -> None:
    for _ in range(20):
        given = with_one_budget(random_sample(rng))
        thresholds = [-INF, *given.predictions]
        expected = max(sklearn_metrics.accuracy_score(given.solved, given.predictions <= at) for at in thresholds)
        assert value(ACCURACY, given) == pytest.approx(expected)


def test_accuracy_by_hand() -> None:
    # up to 2: both solved right, and 5, 6 unsolved right; the solved one at 9 is wrong
    assert value(ACCURACY, sample([1, 2, 5, 6, 9], [1, 1, INF, INF, 1])) == pytest.approx(4 / 5)
    # worse than any cut: telling nothing solved is best
    assert value(ACCURACY, sample([9, 1, 2], [1, INF, INF])) == pytest.approx(2 / 3)
    # infinite predictions cannot be told apart: both or none
    assert value(ACCURACY, sample([1, INF, INF], [1, 1, INF])) == pytest.approx(2 / 3)


def test_median_ratio_by_hand() -> None:
    # ratios 10, 1000, 10: either way round counts
    assert value(MEDIAN_RATIO, sample([3, 1, 5], [2, 4, 4])) == pytest.approx(1.0)
    # an even number: the mean of 10 and 1000 is 505, not 100
    assert 10 ** value(MEDIAN_RATIO, sample([3, 1], [2, 4])) == pytest.approx(505)


def test_median_ratio_is_numpys_and_does_not_overflow(rng: np.random.Generator) -> None:
    for size in (1, 2, 7, 10):
        predictions, outcomes = rng.uniform(0, 8, size), rng.uniform(0, 8, size)
        expected = np.median(10 ** np.abs(predictions - outcomes))
        assert value(MEDIAN_RATIO, sample(list(predictions), list(outcomes))) == pytest.approx(math.log10(expected))
    assert value(MEDIAN_RATIO, sample([1000, 2000], [1, 1])) == pytest.approx(1999 - math.log10(2))


def test_infinite_predictions_rank_last_and_are_infinitely_far() -> None:
    given = sample([1, 2, INF, INF], [1, 2, 3, 3])
    assert value(CORRELATION, given) == pytest.approx(1.0)
    assert value(MEDIAN_RATIO, given) == INF
    assert value(MEDIAN_RATIO, sample([INF, INF], [1, 2])) == INF
    assert value(MEDIAN_RATIO, sample([1, 2, INF], [1, 2, 3])) == 0.0


def concordance_by_pairs(given: Sample) -> float:
    known = alike = 0.0
    for i in range(given.num_mdps):
        for j in range(given.num_mdps):
            if not given.solved[i]:
                continue
            if given.outcomes[i] < given.outcomes[j] if given.solved[j] else given.outcomes[i] <= given.budgets[j]:
                known += 1
                first, second = given.predictions[i], given.predictions[j]
                alike += 1.0 if first < second else 0.5 if first == second else 0.0
    return alike / known


def test_concordance_by_hand() -> None:
    # Solved after 10^2 and 10^4; unsolved within 10^3 and 10^6. Known orders: a < b, a < c, a < d, b < d.
    # b and c cannot be compared: c may be solved between 10^3 and 10^4.
    outcomes, budgets = np.array([2.0, 4.0, INF, INF]), np.array([6.0, 6.0, 3.0, 6.0])
    # predictions: a < b right, a > c wrong, a < d right, b = d half
    assert value(CONCORDANCE, Sample(np.array([2.0, 5.0, 1.0, 5.0]), outcomes, budgets)) == pytest.approx(2.5 / 4)


def test_concordance_over_all_pairs(rng: np.random.Generator) -> None:
    for _ in range(10):
        given = random_sample(rng, num_mdps=15)
        assert value(CONCORDANCE, given) == pytest.approx(concordance_by_pairs(given))


def test_concordance_without_unsolved_is_that_of_kendall() -> None:
    given = sample([3, 1, 2, 5, 4], [1, 2, 3, 4, 5])
    tau = stats.kendalltau(given.predictions, given.outcomes).statistic
    assert value(CONCORDANCE, given) == pytest.approx((tau + 1) / 2)


def test_weights_count_like_copies(rng: np.random.Generator) -> None:
    given = with_one_budget(random_sample(rng))
    weights = rng.integers(0, 3, (8, given.num_mdps)).astype(float)
    for metric in METRICS:
        values = metric.values(given, weights)
        for counts, found in zip(weights, values, strict=True):
            copies = np.repeat(np.arange(given.num_mdps), counts.astype(int))
            copied = Sample(given.predictions[copies], given.outcomes[copies], given.budgets[copies])
            assert found == pytest.approx(value(metric, copied)), metric.name


@pytest.mark.parametrize(
    ("metric", "given", "reason"),
    [
        (CORRELATION, sample([1, 2], [1, INF]), "fewer than two MDPs were solved"),
        (CORRELATION, sample([2, 2, 3], [1, 2, INF]), "all predictions are equal"),
        (CORRELATION, sample([INF, INF], [1, 2]), "all predictions are equal"),
        (CORRELATION, sample([1, 2], [3, 3]), "all solved MDPs took equally long"),
        (MEDIAN_RATIO, sample([1, 2], [INF, INF]), "no MDP was solved"),
        (AUROC, sample([], []), "there is no MDP"),
        (AUROC, sample([1, 2], [1, 2]), "all MDPs were solved, so there is nothing to separate"),
        (AUROC, sample([1, 2], [INF, INF]), "no MDP was solved, so there is nothing to separate"),
        (ACCURACY, sample([1, 2], [1, 2]), "all MDPs were solved, so there is nothing to separate"),
        (ACCURACY, sample([1, 2], [INF, INF]), "no MDP was solved, so there is nothing to separate"),
        (CONCORDANCE, sample([1, 2], [INF, INF]), "for no two MDPs is it known which one is harder"),
        (CONCORDANCE, sample([1, 2], [3, 3]), "for no two MDPs is it known which one is harder"),
        (CONCORDANCE, sample([1], [3]), "for no two MDPs is it known which one is harder"),
    ],
)
def test_what_is_undefined_has_a_reason(metric: Metric, given: Sample, reason: str) -> None:
    assert metric.reason(given) == reason
    assert value(metric, given) is None
    assert np.isnan(metric.values(given, np.ones((1, given.num_mdps)))).all()
