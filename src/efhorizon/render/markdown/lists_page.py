"""lists.md: how each table was made and checked, and the three lists of the paper's Appendix G; one line per MDP."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import UNSET

from efhorizon.bounds.interval import Interval
from efhorizon.evaluation.appendix_lists import Complexities, Properties, Returns
from efhorizon.evaluation.by_suite import ALGORITHMS
from efhorizon.evaluation.policies import policy_pairs
from efhorizon.evaluation.records import MdpSummary
from efhorizon.evaluation.source import StudyData
from efhorizon.evaluation.tables import Tables
from efhorizon.render.charts.marks import suite_title
from efhorizon.render.html.mdp_page import short_title
from efhorizon.render.learning_curves import ALGORITHM_TITLES
from efhorizon.render.markdown.bound_sections import bound_order
from efhorizon.render.markdown.change_sections import pairs_list
from efhorizon.render.markdown.text import Footnotes, blocks, escaped, from_log10, number, significant, table, unbroken
from efhorizon.render.tie_rules import RULES, horizon_and_m
from efhorizon.study.analysis_record import (
    UNIFORM,
    AnyAnalysis,
    Replay,
    StageSeconds,
    TableFigures,
    TieFigures,
    is_complete,
)
from efhorizon.study.built_tables import BuiltTable

_UNKNOWN, _NOT_RUN = "unknown", "not run"
_NO_RETURN = "not run, or the run ended before its greedy policy was first evaluated"


def lists_page(data: StudyData, tables: Tables) -> str:
    summaries, titles = data.summaries, data.titles
    mdps = {name: each for name, each in data.analyses.items() if each.policy == UNIFORM}
    by_name = {each.name: each for each in summaries}
    present = {name for each in summaries for name in each.sample_complexities}
    algorithms = [name for name in ALGORITHMS if name in present]
    algorithms += sorted(present - set(ALGORITHMS))
    return (
        blocks(
            "# All MDPs of the study",
            "The lists of the paper's Appendix G. Written by `efhorizon evaluate RESULTS --publish DIR`, together with "
            "[tables.md](tables.md).",
            "## Properties",
            "The number of states S (after consolidation), actions A and timesteps T; the least k for which the MDP is "
            "k-QVI-solvable; the effective horizon H (`exact`, or an `upper` bound); the covering length in episodes "
            "(Lemma D.4); and the effective planning window.",
            _properties(tables.properties, by_name),
            *_ties(mdps),
            "## Bounds and sample complexities",
            "In timesteps. *infinite*: the bound does not apply, or promises nothing. *> N*: not solved within N "
            "timesteps.",
            _complexities(tables.complexities, by_name, titles, algorithms),
            "## Returns",
            "The returns of the random and the optimal policy, and for each algorithm the return of its greedy policy "
            "when it was last evaluated: the median over the seeds of its best setting. A PPO run also ends once the "
            "median of its last 100 training episodes is optimal; the greedy policy need not be optimal by then.",
            _returns(tables.returns, algorithms),
            *pairs_list(policy_pairs(data.summaries)),
            "## How the tables were made and checked",
            "The number of raw states of the simulator; what was replayed in a fresh environment, with the same "
            "rewards, ends and screens as in the table: the share of all pairs of a state and an action, and whole "
            "episodes with their steps; and the seconds that the search, the verification and the analysis took. One "
            "search may serve several horizons.",
            _tables(mdps, {built.name: built for built in data.tables}),
            *_not_analyzed(data),
        )
        + "\n"
    )


def _properties(lines: Sequence[Properties], by_name: Mapping[str, MdpSummary]) -> str:
    notes = Footnotes()

    def known(value: str | None) -> str:
        return notes.missing(_UNKNOWN) if value is None else value

    rows = [
        [
            escaped(line.name),
            escaped(suite_title(by_name[line.name].origin)),
            f"{line.num_states:,}",
            str(line.num_actions),
            str(line.horizon),
            known(None if line.k_min is None else str(line.k_min)),
            known(None if line.effective_horizon is None else number(line.effective_horizon)),
            known(None if line.effective_horizon_kind is None else escaped(line.effective_horizon_kind)),
            known(None if line.covering_length_log10 is None else from_log10(line.covering_length_log10)),
            known(None if line.epw is None else str(line.epw)),
        ]
        for line in lines
    ]
    header = ["MDP", "suite", "S", "A", "T", "least k", "H", "kind", "covering length", "window"]
    return blocks(table(header, rows, num_left=2), notes.text())


def _ties(analyses: Mapping[str, AnyAnalysis]) -> list[str]:
    """The section on rules for ties: MDPs whose effective horizon is not the same with all of them."""
    known = {name: each.figures for name, each in sorted(analyses.items()) if is_complete(each)}
    rows, same, notes = [], 0, Footnotes()
    for name, figures in known.items():
        own, others = figures.effective_horizon, figures.exact_by_ties
        if own.kind != "exact" or others is UNSET:
            continue
        uniform = TieFigures(value=_number(own.value), k=own.k, m=own.m, kind=own.kind)
        found = {rule: others.get(rule, TieFigures()) for rule in RULES} | {"uniform": uniform}
        if len({(each.value, each.k, each.m, each.kind) for each in found.values()}) == 1:
            same += 1
        else:
            rows.append([escaped(name), *(_horizon_cell(each, notes) for each in found.values())])
    if not rows and not same:
        return []
    header = ["MDP", *(f"ties {how}" for how in RULES.values())]
    return [
        "## Ties",
        "If several action sequences look best, the paper does not say which one GORP takes. H above is for a draw at "
        "random. The authors' program takes the one with the lowest index. The worst rule takes a wrong action if one "
        f"is among them. For {same} of the {same + len(rows)} MDPs with an exact H, all three give the same; the "
        "others follow. *≤*: an upper bound.",
        table(header, rows),
        notes.text(),
    ]


def _number(value: float | Interval | None) -> float | None:
    return None if isinstance(value, Interval) else value


def _horizon_cell(figures: TieFigures, notes: Footnotes) -> str:
    if figures.value is None:
        return notes.missing(escaped(figures.reason or _UNKNOWN))
    return unbroken(escaped(horizon_and_m(figures.value, figures.k, figures.m, figures.kind)))


def _complexities(
    lines: Sequence[Complexities],
    by_name: Mapping[str, MdpSummary],
    titles: Mapping[str, str],
    algorithms: Sequence[str],
) -> str:
    notes = Footnotes()
    bounds = sorted({name for line in lines for name in line.bounds_log10}, key=bound_order)
    rows = []
    for line in lines:
        cells = [escaped(line.name)]
        for name in algorithms:
            timesteps = line.sample_complexities.get(name)
            cells.append(
                notes.missing(_NOT_RUN) if timesteps is None else _timesteps(timesteps, by_name[line.name], name)
            )
        for name in bounds:
            logarithm = line.bounds_log10.get(name)
            cells.append(notes.missing(_UNKNOWN) if logarithm is None else from_log10(logarithm))
        rows.append(cells)
    bound_titles = (escaped(short_title(titles.get(name, name))) for name in bounds)
    return blocks(table(["MDP", *map(_algorithm_title, algorithms), *bound_titles], rows), notes.text())


def _timesteps(timesteps: float, summary: MdpSummary, algorithm: str) -> str:
    if math.isfinite(timesteps):
        return f"{timesteps:,.0f}"
    budget = summary.budgets.get(algorithm)
    return "not solved" if budget is None else unbroken(f"> {budget:,.0f}")


def _returns(lines: Sequence[Returns], algorithms: Sequence[str]) -> str:
    notes = Footnotes()

    def known(value: float | None, reason: str) -> str:
        return notes.missing(reason) if value is None else significant(value)

    rows = [
        [
            escaped(line.name),
            known(line.exploration, _UNKNOWN),
            known(line.optimal, _UNKNOWN),
            *(known(line.of_algorithms.get(name), _NO_RETURN) for name in algorithms),
        ]
        for line in lines
    ]
    header = ["MDP", "random", "optimal", *map(_algorithm_title, algorithms)]
    return blocks(table(header, rows), notes.text())


def _tables(analyses: Mapping[str, AnyAnalysis], built: Mapping[str, BuiltTable]) -> str:
    notes = Footnotes()

    def known(value: float | None, form: str) -> str:
        return notes.missing(_UNKNOWN) if value is None else format(value, form)

    rows = []
    for name, analysis in sorted(analyses.items()):
        made, seconds = analysis.table or TableFigures(), analysis.seconds or StageSeconds()
        replay = made.verification if made.verification is not None and made.verification.verified else Replay()
        rows.append(
            [
                escaped(name),
                known(made.num_raw_states, ","),
                _coverage(built.get(name), notes),
                *(
                    notes.missing("not verified") if count is None else f"{count:,}"
                    for count in (replay.episodes, replay.steps)
                ),
                *(known(taken, ",.1f") for taken in (seconds.build, seconds.verify, seconds.analyze)),
            ]
        )
    header = ["MDP", "raw states", "pairs", "episodes", "steps", "search", "verify", "analyze"]
    return blocks(table(header, rows), notes.text())


def _coverage(built: BuiltTable | None, notes: Footnotes) -> str:
    """How many of a table's pairs were replayed."""
    if built is None or built.coverage is None:
        return notes.missing("episodes only: verified by an older version")
    return "all" if built.coverage == 1 else f"{built.coverage:.1%}"


def _not_analyzed(data: StudyData) -> list[str]:
    """The section on tables that were built but not analyzed; nothing if there are none."""
    left = [built for built in data.tables if built.name not in data.analyses]
    if not left:
        return []
    notes = Footnotes()
    rows = []
    for built in left:
        raw = notes.missing(_UNKNOWN) if built.num_raw_states is None else f"{built.num_raw_states:,}"
        replayed = [
            f"{count:,}" if built.is_verified and count is not None else notes.missing("not verified")
            for count in (built.episodes, built.steps)
        ]
        same = "yes" if built.is_degenerate else ""
        rows.append([escaped(built.name), str(built.horizon), f"{built.num_states:,}", raw, *replayed, same])
    verified = sum(built.is_verified for built in data.tables)
    whole = sum(built.is_verified and built.coverage == 1 for built in data.tables)
    header = ["MDP", "T", "S", "raw states", "episodes", "steps", "every action sequence earns the same"]
    return [
        "## Tables that were built but not analyzed",
        f"{len(data.tables)} tables were built in all. {verified} of them were verified: {whole} with every pair of a "
        "state and an action, the others by episodes that were replayed in a fresh environment; nothing differed. The "
        "following ones were not analyzed.",
        table(header, rows),
        notes.text(),
    ]


def _algorithm_title(algorithm: str) -> str:
    return ALGORITHM_TITLES.get(algorithm) or escaped(algorithm)
