"""`efhorizon evaluate`: the paper's tables from a study, each number with its interval and the paper's beside it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from efhorizon.cli import messages, print_json
from efhorizon.errors import EfhorizonError
from efhorizon.evaluation.bound_table import BoundRow, BoundTable
from efhorizon.evaluation.changes import ChangeTable
from efhorizon.evaluation.metrics import CORRELATION, MEDIAN_RATIO, METRICS, Metric
from efhorizon.evaluation.resampling import Estimate, PairedTest
from efhorizon.evaluation.solvability import MinKDistribution, SolvabilityTable
from efhorizon.evaluation.source import StudyData, study_data, write_export
from efhorizon.evaluation.tables import Tables, all_tables, plain
from efhorizon.render.numbers import log10_text, number_text, timesteps_text
from efhorizon.suites.simulator import MissingExtraError

_FILE_WIDTH = 170  # of a table that no terminal has to show
_MAX_LISTED = 60  # MDPs; longer lists are for programs
_SIGNIFICANT = 0.05


def run(options: argparse.Namespace) -> int:
    for name, least in (("resamples", 1), ("seed", 0)):
        if getattr(options, name) < least:
            raise EfhorizonError(f"--{name} must be at least {least}, got {getattr(options, name)}")
    data = study_data(options.path)
    if not data.summaries:
        nothing = f"{options.path}: nothing to evaluate, no complete analysis (efhorizon study makes them)"
        raise EfhorizonError("; ".join((nothing, *data.notes)))
    tables = all_tables(data, num_resamples=options.resamples, seed=options.seed)
    exported = write_export(options.export, data) if options.export else []
    published = _published(options.publish, data, tables) if options.publish else []
    if options.json:
        files = {"exported": [str(path) for path in exported], "published": [str(path) for path in published]}
        print_json({"path": str(options.path), **files, **plain(tables)})
    else:
        print_tables(tables)
    for path in (*exported, *published):
        messages.print(f"wrote {path}", style="dim", markup=False, soft_wrap=True)
    return 0


def _published(folder: Path, data: StudyData, tables: Tables) -> list[Path]:
    """Pages and figures are the report's, which is an extra."""
    if find_spec("jinja2") is None:
        raise MissingExtraError("report", "jinja2")
    from efhorizon.render.markdown import publication, write_publication

    return write_publication(folder, publication(data, tables))


def print_tables(tables: Tables) -> None:
    """Everything on one screen after the other; what has no rows is left out."""
    console = Console(highlight=False, width=None if Console().is_terminal else _FILE_WIDTH)
    counts = tables.counts
    solved = ", ".join(
        f"{algorithm.upper()} solved {number} of {counts.num_run[algorithm]} "
        f"(paper: {counts.published_num_solved[algorithm]} of {counts.published_num_mdps})"
        for algorithm, number in counts.num_solved.items()
    )
    either = f"{counts.num_solved_by_either} (paper: {counts.published_num_solved_by_either})"
    console.print(f"{counts.num_mdps} MDPs; {solved}; at least one of them {either}", soft_wrap=True)
    console.print(
        f"Intervals: {tables.level:.0%}, {tables.num_resamples:,} bootstrap resamples of games, seed {tables.seed}. "
        "In parentheses the paper's number.",
        soft_wrap=True,
    )
    for table in tables.bounds:
        if table.rows:
            _print_bounds(console, table)
            _print_tests(console, table)
            _print_leave_one_out(console, table)
    for solvability, distribution in zip(tables.solvability, tables.min_k, strict=True):
        if any(cell.count for cell in solvability.cells):
            _print_solvability(console, solvability, distribution)
    for number, changes in (("3a: reward shaping", tables.shaping), ("3b: exploration policies", tables.exploration)):
        for change in changes:
            if change.num_pairs:
                _print_changes(console, f"Table {number}", change)
    _print_lists(console, tables)
    if tables.notes:
        _heading(console, "Notes")
        for note in tables.notes:
            console.print(f"- {note}", markup=False, soft_wrap=True)


def _print_bounds(console: Console, table: BoundTable) -> None:
    majority = "" if table.majority is None else f", always telling the more frequent outcome is {table.majority:.2f}"
    _heading(
        console,
        f"Table 2, {table.algorithm.upper()}: {table.num_solved} of {table.num_mdps} MDPs solved, "
        f"{_games(table.num_games)}{majority}",
    )
    shown = _table("", *(metric.title for metric in METRICS))
    reasons: dict[str, None] = {}
    for row in table.rows:
        shown.add_row(escape(row.title), *_cells(row.metrics, row.published, reasons))
        if row.finite_only is not None:
            shown.add_row(
                f"  without its {row.num_infinite} infinite", *_cells(row.finite_only, row.published, reasons)
            )
    console.print(shown)
    for reason in reasons:
        console.print(f"  {reason}", markup=False, soft_wrap=True)


def _print_tests(console: Console, table: BoundTable) -> None:
    others = list(dict.fromkeys(test.second for test in table.tests))
    if all(test.difference is None for test in table.tests):
        return
    title = _titles(table.rows)
    _heading(
        console,
        f"{table.algorithm.upper()}: {title[table.tests[0].first]} against each other row: difference of each metric, "
        f"p-value adjusted by Holm (* below {_SIGNIFICANT})",
    )
    by_name = {(test.second, test.metric): test for test in table.tests}
    shown = _table("", *(metric.title for metric in METRICS))
    for other in others:
        shown.add_row(escape(title[other]), *(_test(by_name[other, metric.name], metric) for metric in METRICS))
    console.print(shown)


def _print_leave_one_out(console: Console, table: BoundTable) -> None:
    if table.num_games < 2:
        return
    _heading(console, f"{table.algorithm.upper()}, leaving one of {_games(table.num_games)} out")
    shown = _table("", "accuracy, threshold from other games", "accuracy in sample", "least correlation", "largest")
    for row in table.rows:
        left = row.leave_one_out
        shown.add_row(
            escape(row.title),
            number_text(left.accuracy),
            number_text(row.metrics["accuracy"].value),
            _without(left.correlation_low, left.correlation_low_without),
            _without(left.correlation_high, left.correlation_high_without),
        )
    console.print(shown)


def _print_solvability(console: Console, table: SolvabilityTable, distribution: MinKDistribution) -> None:
    name = table.algorithm.upper()
    _heading(
        console, f"Table 1: is acting greedily on the random policy's Q-function optimal, and does {name} solve it?"
    )
    shown = _table("greedy is optimal", f"{name} solves", f"{name} does not")
    cells = {(cell.is_1_qvi_solvable, cell.is_solved): cell for cell in table.cells}
    for is_solvable in (True, False):
        row = (cells[is_solvable, is_solved] for is_solved in (True, False))
        texts = (str(cell.count) + ("" if cell.published is None else f" ({cell.published})") for cell in row)
        shown.add_row("yes" if is_solvable else "no", *texts)
    console.print(shown)
    paper = "" if table.published_agreement is None else f" ({table.published_agreement:.2f})"
    left_out = f"; {table.num_left_out} MDPs not counted" if table.num_left_out else ""
    console.print(f"  alike in {number_text(table.agreement)}{paper} of the MDPs{left_out}")
    counts = ", ".join(
        f"k = {row.k}: {row.count} ({row.num_solved} solved by {name})" for row in distribution.rows if row.count
    )
    console.print(
        f"  least k: {counts}; k = 1 in {number_text(distribution.share_of_1)} of the MDPs "
        f"(paper: {distribution.published_share_of_1})",
        soft_wrap=True,
    )


def _print_changes(console: Console, title: str, table: ChangeTable) -> None:
    _heading(
        console,
        f"{title}, {table.algorithm.upper()}: both solved in {table.num_both_solved} of {table.num_pairs} pairs "
        f"({table.num_became_solved} became solved, {table.num_became_unsolved} became unsolved)",
    )
    metrics = (CORRELATION, MEDIAN_RATIO)
    shown = _table("", *(metric.title for metric in metrics))
    reasons: dict[str, None] = {}
    for row in table.rows:
        shown.add_row(escape(row.title), *_cells(row.metrics, row.published, reasons, metrics))
    console.print(shown)
    for reason in reasons:
        console.print(f"  {reason}", markup=False, soft_wrap=True)


def _print_lists(console: Console, tables: Tables) -> None:
    if len(tables.properties) > _MAX_LISTED:
        console.print()
        console.print(
            f"The lists of {len(tables.properties)} MDPs (Appendix G) are in --json and in --export's summary.csv."
        )
        return
    _heading(console, "MDPs: properties")
    shown = _table("", "states", "A", "T", "least k", "H", "kind", "covering length", "EPW")
    for each in tables.properties:
        shown.add_row(
            escape(each.name),
            f"{each.num_states:,}",
            str(each.num_actions),
            str(each.horizon),
            number_text(each.k_min),
            number_text(each.effective_horizon),
            escape(each.effective_horizon_kind or "-"),
            log10_text(each.covering_length_log10),
            number_text(each.epw),
        )
    console.print(shown)
    _heading(console, "MDPs: bounds and sample complexities, in timesteps")
    bounds = list(dict.fromkeys(name for each in tables.complexities for name in each.bounds_log10))
    algorithms = list(dict.fromkeys(name for each in tables.complexities for name in each.sample_complexities))
    shown = _table(
        "", *(escape(name.replace("_", " ")) for name in bounds), *(escape(name.upper()) for name in algorithms)
    )
    for line in tables.complexities:
        shown.add_row(
            escape(line.name),
            *(log10_text(line.bounds_log10.get(name)) for name in bounds),
            *(timesteps_text(line.sample_complexities.get(name)) for name in algorithms),
        )
    console.print(shown)
    _heading(console, "MDPs: returns")
    shown = _table("", "exploring", "optimal", *(escape(name.upper()) for name in algorithms))
    for entry in tables.returns:
        final = (number_text(entry.of_algorithms.get(name), "{:.4g}") for name in algorithms)
        shown.add_row(
            escape(entry.name), number_text(entry.exploration, "{:.4g}"), number_text(entry.optimal, "{:.4g}"), *final
        )
    console.print(shown)


def _cells(
    estimates: Mapping[str, Estimate],
    published: Mapping[str, float] | None,
    reasons: dict[str, None],
    metrics: Sequence[Metric] = METRICS,
) -> list[str]:
    """Two lines a metric: the number with the paper's, and its interval. Reasons are collected for below the table."""
    cells = []
    for metric in metrics:
        found, text = estimates[metric.name], log10_text if metric is MEDIAN_RATIO else number_text
        if found.reason is not None:
            reasons[f"no {metric.title}: {found.reason}"] = None
        elif found.interval_reason is not None:
            reasons[f"no intervals: {found.interval_reason}"] = None
        paper = (published or {}).get(metric.name)
        first = text(found.value) + ("" if paper is None else f" ({text(paper)})")
        cells.append(first if found.low is None else f"{first}\n[dim]{text(found.low)} to {text(found.high)}[/dim]")
    return cells


def _test(test: PairedTest, metric: Metric) -> str:
    if test.difference is None:
        return "-"
    difference = f"{test.difference:+.2f}" if metric is not MEDIAN_RATIO else _factor(test.difference)
    p_value = test.p_value_holm
    if p_value is None:
        return difference
    return f"{difference}  p {p_value:.3f}" + ("*" if p_value < _SIGNIFICANT else " ")


def _factor(log10_difference: float) -> str:
    """By what factor one median ratio is larger or smaller."""
    return ("x " if log10_difference >= 0 else "/ ") + log10_text(abs(log10_difference))


def _without(value: float | None, game: str | None) -> str:
    return "-" if value is None else f"{value:.2f} without {escape(str(game))}"


def _games(count: int) -> str:
    return "1 game" if count == 1 else f"{count} games"


def _titles(rows: Sequence[BoundRow]) -> dict[str, str]:
    return {row.name: row.title for row in rows}


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(text, style="bold", markup=False, soft_wrap=True)


def _table(*columns: str) -> Table:
    table = Table(*columns, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    return table
