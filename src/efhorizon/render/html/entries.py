"""The MDPs of a study as the pages see them: summary, analysis and runs side by side, each of which may be missing."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass

from efhorizon.bounds.interval import Interval
from efhorizon.evaluation.records import MdpSummary
from efhorizon.evaluation.runs import rows_that_count
from efhorizon.evaluation.source import StudyData
from efhorizon.render.learning_curves import Setting, settings_of
from efhorizon.study.analysis_record import AnyAnalysis, Figure
from efhorizon.study.records import Row

_MAX_DIGITS = 18  # longer numbers are not counts


@dataclass(frozen=True)
class MdpEntry:
    """One MDP."""

    name: str
    suite: str
    summary: MdpSummary | None  # None where the analysis is unfinished
    analysis: AnyAnalysis | None  # None where there is only a summary.csv
    settings: tuple[Setting, ...]  # best setting of each algorithm first

    def sample_complexity(self, algorithm: str) -> float | None:
        """Timesteps; infinite where the algorithm did not get there, None where it was not run."""
        if self.summary is not None:
            return self.summary.sample_complexities.get(algorithm)
        found = [setting.sample_complexity for setting in self.settings if setting.algorithm == algorithm]
        return min(found, default=None)

    def budget(self, algorithm: str) -> float | None:
        """Timesteps that the algorithm had at most."""
        return None if self.summary is None else self.summary.budgets.get(algorithm)

    def bounds(self) -> dict[str, float | Interval]:
        """log10 of timesteps by name; infinite if a bound is infinite or does not apply; intervals if unfinished."""
        if self.summary is not None:
            return dict(self.summary.bounds)
        if self.analysis is None:
            return {}
        return {name: _log10(value) for name, value in self.analysis.figures.sample_complexity.items()}


def study_entries(data: StudyData) -> list[MdpEntry]:
    """All MDPs, by suite and name."""
    summaries = {summary.name: summary for summary in data.summaries}
    rows = _rows_by_mdp(data)
    entries = []
    for name in {**summaries, **data.analyses}:
        summary, analysis = summaries.get(name), data.analyses.get(name)
        suite = analysis.suite if analysis is not None else summary.origin if summary is not None else ""
        entries.append(MdpEntry(name, suite, summary, analysis, tuple(settings_of(rows.get(name, [])))))
    return sorted(entries, key=lambda entry: (entry.suite, _natural(entry.name)))


def _natural(name: str) -> list[tuple[str, int]]:
    """An order in which pong_9 comes before pong_10."""
    parts = re.findall(r"(\D*)(\d*)", name.lower())
    return [(text, int(digits[:_MAX_DIGITS] or 0)) for text, digits in parts]


def _rows_by_mdp(data: StudyData) -> dict[str, list[Row]]:
    """The rows that count for the summaries, by MDP."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for (name, _), rows in rows_that_count(data.runs, data.analyses).rows.items():
        grouped[name] += rows
    return grouped


def _log10(value: Figure) -> float | Interval:
    """Of a sample complexity that may be larger than any float."""
    if value is None:
        return math.inf
    if isinstance(value, Interval):
        high = None if value.high is None else math.log10(max(1, value.high))
        return Interval(math.log10(max(1, value.low)), high)
    return math.log10(max(1, value))
