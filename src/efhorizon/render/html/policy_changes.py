"""What policies change, for the pages: Table 3b's figures, each policy alone, demonstrators, and one MDP's variants."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from efhorizon.evaluation.changes import ChangeTable, change_points
from efhorizon.evaluation.formulas import COVERING_LENGTH, EFFECTIVE_HORIZON
from efhorizon.evaluation.policies import PPO, GradedTable
from efhorizon.evaluation.records import EXPLORATION, GORP, MdpSummary
from efhorizon.evaluation.rules import solved_by_random_play
from efhorizon.evaluation.tables import Tables
from efhorizon.render import numbers
from efhorizon.render.charts.changes import change_scatter
from efhorizon.render.charts.grades import horizon_chart, needed_chart
from efhorizon.render.html.entries import MdpEntry
from efhorizon.render.html.explanations import figure
from efhorizon.render.html.names import page_link
from efhorizon.render.learning_curves import ALGORITHMS

FIGURE_NAME = "policies"
_LARGE, _SMALL = (740, 560), (360, 320)  # pixels
_BY_PLAY = "exploration alone solves it"
_WORDS = {"random play": "the policy", "a random episode": "an episode of the policy"}


@dataclass(frozen=True)
class ChangeFigure:
    """Predicted against measured change."""

    bound: str
    title: str
    picture: Markup
    plain: Markup  # without links, for documents
    is_large: bool


@dataclass(frozen=True)
class PolicyLine:
    """One policy alone in Table 3b."""

    title: str
    pairs: str
    solved: str
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class SideLine:
    """An MDP, or one of its variants, as a line of a table."""

    title: str
    label: str
    link: str | None  # None: this page
    cells: tuple[str, ...]


SIDE_COLUMNS = ("H", "least k", "optimal episode", "return", "PPO, timesteps", "GORP, timesteps")


def is_variant(entry: MdpEntry) -> bool:
    return entry.summary is not None and entry.summary.type == EXPLORATION


def guided(sentence: str) -> str:
    """A sentence about random play, for a variant: about its policy."""
    for words, instead in _WORDS.items():
        sentence = re.sub(words, instead, sentence)
        sentence = re.sub(words.capitalize(), instead.capitalize(), sentence)
    return sentence


def front_changes(summaries: Sequence[MdpSummary], tables: Tables, titles: Mapping[str, str]) -> dict[str, Any]:
    """What the front page shows below Table 3b; `summaries` are those of the tables' rule."""
    return {
        "change_figures": _figures(summaries, tables, titles),
        "policy_lines": [line for each in tables.by_policy if (line := _policy_line(each.policy.name, each.table))],
        "graded": None if tables.graded is None else _graded(tables.graded),
    }


def _figures(summaries: Sequence[MdpSummary], tables: Tables, titles: Mapping[str, str]) -> list[ChangeFigure]:
    """PPO's, for the two bounds that policies change in the paper."""
    figures = []
    for bound in (EFFECTIVE_HORIZON, COVERING_LENGTH):
        points = change_points(summaries, "exploration", PPO, bound)
        if not points:
            continue
        is_large = bound == EFFECTIVE_HORIZON
        width, height = _LARGE if is_large else _SMALL
        title = titles.get(bound, bound).split(" (")[0].removesuffix(", GORP")
        links = {point.name: page_link(point.name) for point in points}
        linked, plain = (
            change_scatter(points, bound_title=title, algorithm="PPO", width=width, height=height, links=each)
            for each in (links, None)
        )
        figures.append(ChangeFigure(bound, title, linked, plain, is_large))
    return figures


def _policy_line(title: str, found: ChangeTable) -> PolicyLine | None:
    if not found.num_pairs:
        return None
    rows = {row.name: row.metrics for row in found.rows}
    shown = []
    for bound in (EFFECTIVE_HORIZON, COVERING_LENGTH):
        metrics = rows.get(bound)
        shown += [
            numbers.MISSING if metrics is None else numbers.decimal(metrics["correlation"].value),
            numbers.MISSING if metrics is None else numbers.ratio(metrics["median_ratio_log10"].value),
        ]
    return PolicyLine(title, str(found.num_pairs), str(found.num_both_solved), tuple(shown))


def _graded(found: GradedTable) -> dict[str, Any]:
    lines = [
        (
            grade.title,
            numbers.significant(grade.noise),
            str(grade.num_mdps),
            numbers.decimal(grade.effective_horizon),
            numbers.decimal(grade.horizon_change),
            str(grade.num_both_solved),
            numbers.ratio(grade.needed_change_log10),
        )
        for grade in found.grades
    ]
    return {"lines": lines, "charts": (horizon_chart(found), needed_chart(found)), "num_harms": len(found.harms)}


def page_changes(entry: MdpEntry, entries: Mapping[str, MdpEntry]) -> dict[str, Any]:
    """What the page of an MDP or a variant says about policies: the MDP first, then all its variants."""
    summary = entry.summary
    base = entries.get(summary.base_name) if summary is not None else None
    if summary is None or base is None or base.summary is None:
        return {"policy_lines": [], "policy_columns": (), "guide": None, "base": None}
    family = [each for each in entries.values() if is_variant(each) and _base_name(each) == base.name]
    sides = [base, *family] if family else []
    is_guided = is_variant(entry)
    return {
        "policy_lines": [_side_line(each, entry) for each in sides],
        "policy_columns": SIDE_COLUMNS,
        "guide": _about(entry) if is_guided else None,
        "base": (base.name, page_link(base.name).removeprefix("mdps/")) if is_guided else None,
    }


def _base_name(entry: MdpEntry) -> str:
    assert entry.summary is not None
    return entry.summary.base_name


def _about(entry: MdpEntry) -> str:
    """Which policy, and where it comes from."""
    assert entry.summary is not None
    policy = entry.summary.policy
    if policy is None:
        return entry.summary.label
    facts = [policy.name] + ([policy.method] if policy.method else [])
    facts += [f"noise {numbers.significant(policy.noise)}"] if policy.noise is not None else []
    return ", ".join(facts)


def _side_line(entry: MdpEntry, page: MdpEntry) -> SideLine:
    summary = entry.summary
    assert summary is not None
    policy = summary.policy
    title = "random play" if summary.type != EXPLORATION else summary.label if policy is None else policy.name
    sign = "" if summary.effective_horizon_kind == "exact" else "≤ "
    cells = (
        sign + numbers.decimal(summary.effective_horizon),
        numbers.count(summary.k_min),
        figure(summary.reward_optimal_probability),
        figure(summary.reward_exploration),
        *(_needed(summary, algorithm) for algorithm in (PPO, GORP)),
    )
    link = None if entry is page else page_link(entry.name).removeprefix("mdps/")
    return SideLine(title, summary.label, link, cells)


def _needed(summary: MdpSummary, algorithm: str) -> str:
    timesteps = summary.sample_complexities.get(algorithm)
    if timesteps is None:
        return "not run"
    shown = numbers.steps_needed(timesteps)
    return f"{shown} ({_BY_PLAY})" if algorithm == PPO and solved_by_random_play(summary, algorithm) else shown


def variant_commands(entry: MdpEntry) -> list[str] | None:
    """The commands that make a variant again; None where the entry is not one."""
    if not is_variant(entry):
        return None
    seeds = [len(setting.rows) for setting in entry.settings if setting.algorithm == PPO]
    steps = [row.budget for setting in entry.settings if setting.algorithm == PPO for row in setting.rows]
    runs = f" --seeds {max(seeds)} --steps {max(steps):.0f}" if seeds else ""
    algorithms = sorted({setting.algorithm for setting in entry.settings} & set(ALGORITHMS)) or ["none"]
    name = shlex.quote(entry.name)
    return [f"efhorizon study {name} --policies POLICIES --algos {','.join(algorithms)}{runs}"]
