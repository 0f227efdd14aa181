"""The sections on Table 2: its numbers, the paired comparisons, concordance, and leaving games out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from efhorizon.evaluation import published
from efhorizon.evaluation.bound_table import BoundRow, BoundTable
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
    same,
    table,
    unbroken,
)

SIGNIFICANT = 0.05
_ORDER = (WORST_CASE, COVERING_LENGTH, EPW, UCB, EFFECTIVE_HORIZON, SIMPLE_HORIZON)  # the paper's, then ours
_OTHER_TITLE = "the other deep RL algorithm, empirical"
_Row = TypeVar("_Row", BoundRow, ChangeRow)
_TABLE_2 = tuple(metric for metric in METRICS if metric is not CONCORDANCE)


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
    """Bounds first, then the two empirical baselines as they come."""
    return sorted(rows, key=lambda row: (0, *bound_order(row.name)) if row.kind == "bound" else (1, 0, ""))


def bound_section(found: BoundTable, *, title: str, pictures: str = "") -> str:
    """Table 2's half for one algorithm; the best bound of each metric is bold."""
    name = ALGORITHM_TITLES[found.algorithm]
    if not found.num_mdps:
        return blocks(f"### {title}", f"{name} was not run.")
    notes = Footnotes()
    header = ["", *(cell for metric in _TABLE_2 for cell in (metric_title(metric), "paper"))]
    best = {metric.name: _best(found, metric) for metric in _TABLE_2}
    rows = []
    for row in ordered_rows(found.rows):
        rows.append([_row_title(row, found), *_cells(row, row.metrics, best if row.kind == "bound" else {}, notes)])
        if row.finite_only is not None:
            rows.append([f"&emsp;without its {row.num_infinite} infinite", *_cells(row, row.finite_only, {}, notes)])
    games = "1 game" if found.num_games == 1 else f"{found.num_games} games"
    return blocks(
        f"### {title}",
        f"{name} solved {found.num_solved} of {found.num_mdps} MDPs ({games}). Always predicting the more frequent "
        f"outcome has an accuracy of {number(found.majority)}.",
        table(header, rows),
        notes.text(),
        pictures,
    )


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


def concordance_section(tables: Sequence[BoundTable]) -> str:
    """Both algorithms side by side."""
    used = [each for each in tables if each.num_mdps]
    if not used:
        return "Neither PPO nor DQN was run."
    notes = Footnotes()
    found = [{(row.kind, row.name): row for row in ordered_rows(each.rows)} for each in used]
    titles = {key: _bold_reference(row) for of_table in found for key, row in of_table.items()}
    best = [_best(each, CONCORDANCE) for each in used]
    rows = []
    for key in sorted(titles, key=lambda key: (0, *bound_order(key[1])) if key[0] == "bound" else (1, 0, "")):
        cells = []
        for each, of_table, highest in zip(used, found, best, strict=True):
            if key not in of_table:
                cells.append(notes.missing("no such prediction"))
                continue
            estimate = of_table[key].metrics[CONCORDANCE.name]
            is_best = key[0] == "bound" and same(estimate.value, highest)
            cell = estimate_text(estimate, CONCORDANCE, notes, is_bold=is_best)
            fewer = estimate.num_mdps < each.num_mdps and estimate.value is not None
            cells.append(f"{cell} ({estimate.num_mdps} MDPs)" if fewer else cell)
        title = _OTHER_TITLE if key[1] == published.OTHER_ALGORITHM else titles[key]
        rows.append([title, *cells])
    header = ["", *(f"{ALGORITHM_TITLES[each.algorithm]}, {each.num_mdps} MDPs" for each in used)]
    return blocks(table(header, rows), notes.text())


def leave_one_out_section(found: BoundTable) -> str:
    """For one algorithm: every game is left out once."""
    name = ALGORITHM_TITLES[found.algorithm]
    if found.num_games < 2:
        return blocks(f"### {name}", "Fewer than two games were run, so none can be left out.")
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
    header = ["", "accuracy on games left out", "accuracy in sample", "lowest Spearman", "highest Spearman"]
    return blocks(
        f"### {name}, {found.num_games} games",
        f"Always predicting the more frequent outcome has an accuracy of {number(found.majority)}.",
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
    row: BoundRow, estimates: Mapping[str, Estimate], best: Mapping[str, float | None], notes: Footnotes
) -> list[str]:
    """Ours and the paper's, metric by metric; the best is bold."""
    cells = []
    for metric in _TABLE_2:
        estimate = estimates[metric.name]
        is_best = same(estimate.value, best.get(metric.name))
        cells += [estimate_text(estimate, metric, notes, is_bold=is_best), of_paper(row.published, metric, notes)]
    return cells


def _best(found: BoundTable, metric: Metric) -> float | None:
    """The best value of any bound; baselines are not bounds."""
    values = [row.metrics[metric.name].value for row in found.rows if row.kind == "bound"]
    known = [value for value in values if value is not None]
    return (max if metric.higher_is_better else min)(known) if known else None


def _test(test: PairedTest, metric: Metric, notes: Footnotes) -> str:
    """+0.21 [+0.05, +0.40] p = 0.012: bold if it is significant."""
    if test.difference is None:
        return notes.missing(test.reason)
    shown = factor if metric is MEDIAN_RATIO else difference
    text = shown(test.difference)
    if test.low is None or test.high is None or test.p_value_holm is None:
        return text + notes.mark(f"no interval: {test.reason}")
    text = f"**{text}**" if test.p_value_holm < SIGNIFICANT else text
    return f"{text} {interval(shown(test.low), shown(test.high))} {unbroken(f'p = {test.p_value_holm:.3f}')}"


def _without(value: float | None, game: str | None, reason: str | None, notes: Footnotes) -> str:
    if value is None:
        return notes.missing(reason)
    return f"{number(value)} without {escaped(game)}" if game is not None else number(value)
