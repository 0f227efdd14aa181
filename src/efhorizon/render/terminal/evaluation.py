"""The paper's tables from a study, each number with its interval and the paper's beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from efhorizon.evaluation.bound_table import SIGNIFICANT, BoundTable
from efhorizon.evaluation.changes import ChangeTable
from efhorizon.evaluation.metrics import CORRELATION, MEDIAN_RATIO, METRICS, Metric
from efhorizon.evaluation.resampling import Estimate, PairedTest
from efhorizon.evaluation.rules import RULE_TITLES
from efhorizon.evaluation.solvability import MinKDistribution, SolvabilityTable
from efhorizon.evaluation.tables import Tables
from efhorizon.render import numbers
from efhorizon.render.learning_curves import ALGORITHM_TITLES
from efhorizon.render.numbers import MISSING, counted, decimal
from efhorizon.render.terminal.layout import Parts, heading, literal, table

_MAX_LISTED = 60  # MDPs; longer lists are for programs
_WHY = (
    "The paper's rule on training episodes is passed by random play where optimal episodes are frequent; such runs say "
    "nothing about learning."
)


def evaluation(tables: Tables, by_papers_rule: Tables) -> Parts:
    """Everything, one table after the other; tables without rows are left out."""
    yield from _counts(tables)
    yield f"Counted: {RULE_TITLES[tables.rule]}. {_WHY}"
    for bounds in tables.bounds:
        if bounds.rows:
            yield from bound_parts(bounds, "Table 2, ")
            yield from _tests(bounds)
            yield from _leave_one_out(bounds)
    yield from _solvabilities_and_changes(tables)
    if any(bounds.rows for bounds in by_papers_rule.bounds):
        yield from heading("The same by the paper's rule, with untrained networks and what random play solves")
        yield from _counts(by_papers_rule)
        for bounds in by_papers_rule.bounds:
            if bounds.rows:
                yield from bound_parts(bounds, "Table 2, ")
        yield from _solvabilities_and_changes(by_papers_rule)
    yield from _lists(tables)
    if tables.notes:
        yield from heading("Notes")
        yield from (f"- {literal(note)}" for note in tables.notes)


def _solvabilities_and_changes(tables: Tables) -> Parts:
    for solvability, distribution in zip(tables.solvability, tables.min_k, strict=True):
        if any(cell.count for cell in solvability.cells):
            yield from _solvability(solvability, distribution)
    for title, changes in (("3a: reward shaping", tables.shaping), ("3b: exploration policies", tables.exploration)):
        for change in changes:
            if change.num_pairs:
                yield from _changes(f"Table {title}", change)


def _counts(tables: Tables) -> Parts:
    counts = tables.counts
    solved = ", ".join(
        f"{algorithm.upper()} solved {number} of {counts.num_run[algorithm]} "
        f"(paper: {counts.published_num_solved[algorithm]} of {counts.published_num_mdps})"
        for algorithm, number in counts.num_solved.items()
    )
    either = f"{counts.num_solved_by_either} (paper: {counts.published_num_solved_by_either})"
    yield f"{counted(counts.num_mdps, 'MDP')}; {solved}; at least one of them {either}"
    yield (
        f"Intervals: {numbers.percent(tables.level)}, {tables.num_resamples:,} bootstrap resamples of families, "
        f"seed {tables.seed}. In parentheses: the paper's number."
    )


def bound_parts(bounds: BoundTable, title: str = "") -> Parts:
    """Every predictor of one algorithm with every metric."""
    majority = (
        ""
        if bounds.majority is None
        else f", always predicting the more frequent outcome has accuracy {bounds.majority:.2f}"
    )
    yield from heading(
        f"{title}{ALGORITHM_TITLES[bounds.algorithm]}: {bounds.num_solved} of {bounds.num_mdps} MDPs solved, "
        f"{counted(bounds.num_families, 'family', 'families')}{majority}"
    )
    shown = table("", *(metric.title for metric in METRICS))
    reasons: dict[str, None] = {}
    for row in bounds.rows:
        shown.add_row(literal(row.title), *_cells(row.metrics, row.published, reasons))
        if row.finite_only is not None:
            finite = _cells(row.finite_only, row.published, reasons)
            shown.add_row(f"  without its {row.num_infinite} infinite", *finite)
    yield shown
    yield from (f"  {literal(reason)}" for reason in reasons)
    titles = {row.name: row.title.partition(" (")[0] for row in bounds.rows}
    for metric in METRICS:
        if leaders := bounds.leaders[metric.name]:
            best, *tied = (literal(titles[name]) for name in leaders)
            others = f"tied with: {'; '.join(tied)}" if tied else "significantly better than every other bound"
            yield f"  best {metric.title}: {best}; {others}"


def _tests(bounds: BoundTable) -> Parts:
    if all(test.difference is None for test in bounds.tests):
        return
    title = {row.name: row.title for row in bounds.rows}
    yield from heading(
        f"{bounds.algorithm.upper()}: {title[bounds.tests[0].first]} against each other row: difference of each "
        f"metric, p-value adjusted by Holm over the rows, then over all metrics and algorithms (* below {SIGNIFICANT})"
    )
    by_name = {(test.second, test.metric): test for test in bounds.tests}
    shown = table("", *(metric.title for metric in METRICS))
    for other in dict.fromkeys(test.second for test in bounds.tests):
        shown.add_row(literal(title[other]), *(_test(by_name[other, metric.name], metric) for metric in METRICS))
    yield shown


def _leave_one_out(bounds: BoundTable) -> Parts:
    if bounds.num_families < 2:
        return
    yield from heading(
        f"{bounds.algorithm.upper()}, leaving one of {counted(bounds.num_families, 'family', 'families')} out"
    )
    shown = table("", "accuracy, threshold from other families", "accuracy in sample", "least correlation", "largest")
    for row in bounds.rows:
        left = row.leave_one_out
        shown.add_row(
            literal(row.title),
            decimal(left.accuracy),
            decimal(row.metrics["accuracy"].value),
            _without(left.correlation_low, left.correlation_low_without),
            _without(left.correlation_high, left.correlation_high_without),
        )
    yield shown


def _solvability(solvability: SolvabilityTable, distribution: MinKDistribution) -> Parts:
    name = solvability.algorithm.upper()
    yield from heading(
        f"Table 1: is acting greedily on the random policy's Q-function optimal, and does {name} solve it?"
    )
    shown = table("greedy is optimal", f"{name} solves", f"{name} does not")
    cells = {(cell.is_1_qvi_solvable, cell.is_solved): cell for cell in solvability.cells}
    for is_solvable in (True, False):
        row = (cells[is_solvable, is_solved] for is_solved in (True, False))
        texts = (str(cell.count) + ("" if cell.published is None else f" ({cell.published})") for cell in row)
        shown.add_row("yes" if is_solvable else "no", *texts)
    yield shown
    paper = "" if solvability.published_agreement is None else f" ({solvability.published_agreement:.2f})"
    left_out = f"; {solvability.num_left_out} MDPs not counted" if solvability.num_left_out else ""
    yield (
        f"  fraction of MDPs on which the two agree: {decimal(solvability.agreement)}{paper}; always predicting the "
        f"more frequent outcome: {decimal(solvability.majority)}; Fisher's exact test of whether they are related: "
        f"p {solvability.p_value:.2g}{left_out}"
    )
    counts = ", ".join(
        f"k = {row.k}: {row.count} ({row.num_solved} solved by {name})" for row in distribution.rows if row.count
    )
    yield (
        f"  least k: {counts}; k = 1 in {decimal(distribution.share_of_1)} of the MDPs "
        f"(paper: {distribution.published_share_of_1})"
    )


def _changes(title: str, changes: ChangeTable) -> Parts:
    yield from heading(
        f"{title}, {changes.algorithm.upper()}: both solved in {changes.num_both_solved} of {changes.num_pairs} pairs "
        f"({changes.num_became_solved} became solved, {changes.num_became_unsolved} became unsolved)"
    )
    metrics = (CORRELATION, MEDIAN_RATIO)
    shown = table("", *(metric.title for metric in metrics))
    reasons: dict[str, None] = {}
    for row in changes.rows:
        shown.add_row(literal(row.title), *_cells(row.metrics, row.published, reasons, metrics))
    yield shown
    yield from (f"  {literal(reason)}" for reason in reasons)


def _lists(tables: Tables) -> Parts:
    if len(tables.properties) > _MAX_LISTED:
        yield ""
        yield f"The lists of {len(tables.properties)} MDPs (Appendix G) are in --json and in --export's summary.csv."
        return
    yield from heading("MDPs: properties")
    shown = table("", "states", "A", "T", "least k", "H", "kind", "covering length", "EPW")
    for each in tables.properties:
        shown.add_row(
            literal(each.name),
            numbers.count(each.num_states),
            str(each.num_actions),
            str(each.horizon),
            numbers.count(each.k_min),
            decimal(each.effective_horizon),
            literal(each.effective_horizon_kind or MISSING),
            numbers.from_log10(each.covering_length_log10),
            numbers.count(each.epw),
        )
    yield shown
    yield from heading("MDPs: bounds and sample complexities, in timesteps")
    bounds = list(dict.fromkeys(name for each in tables.complexities for name in each.bounds_log10))
    algorithms = list(dict.fromkeys(name for each in tables.complexities for name in each.sample_complexities))
    titles = [literal(name.upper()) for name in algorithms]
    shown = table("", *(literal(name.replace("_", " ")) for name in bounds), *titles)
    for line in tables.complexities:
        shown.add_row(
            literal(line.name),
            *(numbers.from_log10(line.bounds_log10.get(name)) for name in bounds),
            *(numbers.steps_needed(line.sample_complexities.get(name)) for name in algorithms),
        )
    yield shown
    yield from heading("MDPs: returns")
    shown = table("", "exploring", "optimal", *titles)
    for entry in tables.returns:
        found = (entry.exploration, entry.optimal, *(entry.of_algorithms.get(name) for name in algorithms))
        shown.add_row(literal(entry.name), *(numbers.significant(number, 4) for number in found))
    yield shown


def _cells(
    estimates: Mapping[str, Estimate],
    published: Mapping[str, float] | None,
    reasons: dict[str, None],
    metrics: Sequence[Metric] = METRICS,
) -> list[str]:
    """Two lines per metric: the number with the paper's, and its interval. Reasons go below the table."""
    cells = []
    for metric in metrics:
        found = estimates[metric.name]
        if found.reason is not None:
            reasons[f"no {metric.title}: {found.reason}"] = None
        elif found.interval_reason is not None:
            reasons[f"no intervals: {found.interval_reason}"] = None
        paper = (published or {}).get(metric.name)
        first = _metric(found.value, metric) + ("" if paper is None else f" ({_metric(paper, metric)})")
        between = f"\n[dim]{_metric(found.low, metric)} to {_metric(found.high, metric)}[/dim]"
        cells.append(first if found.low is None else first + between)
    return cells


def _metric(value: float | None, metric: Metric) -> str:
    return numbers.ratio(value) if metric is MEDIAN_RATIO else decimal(value)


def _test(test: PairedTest, metric: Metric) -> str:
    if test.difference is None:
        return MISSING
    sign = "+" if test.difference >= 0 else ""
    difference = _factor(test.difference) if metric is MEDIAN_RATIO else sign + decimal(test.difference)
    if test.p_value_holm is None or test.p_value_all is None:
        return difference
    mark = "*" if test.p_value_all < SIGNIFICANT else " "
    return f"{difference}  p {test.p_value_holm:.3f}, {test.p_value_all:.3f}{mark}"


def _factor(log10_difference: float) -> str:
    """By what factor one median ratio is larger or smaller."""
    return (numbers.TIMES if log10_difference >= 0 else numbers.DIVIDED) + " " + numbers.ratio(abs(log10_difference))


def _without(value: float | None, family: str | None) -> str:
    return MISSING if value is None else f"{decimal(value)} without {literal(family)}"
