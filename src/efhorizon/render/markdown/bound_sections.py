"""The sections on Table 2: its numbers, the paired comparisons, and leaving families out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from efhorizon.evaluation.bound_table import SIGNIFICANT, BoundRow, BoundTable
from efhorizon.evaluation.changes import ChangeRow
from efhorizon.evaluation.formulas import COVERING_LENGTH, EFFECTIVE_HORIZON, EPW, SIMPLE_HORIZON, UCB, WORST_CASE
from efhorizon.evaluation.metrics import CONCORDANCE, CORRELATION, MEDIAN_RATIO, METRICS, Metric
from efhorizon.evaluation.resampling import Estimate, PairedTest
from efhorizon.render.learning_curves import ALGORITHM_TITLES
from efhorizon.render.markdown.text import (
    Footnotes,
    blocks,
    difference,
    escaped,
    estimate_text,
    factor,
    interval,
    metric_text,
    number,
    table,
    unbroken,
)

_ORDER = (WORST_CASE, COVERING_LENGTH, EPW, UCB, EFFECTIVE_HORIZON, SIMPLE_HORIZON)  # the paper's, then ours
_Row = TypeVar("_Row", BoundRow, ChangeRow)


def metric_title(metric: Metric) -> str:
    return "Spearman" if metric is CORRELATION else metric.title


def of_paper(numbers: Mapping[str, float] | None, metric: Metric, notes: Footnotes) -> str:
    """One of the paper's numbers."""
    value = (numbers or {}).get(metric.name)
    return notes.missing("not in the paper") if value is None else metric_text(value, metric)


def bound_order(name: str) -> tuple[int, str]:
    """The paper's order, then by name: never the order in a file."""
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)


def ordered_rows(rows: Sequence[_Row]) -> list[_Row]:
    """Bounds first, then other measures of hardness and the two empirical baselines as they come."""
    return sorted(rows, key=_place)


def _place(row: BoundRow | ChangeRow) -> tuple[int, int, str]:
    if row.kind == "bound":
        return (0, *bound_order(row.name))
    return (1 if row.kind == "measure" else 2, 0, "")


def bound_section(found: BoundTable, *, title: str, pictures: str = "", with_paper: bool = True) -> str:
    """Table 2's half for one algorithm; a bound that is significantly better than all others is bold."""
    name = ALGORITHM_TITLES[found.algorithm]
    if not found.num_mdps:
        return blocks(f"### {title}", f"{name} was not run.")
    notes = Footnotes()
    header = ["", *(cell for metric in METRICS for cell in _columns(metric, with_paper))]
    rows = []
    for row in ordered_rows(found.rows):
        cells = _cells(row, row.metrics, _won(found, row), notes, with_paper)
        rows.append([_row_title(row, found), *cells])
        if row.finite_only is not None:
            cells = _cells(row, row.finite_only, (), notes, with_paper)
            rows.append([f"&emsp;without its {row.num_infinite} infinite", *cells])
    families = "1 family" if found.num_families == 1 else f"{found.num_families} families"
    return blocks(
        f"### {title}",
        f"{name} solved {found.num_solved} of {found.num_mdps} MDPs ({families})." + _majority(found),
        table(header, rows),
        notes.text(),
        _leaders(found),
        pictures,
    )


def _columns(metric: Metric, with_paper: bool) -> tuple[str, ...]:
    return (metric_title(metric), "paper") if with_paper and metric is not CONCORDANCE else (metric_title(metric),)


def tests_section(found: BoundTable, *, title: str) -> str:
    """The effective horizon against every other row."""
    if not found.tests:
        return blocks(f"### {title}", "Not run, or nothing to compare.")
    notes = Footnotes()
    by_name = {(test.second, test.metric): test for test in found.tests}
    others = [row for row in ordered_rows(found.rows) if row.name != found.tests[0].first]
    rows = [
        [_row_title(row, found), *(_test(by_name[row.name, metric.name], metric, notes) for metric in METRICS)]
        for row in others
    ]
    return blocks(f"### {title}", table(["", *map(metric_title, METRICS)], rows), notes.text())


def leave_one_out_section(found: BoundTable) -> str:
    """For one algorithm: every family is left out once."""
    name = ALGORITHM_TITLES[found.algorithm]
    if found.num_families < 2:
        return blocks(f"### {name}", "Fewer than two families were run, so none can be left out.")
    notes = Footnotes()
    rows = []
    for row in ordered_rows(found.rows):
        left = row.leave_one_out
        accuracy = row.metrics["accuracy"]
        rows.append(
            [
                _row_title(row, found),
                number(left.accuracy) if left.accuracy is not None else notes.missing(left.accuracy_reason),
                number(accuracy.value) if accuracy.value is not None else notes.missing(accuracy.reason),
                _without(left.correlation_low, left.correlation_low_without, left.correlation_reason, notes),
                _without(left.correlation_high, left.correlation_high_without, left.correlation_reason, notes),
            ]
        )
    header = ["", "accuracy on families left out", "accuracy in sample", "lowest Spearman", "highest Spearman"]
    return blocks(
        f"### {name}, {found.num_families} families",
        _majority(found).strip(),
        table(header, rows),
        notes.text(),
    )


def _row_title(row: BoundRow, found: BoundTable) -> str:
    """A baseline may have been run on fewer MDPs than the algorithm itself."""
    fewer = f" (on {row.num_mdps} of the {found.num_mdps} MDPs)" if row.num_mdps < found.num_mdps else ""
    return _bold_reference(row) + fewer


def _bold_reference(row: BoundRow) -> str:
    title = escaped(row.title)
    return f"**{title}**" if row.kind == "bound" and row.name == EFFECTIVE_HORIZON else title


def _cells(
    row: BoundRow, estimates: Mapping[str, Estimate], won: Collection[str], notes: Footnotes, with_paper: bool
) -> list[str]:
    """Ours and the paper's, metric by metric; what is significantly better than everything else is bold."""
    cells = []
    for metric in METRICS:
        cells.append(estimate_text(estimates[metric.name], metric, notes, is_bold=metric.name in won))
        if with_paper and metric is not CONCORDANCE:
            cells.append(of_paper(row.published, metric, notes))
    return cells


def _won(found: BoundTable, row: BoundRow) -> set[str]:
    """The metrics in which a bound is significantly better than every other one."""
    return {name for name, leaders in found.leaders.items() if row.kind == "bound" and leaders == (row.name,)}


def _leaders(found: BoundTable) -> str:
    """Which bounds are best in each metric, and whether that is more than chance."""
    titles = {row.name: escaped(row.title.partition(" (")[0]) for row in found.rows if row.kind == "bound"}
    lines = []
    for metric in METRICS:
        leaders = found.leaders[metric.name]
        if leaders:
            best, *tied = (titles[name] for name in leaders)
            others = f"tied with: {'; '.join(tied)}" if tied else "significantly better than every other bound"
            lines.append(f"- {metric_title(metric)}: {best}; {others}")
    return blocks("Best, and what is not significantly worse:", "\n".join(lines)) if lines else ""


def _majority(found: BoundTable) -> str:
    if found.majority is None:
        return ""
    return f" Always predicting the more frequent outcome has an accuracy of {number(found.majority)}."


def _test(test: PairedTest, metric: Metric, notes: Footnotes) -> str:
    """+0.21 [+0.05, +0.40] p = 0.012, 0.31: bold if it is significant even among all tests."""
    if test.difference is None:
        return notes.missing(test.reason)
    shown = factor if metric is MEDIAN_RATIO else difference
    text = shown(test.difference)
    if test.low is None or test.high is None or test.p_value_holm is None or test.p_value_all is None:
        return text + notes.mark(f"no interval: {test.reason}")
    text = f"**{text}**" if test.p_value_all < SIGNIFICANT else text
    p_values = unbroken(f"p = {test.p_value_holm:.3f}, {test.p_value_all:.3f}")
    return f"{text} {interval(shown(test.low), shown(test.high))} {p_values}"


def _without(value: float | None, family: str | None, reason: str | None, notes: Footnotes) -> str:
    if value is None:
        return notes.missing(reason)
    return f"{number(value)} without {escaped(family)}" if family is not None else number(value)
