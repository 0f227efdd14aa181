"""The sections on Table 3: its numbers, those of each policy alone, and demonstrators by their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from efhorizon.evaluation import published
from efhorizon.evaluation.changes import NO_CHANGE_ROW, ChangeTable
from efhorizon.evaluation.formulas import COVERING_LENGTH, EFFECTIVE_HORIZON
from efhorizon.evaluation.metrics import CORRELATION, MEDIAN_RATIO
from efhorizon.evaluation.policies import PPO, GradedTable, Harm, PolicyPair, Side
from efhorizon.evaluation.tables import Tables
from efhorizon.render.learning_curves import ALGORITHM_TITLES
from efhorizon.render.markdown.bound_sections import metric_title, of_paper, ordered_rows
from efhorizon.render.markdown.figures import EXPLORATION_SECTION, GRADED_SECTION
from efhorizon.render.markdown.text import (
    Footnotes,
    blocks,
    difference,
    escaped,
    estimate_text,
    factor,
    number,
    significant,
    table,
    unbroken,
)

_POLICIES = (
    "A pair is an MDP, and the same MDP with a policy to start from: the bounds are computed with that policy as "
    "exploration policy, and PPO starts from the network behind it. In the paper the policies come from human play "
    f"(Atari) and from other levels (Procgen), {published.NUM_PRETRAINED} MDPs in all. Every pair: "
    "[lists.md](lists.md#policies-to-start-from)."
)
_GRADES = (
    "Policies cloned from demonstrators that are optimal but for noise: with that probability they take a random "
    "action. Random play is all noise. *H* is the median over MDPs, its change the median difference to random play on "
    "the same MDPs, and PPO's change the median factor over the MDPs that it solved both ways."
)
_BY_PLAY, _NOT_RUN, _UNKNOWN = "exploration alone solves it, without learning", "not run", "unknown"


def change_section(found: ChangeTable, title: str) -> str:
    """Table 3 for one algorithm."""
    notes = Footnotes()
    metrics = (CORRELATION, MEDIAN_RATIO)
    rows = []
    for row in ordered_rows(found.rows):
        cells = [escaped(row.title), str(row.num_pairs)]
        for metric in metrics:
            cells += [estimate_text(row.metrics[metric.name], metric, notes), of_paper(row.published, metric, notes)]
        rows.append(cells)
    header = ["", "pairs", *(cell for metric in metrics for cell in (metric_title(metric), "paper"))]
    return blocks(
        f"### {title}",
        f"{found.num_pairs} pairs: in {found.num_both_solved} both MDPs were solved, in {found.num_became_solved} only "
        f"the changed one, in {found.num_became_unsolved} only the original.",
        table(header, rows) if rows else "No bound can be assessed.",
        notes.text(),
    )


def policies_section(tables: Tables, changes: str, pictures: Mapping[str, str]) -> str:
    """Table 3b with its figures, each policy alone, and demonstrators by their noise."""
    if not tables.pairs:
        return changes
    return blocks(
        _POLICIES,
        changes,
        pictures.get(EXPLORATION_SECTION, ""),
        *labels_section(tables),
        *grades_section(tables.graded, pictures=pictures.get(GRADED_SECTION, "")),
    )


def labels_section(tables: Tables, rule: str = "") -> list[str]:
    """Each policy alone, for the two bounds that policies change in the paper; nothing if there is only one policy."""
    used = [each for each in tables.by_policy if each.table.num_pairs]
    if not used:
        return []
    notes = Footnotes()
    columns = (
        *((EFFECTIVE_HORIZON, metric) for metric in (CORRELATION, MEDIAN_RATIO)),
        *((COVERING_LENGTH, metric) for metric in (CORRELATION, MEDIAN_RATIO)),
        (NO_CHANGE_ROW, MEDIAN_RATIO),
    )
    lines = []
    for each in used:
        found = each.table
        estimates = {row.name: row.metrics for row in found.rows}
        cells = [
            estimate_text(estimates[name][metric.name], metric, notes)
            if name in estimates
            else notes.missing("no pair of which both were solved")
            for name, metric in columns
        ]
        solved = (found.num_both_solved, found.num_became_solved, found.num_became_unsolved)
        lines.append([escaped(each.policy.name), str(found.num_pairs), *map(str, solved), *cells])
    titles = {EFFECTIVE_HORIZON: "H", COVERING_LENGTH: "covering length", NO_CHANGE_ROW: "no change"}
    measured = (f"{titles[name]}: {metric_title(metric)}" for name, metric in columns)
    header = ["policy", "pairs", "both solved", "only with it", "only without", *measured]
    return [f"### Each policy alone, PPO{rule}", table(header, lines), notes.text()]


def grades_section(found: GradedTable | None, rule: str = "", pictures: str = "") -> list[str]:
    """Nothing if no demonstrator's noise is known."""
    if found is None:
        return []
    notes = Footnotes()
    rows = [
        [
            escaped(grade.title),
            number(grade.noise),
            str(grade.num_mdps),
            number(grade.effective_horizon),
            notes.missing(_UNKNOWN) if grade.horizon_change is None else difference(grade.horizon_change),
            str(grade.num_both_solved),
            notes.missing("PPO solved no MDP both ways")
            if grade.needed_change_log10 is None
            else unbroken(factor(grade.needed_change_log10)),
        ]
        for grade in found.grades
    ]
    header = ["demonstrator", "noise", "MDPs", "H", "change of H", "solved both ways", "change of PPO's timesteps"]
    titles = [grade.title for grade in found.grades]
    lines = [[escaped(mdp.name), *(grade_cell(side, notes) for side in mdp.sides)] for mdp in found.mdps]
    return [
        f"### Demonstrators from random to optimal{rule}",
        _GRADES,
        table(header, rows),
        "H and, after the slash, PPO's timesteps:",
        table(["MDP", *map(escaped, titles)], lines),
        notes.text(),
        pictures,
        _harms(found.harms),
    ]


def grade_cell(side: Side | None, notes: Footnotes) -> str:
    """H / timesteps of one MDP with one demonstrator."""
    if side is None:
        return notes.missing("no such policy")
    return unbroken(f"{horizon_cell(side)} / {needed_cell(side, PPO, notes)}")


def horizon_cell(side: Side) -> str:
    sign = "" if side.effective_horizon_kind == "exact" else "≤ "
    return unbroken(sign + number(side.effective_horizon))


def needed_cell(side: Side, algorithm: str, notes: Footnotes) -> str:
    timesteps = side.needed.get(algorithm)
    if timesteps is None:
        return notes.missing(_BY_PLAY if algorithm == PPO and side.is_solved_by_play else _NOT_RUN)
    if math.isfinite(timesteps):
        return f"{timesteps:,.0f}"
    budget = side.budgets.get(algorithm)
    return "not solved" if budget is None else unbroken(f"> {budget:,.0f}")


def _harms(harms: Sequence[Harm]) -> str:
    if not harms:
        return "A better demonstrator never hurts here: neither H nor PPO's timesteps rise from one to the next."
    lines = [
        f"- {escaped(harm.name)}, from {escaped(harm.worse)} to {escaped(harm.better)}: {_measured(harm)}"
        for harm in harms
    ]
    return blocks("Where a better demonstrator hurts:", "\n".join(lines))


def _measured(harm: Harm) -> str:
    if harm.what == PPO:
        shown = [f"{value:,.0f}" if math.isfinite(value) else "not solved" for value in (harm.before, harm.after)]
        return f"PPO's timesteps {shown[0]} to {shown[1]}"
    return f"{harm.what} {number(harm.before)} to {number(harm.after)}"


def pairs_list(pairs: Sequence[PolicyPair]) -> list[str]:
    """The section of lists.md: every MDP with a policy, before and after."""
    if not pairs:
        return []
    notes = Footnotes()

    def chance(side: Side) -> str:
        known = side.optimal_probability
        return notes.missing(_UNKNOWN) if known is None else significant(known)

    rows = []
    for pair in pairs:
        sides = (pair.old, pair.new)
        cells = [escaped(pair.old.name), escaped(pair.policy.name)]
        cells += [notes.missing(_UNKNOWN) if side.k_min is None else str(side.k_min) for side in sides]
        cells += [horizon_cell(side) for side in sides]
        cells += [chance(side) for side in sides]
        cells += [needed_cell(side, algorithm, notes) for algorithm in (PPO, "gorp") for side in sides]
        rows.append(cells)
    pairs_of = ("least k", "H", "optimal episode", *(f"{ALGORITHM_TITLES[each]}" for each in (PPO, "gorp")))
    header = ["MDP", "policy", *(cell for title in pairs_of for cell in (title, "with the policy"))]
    return [
        "## Policies to start from",
        "Each MDP with random play, and with a policy that explores in its place and that PPO starts from: the least "
        "k, the effective horizon H, the chance that an episode of exploration is optimal, and the timesteps that PPO "
        "and GORP needed, by the paper's rule.",
        table(header, rows, num_left=2),
        notes.text(),
    ]
