"""tables.md: every table of the paper from one study, with intervals and the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.evaluation import published
from efhorizon.evaluation.bound_table import SIGNIFICANT, BoundTable
from efhorizon.evaluation.by_suite import ALGORITHMS, RunCounts, SuiteBounds, SuiteCounts, counts_of, suite_counts
from efhorizon.evaluation.changes import ChangeTable
from efhorizon.evaluation.records import EXPLORATION, SHAPED, MdpSummary
from efhorizon.evaluation.resampling import LEAST_FAMILIES
from efhorizon.evaluation.solvability import MinKDistribution, SolvabilityTable
from efhorizon.evaluation.tables import Tables
from efhorizon.render.charts.marks import suite_title
from efhorizon.render.learning_curves import ALGORITHM_TITLES, GORP_RUNS
from efhorizon.render.markdown.bound_sections import (
    bound_section,
    leave_one_out_section,
    tests_section,
)
from efhorizon.render.markdown.change_sections import change_section, grades_section, labels_section, policies_section
from efhorizon.render.markdown.text import Footnotes, blocks, escaped, number, table

_RULES = (
    "The paper ends a run of PPO when more than half of its last 100 training episodes were optimal, and random play "
    "does that too where optimal episodes are frequent: such a run says nothing about learning. So the tables count "
    "only networks that have had a gradient step, on MDPs that random play does not solve by the same rule within the "
    "budget; [by the paper's rule](#the-same-by-the-papers-rule) they follow below, and the notes say what is left out."
)
_TABLE_2 = (
    "Spearman's correlation and the median ratio are over the MDPs that the algorithm solved. Concordance (not in the "
    "paper) keeps unsolved MDPs: of the pairs of which we know which is harder, the share that the predictions put in "
    "the right order, ties counting half. AUROC and accuracy say how well the bound separates solved from unsolved "
    "MDPs, which is one question only if all runs had the same budget. Bold: significantly better than every other "
    "bound. The effective horizon is exact where [lists.md](lists.md) says so; the paper's is an upper bound."
)
_NO_SHAPING = "No pair of an MDP and its shaped version was run."
_NO_EXPLORATION = "No MDP was run with an exploration policy other than the uniform one."


@dataclass(frozen=True)
class Study:
    """What the page is about."""

    summaries: Sequence[MdpSummary]  # by the first rule
    all_summaries: Sequence[MdpSummary]  # by the paper's
    tables: Tables
    by_papers_rule: Tables
    suites: Sequence[SuiteBounds]
    runs: Sequence[RunCounts]
    pictures: Mapping[str, str]  # Markdown of the sections bounds-ppo, bounds-dqn, min_k, exploration, graded


def tables_page(study: Study) -> str:
    tables = study.tables
    return (
        blocks(
            "# Which theory predicts practice: the tables of the study",
            "Written by `efhorizon evaluate RESULTS --publish DIR`: the same study gives the same bytes. What each "
            "number means: [evaluation.md](../evaluation.md). All MDPs, one by one: [lists.md](lists.md).",
            f"In brackets: the {tables.level:.0%} interval from {tables.num_resamples:,} bootstrap resamples of whole "
            f"families of MDPs (seed {tables.seed}). The columns *paper* are from Laidlaw, Russell and Dragan (2023): "
            f"{published.NUM_MDPS} MDPs of Atari, Procgen and MiniGrid together, {PAPER_STEPS:,} timesteps per run.",
            "## What counts as solved",
            _RULES,
            "## What was run",
            _counts_section(study),
            "## Table 2: how well each bound predicts what PPO and DQN need",
            _TABLE_2,
            *(
                bound_section(
                    each,
                    title=ALGORITHM_TITLES[each.algorithm],
                    pictures=study.pictures.get(f"bounds-{each.algorithm}", ""),
                )
                for each in tables.bounds
            ),
            "## Table 2 for each suite alone",
            _suites_section(study.suites),
            "## The effective horizon against every other predictor",
            "The metric of the effective horizon minus that of the row; for the median ratio, the factor by which it "
            "is larger or smaller (smaller is better). All on the same resamples; p-values are adjusted over the rows "
            f"by Holm's method, and then over all metrics and algorithms of the section: with all suites together, or "
            f"with the suites alone. Bold: the second p is below {SIGNIFICANT}.",
            *(tests_section(each, title=ALGORITHM_TITLES[each.algorithm]) for each in tables.bounds),
            *_suite_tests(study.suites),
            "## Leaving one family out",
            "How accurately a threshold fitted on all other families predicts which MDPs of the one left out are "
            "solved, and the range of Spearman's correlation when any one family is left out.",
            *(leave_one_out_section(each) for each in tables.bounds),
            "## Table 1: is acting greedily on the random policy's Q-function optimal?",
            *(_solvability_section(each) for each in tables.solvability),
            "## The least k for which an MDP is k-QVI-solvable",
            _min_k_section(tables.min_k),
            study.pictures.get("min_k", ""),
            "## Table 3a: reward shaping",
            _changes_section(tables.shaping, _NO_SHAPING),
            "## Table 3b: exploration policies",
            policies_section(tables, _changes_section(tables.exploration, _NO_EXPLORATION), study.pictures),
            "## The same by the paper's rule",
            "Table 2, Table 1 and Table 3 again, with every run that passed the paper's rule, untrained or not.",
            *_by_papers_rule(study.by_papers_rule),
            "## Notes" if tables.notes else "",
            "\n".join(f"- {escaped(note)}" for note in tables.notes),
        )
        + "\n"
    )


def _by_papers_rule(tables: Tables) -> list[str]:
    return [
        "## Table 2, the paper's rule",
        *(bound_section(each, title=f"{ALGORITHM_TITLES[each.algorithm]}, the paper's rule") for each in tables.bounds),
        "## Table 1, the paper's rule",
        *(_solvability_section(each, ", the paper's rule") for each in tables.solvability),
        "## Table 3a, the paper's rule",
        _changes_section(tables.shaping, _NO_SHAPING, ", the paper's rule"),
        "## Table 3b, the paper's rule",
        _changes_section(tables.exploration, _NO_EXPLORATION, ", the paper's rule"),
        *labels_section(tables, ", the paper's rule"),
        *grades_section(tables.graded, ", the paper's rule"),
    ]


def _counts_section(study: Study) -> str:
    tables = study.tables
    counts = suite_counts(study.summaries)
    lines = [_counts_line(each, escaped(suite_title(each.suite))) for each in counts]
    if len(counts) > 1:
        lines.append(_counts_line(counts_of("", study.summaries), "**all**"))
    lines.append(_counts_line(counts_of("", study.all_summaries), "all, the paper's rule"))
    notes = Footnotes()
    of_paper = [f"{published.NUM_SOLVED[each]} of {published.NUM_MDPS}" for each in published.NUM_SOLVED]
    silent = notes.missing("the paper does not say")
    lines.append(["the paper", str(published.NUM_MDPS), silent, *of_paper, silent])
    header = ["suite", "MDPs", "families", *(f"{ALGORITHM_TITLES[each]} solved" for each in ALGORITHMS)]
    either = (
        f"At least one of PPO and DQN solved {tables.counts.num_solved_by_either} "
        f"(the paper: {published.NUM_SOLVED_BY_EITHER} of {published.NUM_MDPS})."
    )
    kinds = [each.type for each in study.summaries]
    more = [
        f"{kinds.count(kind)} {what}"
        for kind, what in ((SHAPED, "with shaped rewards"), (EXPLORATION, "with another exploration policy"))
        if kind in kinds
    ]
    return blocks(
        table(header, lines),
        notes.text(),
        either,
        f"Not counted here, because only Table 3 uses them: {' and '.join(more)}." if more else "",
        _runs_table(study.runs),
    )


def _counts_line(counts: SuiteCounts, title: str) -> list[str]:
    solved = [
        f"{counts.num_solved[each]} of {counts.num_run[each]}" if counts.num_run[each] else "not run"
        for each in ALGORITHMS
    ]
    return [title, str(counts.num_mdps), str(counts.num_families), *solved]


def _runs_table(runs: Sequence[RunCounts]) -> str:
    if not runs:
        return "There are no rows of single runs, because the study is a summary."
    lines = [
        [
            escaped(ALGORITHM_TITLES.get(each.algorithm, each.algorithm)),
            str(each.num_mdps),
            f"{each.num_rows:,}",
            ", ".join(map(escaped, each.settings)),
            _span(*each.seeds),
            _span(*each.budgets),
        ]
        for each in runs
    ]
    header = ["algorithm", "MDPs, all kinds", "rows", "settings", "rows per setting", "timesteps per run, at most"]
    return blocks(table(header, lines), f"A row of GORP stands for {GORP_RUNS} runs, one of PPO or DQN for one.")


def _span(low: float, high: float) -> str:
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"


def _suites_section(suites: Sequence[SuiteBounds]) -> str:
    if len(suites) == 1:
        return (
            f"All MDPs are from {escaped(suite_title(suites[0].suite))}: the tables above are about this suite alone."
        )
    parts = [
        "The paper has no numbers for single suites. The numbers next to ours are those of all its suites together, so "
        "the two are not about the same MDPs."
    ]
    for suite in suites:
        for each in suite.bounds:
            title = _suite_title(suite, each)
            if each.num_families >= LEAST_FAMILIES:
                parts.append(bound_section(each, title=title))
            else:
                solved = f"{each.num_solved} of {each.num_mdps} MDPs solved" if each.num_mdps else "Not run"
                few = f"{solved}. Bounds cannot be compared with fewer than {LEAST_FAMILIES} families."
                parts.append(blocks(f"### {title}", few))
    return blocks(*parts)


def _suite_tests(suites: Sequence[SuiteBounds]) -> list[str]:
    """The same for each suite with enough families, if there are several suites."""
    return [
        tests_section(each, title=_suite_title(suite, each))
        for suite in suites
        for each in suite.bounds
        if len(suites) > 1 and each.num_families >= LEAST_FAMILIES
    ]


def _suite_title(suite: SuiteBounds, found: BoundTable) -> str:
    return f"{escaped(suite_title(suite.suite))}, {ALGORITHM_TITLES[found.algorithm]}"


def _solvability_section(found: SolvabilityTable, rule: str = "") -> str:
    name = ALGORITHM_TITLES[found.algorithm]
    cells = {(cell.is_1_qvi_solvable, cell.is_solved): cell for cell in found.cells}
    if not any(cell.count for cell in found.cells):
        return blocks(f"### {name}{rule}", "Not run, or the least k is unknown for every MDP.")
    has_paper = found.published_agreement is not None
    header = ["greedy is optimal"]
    for column in (f"{name} solves it", f"{name} does not"):
        header += [column, "paper"] if has_paper else [column]
    rows = []
    for is_solvable, title in ((True, "yes"), (False, "no")):
        row = [title]
        for is_solved in (True, False):
            cell = cells[is_solvable, is_solved]
            row += [str(cell.count), str(cell.published)] if has_paper else [str(cell.count)]
        rows.append(row)
    alike = f"Fraction of MDPs on which the two agree: {number(found.agreement)}"
    alike += f" (paper: {number(found.published_agreement)})." if has_paper else " (the paper's table is about PPO)."
    alike += f" Always predicting the more frequent outcome is right on {number(found.majority)} of them."
    if found.p_value is not None:
        alike += f" Fisher's exact test of whether the two are related at all: p = {found.p_value:.2g}."
    left_out = f"{found.num_left_out} MDPs do not count: {name} was not run on them, or their least k is unknown."
    exceptions = [
        f"- {what}: {', '.join(map(escaped, cells[key].names))}"
        for key, what in (
            ((True, False), f"greedy is optimal, yet {name} does not solve it"),
            ((False, True), f"greedy is not optimal, yet {name} solves it"),
        )
        if cells[key].names
    ]
    return blocks(
        f"### {name}{rule}", table(header, rows), alike, left_out if found.num_left_out else "", "\n".join(exceptions)
    )


def _min_k_section(distributions: Sequence[MinKDistribution]) -> str:
    """All algorithms have the same MDPs; they differ in what was solved."""
    first = distributions[0]
    if not first.rows:
        return "The least k is unknown for every MDP."
    header = ["least k", "MDPs"]
    for each in distributions:
        name = ALGORITHM_TITLES[each.algorithm]
        header += [f"{name} solved", f"{name} did not", f"{name} not run"]
    rows = []
    for place, row in enumerate(first.rows):
        of_algorithms = [each.rows[place] for each in distributions]
        counts = [count for each in of_algorithms for count in (each.num_solved, each.num_unsolved, each.num_not_run)]
        rows.append([str(row.k), str(row.count), *map(str, counts)])
    share = f"Fraction of MDPs with k = 1: {number(first.share_of_1)} (the paper: {first.published_share_of_1})."
    unknown = f" The least k of {first.num_unknown} MDPs is unknown." if first.num_unknown else ""
    return blocks(table(header, rows, num_left=0), share + unknown)


def _changes_section(tables: Sequence[ChangeTable], nothing: str, rule: str = "") -> str:
    used = [each for each in tables if each.num_pairs]
    if not used:
        return nothing
    explained = (
        "The factor by which the sample complexity changes, as a bound predicts it and as it was measured, over the "
        "pairs of MDPs of which both were solved. *No change* predicts a factor of 1 for every pair; the "
        "empirical rows predict the factor for another algorithm."
    )
    return blocks(explained, *(change_section(each, f"{ALGORITHM_TITLES[each.algorithm]}{rule}") for each in used))
