"""Table 3: does a bound predict by what factor the sample complexity changes, if rewards are shaped (3a) or training
starts from a given exploration policy (3b)?

A pair counts if the algorithm solved both MDPs: only then is the change known. Predicted and empirical change are
ratios, new over old. The correlation is Spearman's; the median ratio is the median factor between the two. The rows
below the bounds are not in the paper: that nothing changes, and the change for another algorithm, as predictions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from efhorizon.evaluation import published
from efhorizon.evaluation.bound_table import DEFAULT_RESAMPLES, baselines_of, log10_needed
from efhorizon.evaluation.metrics import CORRELATION, MEDIAN_RATIO, Floats, Metric, Sample
from efhorizon.evaluation.records import EXPLORATION, SHAPED, MdpSummary, has_solved
from efhorizon.evaluation.resampling import Estimate, estimate, family_indices, resampled_weights

Kind = Literal["shaping", "exploration"]
NO_CHANGE_ROW = "no_change"
NO_CHANGE = "it predicts no change in any pair (the paper prints 0.00)"


@dataclass(frozen=True)
class ChangeRow:
    """The change as one bound predicts it, or as another algorithm shows it."""

    name: str
    title: str
    kind: Literal["bound", "baseline"]
    num_pairs: int
    num_undefined: int  # pairs left out: infinite on both sides, or not known on one
    metrics: Mapping[str, Estimate]  # correlation and median ratio
    published: Mapping[str, float] | None


@dataclass(frozen=True)
class ChangePoint:
    """One pair: the change that a bound predicts, and the one that was measured, as log10 of new over old."""

    name: str  # of the new MDP
    origin: str
    predicted: float  # infinite where the bound is on one side
    measured: float


@dataclass(frozen=True)
class ChangeTable:
    """Table 3a or 3b for one algorithm."""

    kind: Kind
    algorithm: str
    num_pairs: int  # both run
    num_both_solved: int
    num_became_solved: int
    num_became_unsolved: int
    rows: tuple[ChangeRow, ...]


def change_table(
    summaries: Sequence[MdpSummary],
    kind: Kind,
    algorithm: str,
    titles: Mapping[str, str],
    *,
    label: str | None = None,
    num_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> ChangeTable:
    """Every bound against the change of one algorithm's sample complexity; with the policies of one label, or all."""
    pairs = [
        (old, new)
        for old, new in pairs_of(summaries, kind)
        if algorithm in old.sample_complexities and algorithm in new.sample_complexities and label in (None, new.label)
    ]
    solved = [(has_solved(old, algorithm), has_solved(new, algorithm)) for old, new in pairs]
    known = [pair for pair, both in zip(pairs, solved, strict=True) if all(both)]
    changes = np.array([_change(old, new, algorithm) for old, new in known], np.float64)
    families = family_indices([old.family for old, _ in known])
    weights = resampled_weights(families, num_resamples, np.random.default_rng(seed))
    rows = []
    for name, title, row_kind, predictions in _predictions(known, algorithm, titles):
        is_defined = ~np.isnan(predictions)
        if not known or not is_defined.any():
            continue
        sample = Sample(predictions[is_defined], changes[is_defined], np.zeros(int(is_defined.sum())))
        num_families = len(np.unique(families[is_defined]))
        rows.append(
            ChangeRow(
                name=name,
                title=title,
                kind=row_kind,
                num_pairs=sample.num_mdps,
                num_undefined=len(known) - sample.num_mdps,
                metrics={
                    metric.name: _estimate(metric, sample, weights[:, is_defined], num_families)
                    for metric in (CORRELATION, MEDIAN_RATIO)
                },
                published=published.change_metrics(kind, algorithm, name),
            )
        )
    return ChangeTable(
        kind=kind,
        algorithm=algorithm,
        num_pairs=len(pairs),
        num_both_solved=len(known),
        num_became_solved=solved.count((False, True)),
        num_became_unsolved=solved.count((True, False)),
        rows=tuple(rows),
    )


def change_points(summaries: Sequence[MdpSummary], kind: Kind, algorithm: str, bound: str) -> tuple[ChangePoint, ...]:
    """The pairs of which both MDPs were solved, as one bound sees them; those it says nothing about are left out."""
    known = [pair for pair in pairs_of(summaries, kind) if all(has_solved(each, algorithm) for each in pair)]
    sides = [(old.bounds.get(bound, math.nan), new.bounds.get(bound, math.nan)) for old, new in known]
    return tuple(
        ChangePoint(new.name, new.origin, float(predicted), _change(old, new, algorithm))
        for (old, new), predicted in zip(known, _ratios(sides), strict=True)
        if not math.isnan(predicted)
    )


def pairs_of(summaries: Sequence[MdpSummary], kind: Kind) -> list[tuple[MdpSummary, MdpSummary]]:
    """(old, new): an MDP and its shaped version, or the same MDP with another exploration policy."""
    by_name = {each.name: each for each in summaries}
    if kind == "shaping":
        named = [(each.unshaped, each) for each in summaries if each.type == SHAPED]
    else:
        named = [(each.base_name, each) for each in summaries if each.type == EXPLORATION]
    return sorted(
        ((by_name[old], new) for old, new in named if old in by_name), key=lambda pair: (pair[0].name, pair[1].name)
    )


def _change(old: MdpSummary, new: MdpSummary, algorithm: str) -> float:
    return log10_needed(new, algorithm) - log10_needed(old, algorithm)


def _predictions(
    pairs: Sequence[tuple[MdpSummary, MdpSummary]], algorithm: str, titles: Mapping[str, str]
) -> Iterator[tuple[str, str, Literal["bound", "baseline"], Floats]]:
    """Name, title, kind and log10 of the predicted ratios [pairs] of every bound, then of the other algorithms."""
    for name in dict.fromkeys([*titles, *(name for old, _ in pairs for name in old.bounds)]):
        sides = [(old.bounds.get(name, math.nan), new.bounds.get(name, math.nan)) for old, new in pairs]
        yield name, titles.get(name, name), "bound", _ratios(sides)
    yield NO_CHANGE_ROW, "no change", "baseline", np.zeros(len(pairs))
    for name, other, title in baselines_of(algorithm):
        sides = [(log10_needed(old, other), log10_needed(new, other)) for old, new in pairs]
        yield name, title, "baseline", _ratios(sides)


def _ratios(sides: Sequence[tuple[float, float]]) -> Floats:
    """New over old, as logarithms; NaN if that is undefined."""
    return np.array([math.nan if math.isinf(old) and math.isinf(new) else new - old for old, new in sides], np.float64)


def _estimate(metric: Metric, sample: Sample, weights: Floats, num_families: int) -> Estimate:
    if metric is CORRELATION and sample.num_mdps >= 2 and not sample.predictions.any():
        return Estimate(None, None, None, sample.num_mdps, NO_CHANGE)
    return estimate(metric, sample, metric.values(sample, weights), num_families)
