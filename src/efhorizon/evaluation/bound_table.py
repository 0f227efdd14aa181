"""Table 2: for every bound and both deep RL algorithms, how well the bound predicts what the algorithm needs.

A row for every bound that some MDP has, those that a user registered among them, for every other measure of hardness,
and for the two baselines of the paper: the empirical sample complexity of the other deep RL algorithm and that of GORP.
A measure has an order and no unit: it has no median ratio, and it takes no part in which bound is best.

Every MDP that the algorithm was run on counts. A prediction may be infinite: a bound that does not apply, a baseline
that did not get there itself. Then the row is computed a second time without those MDPs (`finite_only`), as the paper
must have done for its baselines: see docs/evaluation.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.evaluation import published
from efhorizon.evaluation.formulas import EFFECTIVE_HORIZON
from efhorizon.evaluation.leave_one_out import LeaveOneOut, leave_one_family_out
from efhorizon.evaluation.metrics import METRICS, Floats, Metric, Sample, value
from efhorizon.evaluation.records import DEEP_RL, GORP, MdpSummary, is_main, log10_timesteps
from efhorizon.evaluation.resampling import (
    Estimate,
    PairedTest,
    adjusted_together,
    adjusted_within,
    estimate,
    family_indices,
    paired_test,
    resampled_weights,
)

DEFAULT_RESAMPLES = 2000
SIGNIFICANT = 0.05
GORP_TITLE = "GORP, empirical"
Kind = Literal["bound", "measure", "baseline"]
KINDS: tuple[Kind, ...] = ("bound", "measure", "baseline")  # in the order in which they are shown


@dataclass(frozen=True)
class BoundRow:
    """One predictor of one algorithm."""

    name: str
    title: str
    kind: Kind
    num_mdps: int
    num_infinite: int  # predictions
    metrics: Mapping[str, Estimate]  # by the name of the metric
    finite_only: Mapping[str, Estimate] | None  # without infinite predictions; None where there are none
    leave_one_out: LeaveOneOut
    published: Mapping[str, float] | None  # the paper's own numbers


@dataclass(frozen=True)
class BoundTable:
    """Table 2's half for one algorithm."""

    algorithm: str
    num_mdps: int
    num_solved: int
    num_families: int
    budgets: tuple[float, float] | None  # the smallest and the largest, in timesteps
    majority: float | None  # accuracy of always predicting the more frequent of solved and unsolved; None: see AUROC
    rows: tuple[BoundRow, ...]
    leaders: Mapping[str, tuple[str, ...]]  # by metric: the best bound, then those that are not significantly worse
    tests: tuple[PairedTest, ...]  # the reference, the effective horizon, against every other row
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Predictor:
    """Predictions for all N MDPs; NaN if there is none."""

    name: str
    title: str
    kind: Kind
    predictions: Floats  # [N]

    @property
    def is_given(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.predictions)


def bound_table(
    summaries: Sequence[MdpSummary],
    algorithm: str,
    titles: Mapping[str, str],
    *,
    reference: str = EFFECTIVE_HORIZON,
    baselines: Sequence[tuple[str, str, str]] | None = None,
    num_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> BoundTable:
    """Every metric of every predictor, with intervals, and the reference tested against every other predictor.

    All of it on the same resamples, so that predictors are compared on equal terms. `baselines` are what other
    algorithms need (name of the row, algorithm, title); by default those of the paper.
    """
    run = sorted(
        (each for each in summaries if is_main(each) and algorithm in each.sample_complexities),
        key=lambda each: each.name,
    )
    outcomes = _array(log10_timesteps(each.sample_complexities[algorithm]) for each in run)
    budgets = _array(log10_timesteps(each.budgets.get(algorithm, math.inf)) for each in run)
    families = family_indices([each.family for each in run])
    weights = resampled_weights(families, num_resamples, np.random.default_rng(seed))
    predictors = _predictors(run, titles, baselines_of(algorithm) if baselines is None else baselines)
    table = _Resampled(outcomes, budgets, families, weights, [each.family for each in run])
    num_solved = int(np.isfinite(outcomes).sum())
    return BoundTable(
        algorithm=algorithm,
        num_mdps=len(run),
        num_solved=num_solved,
        num_families=len(set(families.tolist())),
        budgets=_range([each.budgets[algorithm] for each in run if algorithm in each.budgets]),
        majority=max(num_solved, len(run) - num_solved) / len(run) if len(set(budgets.tolist())) == 1 else None,
        rows=tuple(_row(table, algorithm, predictor) for predictor in predictors),
        leaders={metric.name: _leaders(table, predictors, metric) for metric in METRICS},
        tests=_tests(table, predictors, reference),
        notes=_notes(run, algorithm),
    )


@dataclass(frozen=True, eq=False)
class _Resampled:
    """The MDPs of one algorithm and their resamples."""

    outcomes: Floats  # [N]
    budgets: Floats  # [N]
    families: NDArray[np.intp]  # [N]
    weights: Floats  # [B, N]
    names_of_families: list[str]  # [N]
    _known: dict[tuple[str, str, str, bytes], Floats] = field(default_factory=dict)  # what `values` has computed

    def sample(self, predictor: _Predictor, chosen: NDArray[np.bool_]) -> Sample:
        is_timesteps = predictor.kind != "measure"
        return Sample(predictor.predictions, self.outcomes, self.budgets, is_timesteps).part(chosen)

    def num_families(self, chosen: NDArray[np.bool_]) -> int:
        return len(np.unique(self.families[chosen]))

    def values(self, metric: Metric, predictor: _Predictor, chosen: NDArray[np.bool_]) -> Floats:
        """The metric in every resample [B]; intervals and tests share them."""
        key = (metric.name, predictor.kind, predictor.name, chosen.tobytes())
        if key not in self._known:
            self._known[key] = metric.values(self.sample(predictor, chosen), self.weights[:, chosen])
        return self._known[key]

    def estimates(self, predictor: _Predictor, chosen: NDArray[np.bool_]) -> dict[str, Estimate]:
        sample, num_families = self.sample(predictor, chosen), self.num_families(chosen)
        return {
            metric.name: estimate(metric, sample, self.values(metric, predictor, chosen), num_families)
            for metric in METRICS
        }

    def test(self, metric: Metric, first: _Predictor, second: _Predictor) -> PairedTest:
        """On the MDPs that have both."""
        both = first.is_given & second.is_given
        return paired_test(
            (first.name, second.name),
            metric,
            (self.sample(first, both), self.sample(second, both)),
            (self.values(metric, first, both), self.values(metric, second, both)),
            self.num_families(both),
        )


def _row(table: _Resampled, algorithm: str, predictor: _Predictor) -> BoundRow:
    is_given, is_finite = predictor.is_given, np.isfinite(predictor.predictions)
    num_infinite = int((is_given & ~is_finite).sum())
    families = [family for family, chosen in zip(table.names_of_families, is_given, strict=True) if chosen]
    return BoundRow(
        name=predictor.name,
        title=predictor.title,
        kind=predictor.kind,
        num_mdps=int(is_given.sum()),
        num_infinite=num_infinite,
        metrics=table.estimates(predictor, is_given),
        finite_only=table.estimates(predictor, is_finite) if num_infinite else None,
        leave_one_out=leave_one_family_out(table.sample(predictor, is_given), families),
        published=published.bound_metrics(algorithm, predictor.name),
    )


def _predictors(
    run: Sequence[MdpSummary], titles: Mapping[str, str], baselines: Sequence[tuple[str, str, str]]
) -> list[_Predictor]:
    """Bounds in the order in which titles list them, others as they come, then measures, then the baselines."""
    names = dict.fromkeys([*titles, *(name for each in run for name in each.bounds)])
    predictors = []
    for name in names:
        predictions = _array(each.bounds.get(name, math.nan) for each in run)
        if not np.isnan(predictions).all():
            predictors.append(_Predictor(name, titles.get(name, name), "bound", predictions))
    for name in dict.fromkeys([*titles, *(name for each in run for name in each.measures)]):
        known = [each.measures.get(name) for each in run]
        predictions = _array(math.nan if each is None else each.hardness for each in known)
        if not np.isnan(predictions).all():
            predictors.append(_Predictor(name, titles.get(name, name), "measure", predictions))
    for name, other, title in baselines:
        predictions = _array(log10_needed(each, other) for each in run)
        if not np.isnan(predictions).all():
            predictors.append(_Predictor(name, title, "baseline", predictions))
    return predictors


def baselines_of(algorithm: str) -> list[tuple[str, str, str]]:
    """What other algorithms need, to compare bounds with: name of the row, algorithm, title."""
    deep = [(published.OTHER_ALGORITHM, other, f"{other.upper()}, empirical") for other in DEEP_RL]
    return [row for row in [*deep, (published.GORP_EMPIRICAL, GORP, GORP_TITLE)] if row[1] != algorithm]


def log10_needed(summary: MdpSummary, algorithm: str) -> float:
    """log10 of its sample complexity: infinite where it was not solved, NaN where the algorithm was not run."""
    complexity = summary.sample_complexities.get(algorithm)
    return math.nan if complexity is None else log10_timesteps(complexity)


def _tests(table: _Resampled, predictors: Sequence[_Predictor], reference: str) -> tuple[PairedTest, ...]:
    """One predictor against every other, metric by metric."""
    first = next((each for each in predictors if each.name == reference), None)
    if first is None:
        return ()
    others = [each for each in predictors if each is not first]
    tests: list[PairedTest] = []
    for metric in METRICS:
        tests += adjusted_within([table.test(metric, first, other) for other in others])
    return tuple(tests)


def _leaders(table: _Resampled, predictors: Sequence[_Predictor], metric: Metric) -> tuple[str, ...]:
    """The best bound and those tied with it: no difference is significant, adjusted for testing several."""
    values = [
        (found, each)
        for each in predictors
        if each.kind == "bound" and (found := value(metric, table.sample(each, each.is_given))) is not None
    ]
    if not values:
        return ()
    sign = -1 if metric.higher_is_better else 1
    best = min(values, key=lambda pair: (sign * pair[0], pair[1].name))[1]
    others = [each for _, each in values if each is not best]
    tests = adjusted_within([table.test(metric, best, other) for other in others])
    tied = [test.second for test in tests if test.p_value_holm is None or test.p_value_holm >= SIGNIFICANT]
    return (best.name, *sorted(tied))


def shown_together(tables: Sequence[BoundTable]) -> tuple[BoundTable, ...]:
    """The tables of several algorithms or suites, with the p-values of their tests adjusted for each other."""
    tests = adjusted_together([table.tests for table in tables])
    return tuple(replace(table, tests=adjusted) for table, adjusted in zip(tables, tests, strict=True))


def _notes(run: Sequence[MdpSummary], algorithm: str) -> tuple[str, ...]:
    budgets = _range([each.budgets[algorithm] for each in run if algorithm in each.budgets])
    if budgets is None or budgets == (PAPER_STEPS, PAPER_STEPS):
        return ()
    low, high = budgets
    ours = f"{low:,.0f}" if low == high else f"between {low:,.0f} and {high:,.0f}"
    return (
        f"{algorithm.upper()}: runs had {ours} timesteps (the paper's: {PAPER_STEPS:,}); solved means within those",
    )


def _range(numbers: Sequence[float]) -> tuple[float, float] | None:
    return (min(numbers), max(numbers)) if numbers else None


def _array(numbers: Iterable[float]) -> Floats:
    return np.array(list(numbers), np.float64)
