"""The front page: which theory predicts practice, in tables and charts, each number beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from markupsafe import Markup

from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.evaluation import published
from efhorizon.evaluation.bound_table import KINDS, BoundRow, BoundTable, Kind
from efhorizon.evaluation.changes import ChangeTable
from efhorizon.evaluation.formulas import EFFECTIVE_HORIZON
from efhorizon.evaluation.metrics import METRICS, Metric
from efhorizon.evaluation.records import DEEP_RL, is_main
from efhorizon.evaluation.resampling import Estimate
from efhorizon.evaluation.rules import Rule, under
from efhorizon.evaluation.solvability import MinKDistribution
from efhorizon.evaluation.tables import Tables
from efhorizon.render import numbers
from efhorizon.render.charts import marks
from efhorizon.render.charts.bars import Bar, min_k_chart
from efhorizon.render.charts.concept import concept
from efhorizon.render.charts.scatter import Point, scatter
from efhorizon.render.html.entries import MdpEntry
from efhorizon.render.html.mdp_page import Fact, short_title
from efhorizon.render.html.names import page_link, slug
from efhorizon.render.html.policy_changes import front_changes, is_variant
from efhorizon.render.learning_curves import ALGORITHM_TITLES

OTHER_TITLE = "other deep RL algorithm, empirical"
_LARGE, _SMALL = (740, 640), (360, 300)  # pixels of a scatter chart
_MAX_NAMES = 3  # of bounds, in a sentence
METRIC_TITLES = {
    "correlation": "correl.",
    "median_ratio_log10": "ratio",
    "auroc": "AUROC",
    "accuracy": "acc.",
    "concordance": "conc.",
}


@dataclass(frozen=True)
class MetricCell:
    """One metric of one predictor."""

    value: str
    interval: str | None
    paper: str | None
    reason: str | None
    is_best: bool


@dataclass(frozen=True)
class MetricLine:
    title: str
    source: str  # theorem
    is_own: bool
    groups: tuple[tuple[MetricCell, ...], ...]  # one per algorithm


@dataclass(frozen=True)
class ChangeLines:
    """Table 3: bounds down, algorithms across."""

    tables: list[tuple[str, ChangeTable]]  # with the algorithm's title
    lines: list[
        tuple[str, bool, list[tuple[MetricCell, MetricCell]]]
    ]  # title, whether it is the effective horizon, cells by table


@dataclass(frozen=True)
class ScatterFigure:
    bound: str
    algorithm: str
    title: str
    metrics: str
    of_paper: str
    picture: Markup
    plain: Markup  # without links, for documents
    is_large: bool


def front_page(
    entries: Sequence[MdpEntry],
    tables: Tables,
    by_papers_rule: Tables,
    titles: Mapping[str, str],
    notes: Sequence[str],
) -> dict[str, Any]:
    """What the template needs."""
    both = [_rule_tables(each) for each in (tables, by_papers_rule)]
    mdps = [entry for entry in entries if not is_variant(entry)]
    counted = _counted(entries, tables.rule)
    summaries = [entry.summary for entry in counted if entry.summary is not None]
    return {
        "num_mdps": len(mdps),
        "suites": _suite_counts(mdps),
        "num_variants": len(entries) - len(mdps),
        "concept": concept(),
        "takeaway": takeaway(tables),
        "facts": facts(tables, mdps),
        "algorithms": [
            (table.algorithm, ALGORITHM_TITLES[table.algorithm]) for table in tables.bounds if table.num_mdps
        ],
        "metrics": [(metric.name, METRIC_TITLES.get(metric.name, metric.title)) for metric in METRICS],
        "headline": both[0],
        "by_papers_rule": both[1],
        "tests": paired_tests(tables.bounds, titles),
        "leave_one_out": leave_one_out(tables.bounds),
        "scatters": scatters(counted, tables.bounds, titles),
        **front_changes(summaries, tables, titles),
        "min_k_chart": _min_k_chart(tables.min_k),
        "min_k": tables.min_k[0] if tables.min_k else None,
        "num_resamples": tables.num_resamples,
        "level": numbers.percent(tables.level),
        "notes": list(dict.fromkeys([*tables.notes, *notes])),
        "published": published,
    }


def _rule_tables(tables: Tables) -> dict[str, Any]:
    """Tables 1 to 3 by one rule."""
    lines = metric_lines(tables.bounds)
    return {
        "metric_lines": lines,
        "leaders": [line for table in tables.bounds for line in _leaders(table)],
        "reasons": sorted({cell.reason for line in lines for group in line.groups for cell in group if cell.reason}),
        "solvability": next((table for table in tables.solvability if any(cell.count for cell in table.cells)), None),
        "shaping": change_lines(tables.shaping),
        "exploration": change_lines(tables.exploration),
    }


def _leaders(table: BoundTable) -> list[tuple[str, str, str, str]]:
    """Algorithm, metric, best bound, and those tied with it."""
    titles = {row.name: short_title(row.title) for row in table.rows if row.kind == "bound"}
    lines = []
    for metric in METRICS:
        if leaders := table.leaders[metric.name]:
            best, *tied = (titles[name] for name in leaders)
            others = "; ".join(tied) or "none: it is significantly better than every other bound"
            lines.append((ALGORITHM_TITLES[table.algorithm], metric.title, best, others))
    return lines


def _counted(entries: Sequence[MdpEntry], rule: Rule) -> list[MdpEntry]:
    """The MDPs with the sample complexities that count by the rule."""
    return [
        entry if entry.summary is None else replace(entry, summary=under(rule, [entry.summary])[0]) for entry in entries
    ]


def takeaway(tables: Tables) -> list[str]:
    """What the study says, in one sentence for each algorithm; none without runs."""
    found = []
    for table in tables.bounds:
        own = next((row for row in table.rows if row.name == EFFECTIVE_HORIZON), None)
        if not table.num_mdps or own is None:
            continue
        name, solved = ALGORITHM_TITLES[table.algorithm], tables.counts.num_solved[table.algorithm]
        sentence = f"{name} solves {solved} of {numbers.counted(table.num_mdps, 'MDP')}{_within(table.budgets)}."
        correlation, ratio = (own.metrics[metric] for metric in ("correlation", "median_ratio_log10"))
        if correlation.value is not None and ratio.value is not None:
            sentence += (
                f" The effective horizon ranks what it needs with a correlation of {numbers.decimal(correlation.value)}"
                f"{_interval(correlation)} and misses the number by a factor of {numbers.ratio(ratio.value)} in the"
                f" median.{_tied(table)}"
            )
        found.append(sentence)
    return found


def _within(budgets: tuple[float, float] | None) -> str:
    if budgets is None:
        return ""
    low, high = (numbers.short_steps(each) for each in budgets)
    return f" within {low} timesteps" if low == high else f" within {low} to {high} timesteps"


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" ({numbers.decimal(estimate.low)} to {numbers.decimal(estimate.high)})"


def _tied(table: BoundTable) -> str:
    """Which other bounds are tied with it: of all of them one is the best, and no other significantly worse."""
    leaders = table.leaders["correlation"]
    titles = {row.name: short_title(row.title) for row in table.rows}
    others = [titles[name] for name in leaders if name != EFFECTIVE_HORIZON]
    if not leaders or leaders == (EFFECTIVE_HORIZON,):
        return ""
    if EFFECTIVE_HORIZON not in leaders:
        return f" Better at ranking: {', '.join(others)}."
    if len(others) > _MAX_NAMES:
        return f" In ranking it is tied with {len(others)} other bounds: the study cannot tell which is best."
    return f" In ranking it is tied with: {', '.join(others)}."


def facts(tables: Tables, mdps: Sequence[MdpEntry]) -> list[Fact]:
    """The counts, and why they differ; `mdps` are all of the study, those with a policy to start from aside."""
    counts = tables.counts
    compared = Fact(
        "MDPs compared", str(counts.num_mdps), _left_out(mdps, counts.num_mdps), str(counts.published_num_mdps)
    )
    found = [compared]
    for algorithm in DEEP_RL:
        run = counts.num_run[algorithm]
        solved = f"{counts.num_solved[algorithm]} of {run}" if run else "not run"
        paper = f"{counts.published_num_solved[algorithm]} of {counts.published_num_mdps}"
        others = counts.num_mdps - run
        note = f"the other {others}: not run, or solved by random play" if run and others else None
        found.append(Fact(f"solved by {ALGORITHM_TITLES[algorithm]}", solved, note, paper))
    if any(counts.num_run.values()):
        paper = f"{counts.published_num_solved_by_either} of {counts.published_num_mdps}"
        found.append(Fact("solved by either", str(counts.num_solved_by_either), paper=paper))
    for distribution in tables.min_k[:1]:
        share = numbers.percent(distribution.share_of_1)
        found.append(Fact("greedy on random play is optimal (k = 1)", share, paper=distribution.published_share_of_1))
    budgets = [table.budgets for table in tables.bounds if table.budgets is not None]
    if budgets:
        low, high = min(low for low, _ in budgets), max(high for _, high in budgets)
        shown = (
            numbers.short_steps(low) if low == high else f"{numbers.short_steps(low)} to {numbers.short_steps(high)}"
        )
        found.append(Fact("timesteps per run, at most", shown, paper=numbers.short_steps(PAPER_STEPS)))
    return found


def _left_out(mdps: Sequence[MdpEntry], num_compared: int) -> str | None:
    """Which MDPs of the study are not among those that are compared."""
    num_unfinished = sum(entry.summary is None for entry in mdps)
    num_shaped = len(mdps) - num_unfinished - num_compared
    parts = [f"{num_shaped} with shaped rewards"] * (num_shaped > 0) + [f"{num_unfinished} unfinished"] * (
        num_unfinished > 0
    )
    return f"of {len(mdps)}; the others: {', '.join(parts)}" if parts else None


def metric_lines(tables: Sequence[BoundTable]) -> list[MetricLine]:
    """Table 2: predictors down, algorithms and metrics across."""
    used = [table for table in tables if table.num_mdps]
    rows = [{_key(row): row for row in table.rows} for table in used]
    keys = dict.fromkeys(key for of_table in rows for key in of_table)
    lines = []
    for key in sorted(keys, key=lambda key: KINDS.index(key[0])):  # baselines last, else as they come
        found = [of_table.get(key) for of_table in rows]
        row = next(row for row in found if row is not None)
        groups = tuple(
            tuple(_cell(each, metric, table.leaders[metric.name]) for metric in METRICS)
            for each, table in zip(found, used, strict=True)
        )
        title, _, source = row.title.partition(" (")
        title = OTHER_TITLE if row.name == published.OTHER_ALGORITHM else title
        lines.append(MetricLine(title, source.rstrip(")"), row.name == EFFECTIVE_HORIZON, groups))
    return lines


def paired_tests(tables: Sequence[BoundTable], titles: Mapping[str, str]) -> list[tuple[str, str, str, str, str, str]]:
    """Algorithm, rival, metric, difference, interval, adjusted p: the effective horizon against every other row."""
    lines = []
    shown = {metric.name: METRIC_TITLES.get(metric.name, metric.title) for metric in METRICS}
    for table in tables:
        of_rows = {row.name: row.title for row in table.rows}
        for test in table.tests:
            if test.difference is None or test.metric not in ("correlation", "auroc", "concordance"):
                continue
            rival = short_title(of_rows.get(test.second) or titles.get(test.second, test.second))
            interval = "" if test.low is None else f"{numbers.decimal(test.low)} to {numbers.decimal(test.high)}"
            difference = ("+" if test.difference > 0 else "") + numbers.decimal(test.difference)
            adjusted = (test.p_value_holm, test.p_value_all)
            p_value = ", ".join(numbers.MISSING if each is None else numbers.significant(each, 2) for each in adjusted)
            lines.append((ALGORITHM_TITLES[table.algorithm], rival, shown[test.metric], difference, interval, p_value))
    return lines


def leave_one_out(tables: Sequence[BoundTable]) -> list[tuple[str, str, str, str]]:
    """Algorithm, predictor, accuracy on families left out, range of the correlation without one family."""
    lines = []
    for table in tables:
        for row in table.rows:
            left = row.leave_one_out
            low, high = numbers.decimal(left.correlation_low), numbers.decimal(left.correlation_high)
            span = numbers.MISSING if left.correlation_low is None else f"{low} to {high}"
            lines.append(
                (ALGORITHM_TITLES[table.algorithm], short_title(row.title), numbers.decimal(left.accuracy), span)
            )
    return lines


def scatters(
    entries: Sequence[MdpEntry], tables: Sequence[BoundTable], titles: Mapping[str, str]
) -> list[ScatterFigure]:
    """A chart for each algorithm and bound, the effective horizon's first and large."""
    figures = []
    for table in tables:
        rows = [row for row in table.rows if row.kind == "bound"]
        for row in sorted(rows, key=lambda row: row.name != EFFECTIVE_HORIZON):
            points = _points(entries, row.name, table.algorithm)
            if not any(math.isfinite(point.bound) for point in points):
                continue
            is_large = row.name == EFFECTIVE_HORIZON
            width, height = _LARGE if is_large else _SMALL
            title = short_title(titles.get(row.name, row.title))
            draw = partial(
                scatter, bound_title=title, algorithm=ALGORITHM_TITLES[table.algorithm], width=width, height=height
            )
            linked = draw(points, with_legend=is_large)
            plain = draw([replace(point, link=None) for point in points], with_legend=True)
            figures.append(
                ScatterFigure(row.name, table.algorithm, title, *_metrics_texts(row), linked, plain, is_large)
            )
    return figures


def change_lines(tables: Sequence[ChangeTable]) -> ChangeLines | None:
    """Table 3: None where there are no pairs."""
    used = [table for table in tables if table.num_pairs]
    if not used:
        return None
    titles = {row.name: row.title for table in used for row in table.rows}
    titles = {name: OTHER_TITLE if name == published.OTHER_ALGORITHM else title for name, title in titles.items()}
    lines = []
    for name, title in titles.items():
        cells: list[tuple[MetricCell, MetricCell]] = []
        for table in used:
            row = next((row for row in table.rows if row.name == name), None)
            correlation, ratio = (
                _estimate_cell(None if row is None else row.metrics.get(metric), metric, row.published if row else None)
                for metric in ("correlation", "median_ratio_log10")
            )
            cells.append((correlation, ratio))
        lines.append((short_title(title), name == EFFECTIVE_HORIZON, cells))
    return ChangeLines([(ALGORITHM_TITLES[table.algorithm], table) for table in used], lines)


def _key(row: BoundRow) -> tuple[Kind, str]:
    return row.kind, row.name


def _cell(row: BoundRow | None, metric: Metric, leaders: Sequence[str]) -> MetricCell:
    if row is None:
        return _estimate_cell(None, metric.name, None)
    cell = _estimate_cell(row.metrics[metric.name], metric.name, row.published)
    return replace(cell, is_best=row.kind == "bound" and tuple(leaders) == (row.name,))


def _estimate_cell(estimate: Estimate | None, metric: str, paper: Mapping[str, float] | None) -> MetricCell:
    def shown(value: float | None) -> str:
        if metric == "median_ratio_log10":
            return numbers.ratio(value)
        return numbers.decimal(value)

    of_paper = None if paper is None or metric not in paper else shown(paper[metric])
    if estimate is None:
        return MetricCell(numbers.MISSING, None, of_paper, None, False)
    is_negative = estimate.low is not None and estimate.low < 0 and metric != "median_ratio_log10"
    between = " to " if is_negative else numbers.MISSING  # a dash before a minus is hard to read
    interval = None if estimate.low is None else f"{shown(estimate.low)}{between}{shown(estimate.high)}"
    return MetricCell(shown(estimate.value), interval, of_paper, estimate.reason, False)


def _metrics_texts(row: BoundRow) -> tuple[str, str]:
    """Correlation and ratio, ours and the paper's."""
    correlation, ratio = row.metrics["correlation"].value, row.metrics["median_ratio_log10"].value
    shown = f"correlation {numbers.decimal(correlation)}, ratio {numbers.ratio(ratio)}"
    if row.published is None:
        return shown, "not in the paper"
    of_paper = numbers.decimal(row.published["correlation"]), numbers.ratio(row.published["median_ratio_log10"])
    return shown, f"paper {of_paper[0]}, {of_paper[1]}"


def _points(entries: Sequence[MdpEntry], bound: str, algorithm: str) -> list[Point]:
    points = []
    for entry in entries:
        if entry.summary is None or not is_main(entry.summary) or bound not in entry.summary.bounds:
            continue
        steps = entry.summary.sample_complexities.get(algorithm)
        if steps is not None:
            key = slug(entry.name).rpartition("-")[2]
            points.append(
                Point(entry.name, entry.suite, entry.summary.bounds[bound], steps, page_link(entry.name), key)
            )
    return sorted(points, key=lambda point: point.bound)


def _min_k_chart(distributions: Sequence[MinKDistribution]) -> Markup | None:
    ppo = next((each for each in distributions if each.algorithm == "ppo"), None)
    if ppo is None or not (ppo.rows or ppo.num_unknown):
        return None
    bars = [Bar(str(row.k), row.num_solved, row.num_unsolved, row.num_not_run) for row in ppo.rows]
    return min_k_chart(bars) if bars else None


def _suite_counts(entries: Sequence[MdpEntry]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for entry in entries:
        title = marks.suite_title(entry.suite)
        counts[title] = counts.get(title, 0) + 1
    return list(counts.items())
