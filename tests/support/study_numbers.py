"""What the claims of docs/study.md are computed from, and how their numbers are written."""

from __future__ import annotations

from typing import NamedTuple

from efhorizon.evaluation.bound_table import BoundTable
from efhorizon.evaluation.by_suite import suite_bounds
from efhorizon.evaluation.changes import ChangeTable
from efhorizon.evaluation.records import MdpSummary
from efhorizon.evaluation.resampling import Estimate
from efhorizon.evaluation.rules import under
from efhorizon.evaluation.source import StudyData
from efhorizon.evaluation.tables import Tables, tables_by_rule
from efhorizon.render.markdown.text import number

RESAMPLES = 10_000  # as in `make study`
H, EPW, COVERING, UCB = "effective_horizon", "epw", "covering_length", "ucb"
CORRELATION, RATIO, AUROC, CONCORDANCE = "correlation", "median_ratio_log10", "auroc", "concordance"


class Claim(NamedTuple):
    text: str  # as it stands in docs/study.md
    source: str  # table and row, or the columns it is counted from


class Numbers(NamedTuple):
    """What claims are computed from."""

    data: StudyData
    learnt: Tables
    paper: Tables
    gridworlds: tuple[BoundTable, ...]  # PPO, DQN; trained networks, MDPs that random play does not solve

    @classmethod
    def of(cls, data: StudyData) -> Numbers:
        learnt, paper = tables_by_rule(data, num_resamples=RESAMPLES)
        suites = suite_bounds(under("learnt", data.summaries), data.titles, num_resamples=RESAMPLES)
        return cls(data, learnt, paper, next(each.bounds for each in suites if each.suite == "minigrid"))


def change(table: ChangeTable, metric: str, name: str = H) -> Estimate:
    return next(row for row in table.rows if row.name == name).metrics[metric]


def interval(estimate: Estimate) -> str:
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def bound(summary: MdpSummary) -> float:
    return summary.bounds[H]


def word(number: int) -> str:
    return ("none", "one", "two", "three", "four")[number] if number < 5 else str(number)
