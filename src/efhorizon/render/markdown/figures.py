"""The figures of a study as files: each bound against each algorithm, the distribution of the least k, what policies
change.

A file needs nothing else: its colours are written out, and its white background suits light and dark pages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from efhorizon.evaluation.bound_table import BoundTable
from efhorizon.evaluation.changes import change_points
from efhorizon.evaluation.formulas import EFFECTIVE_HORIZON
from efhorizon.evaluation.policies import GradedTable
from efhorizon.evaluation.records import MdpSummary, is_main
from efhorizon.evaluation.solvability import MinKDistribution
from efhorizon.evaluation.tables import Tables
from efhorizon.render.charts.bars import Bar, min_k_chart
from efhorizon.render.charts.changes import change_scatter
from efhorizon.render.charts.grades import horizon_chart, needed_chart
from efhorizon.render.charts.scatter import Point, scatter
from efhorizon.render.charts.svg import chart, element, standalone
from efhorizon.render.html.mdp_page import short_title
from efhorizon.render.html.names import slug
from efhorizon.render.learning_curves import ALGORITHM_TITLES
from efhorizon.render.markdown.bound_sections import ordered_rows

FOLDER = "figures"
EXPLORATION_SECTION, GRADED_SECTION = "exploration", "graded"
_LARGE, _SMALL, _BARS = (640, 500), (420, 340), (440, 300)  # pixels
_BACKGROUND = "#ffffff"
_PLAIN_NAME = re.compile(r"[a-z0-9_]{1,60}")


@dataclass(frozen=True)
class Figure:
    """One file."""

    section: str  # of the page: bounds-ppo, bounds-dqn, min_k, exploration or graded
    file: str  # seen from the pages
    caption: str
    svg: str
    is_large: bool


def study_figures(summaries: Sequence[MdpSummary], tables: Tables, titles: Mapping[str, str]) -> list[Figure]:
    """All of them; the effective horizon's comes first, and large."""
    figures = [figure for each in tables.bounds for figure in _scatters(summaries, each, titles)]
    figures += [_min_k(each) for each in tables.min_k if each.rows]
    return figures + _changes(summaries, tables, titles) + _grades(tables.graded)


def _changes(summaries: Sequence[MdpSummary], tables: Tables, titles: Mapping[str, str]) -> list[Figure]:
    """Table 3b's: the effective horizon first, and large; then every bound that predicts a change."""
    figures = []
    for table in tables.exploration:
        algorithm = ALGORITHM_TITLES[table.algorithm]
        bounds = [row for row in ordered_rows(table.rows) if row.kind == "bound"]
        for row in sorted(bounds, key=lambda row: row.name != EFFECTIVE_HORIZON):
            points = change_points(summaries, "exploration", table.algorithm, row.name)
            is_large = row.name == EFFECTIVE_HORIZON
            if not points or not (is_large or any(point.predicted for point in points)):
                continue
            size = _LARGE if is_large else _SMALL
            title = short_title(titles.get(row.name, row.title))
            caption = f"the change that a policy makes: {title} against {algorithm}"
            drawn = change_scatter(points, bound_title=title, algorithm=algorithm, width=size[0], height=size[1])
            file = f"{FOLDER}/policies-{_file_name(row.name)}-{table.algorithm}.svg"
            figures.append(Figure(EXPLORATION_SECTION, file, caption, white_picture(drawn, size, caption), is_large))
    return figures


def _grades(found: GradedTable | None) -> list[Figure]:
    if found is None:
        return []
    charts = (
        ("horizon", horizon_chart, "the effective horizon with each demonstrator"),
        ("ppo", needed_chart, "the timesteps that PPO needs with each demonstrator"),
    )
    width, height = _SMALL
    return [
        Figure(
            GRADED_SECTION,
            f"{FOLDER}/demonstrators-{name}.svg",
            caption,
            white_picture(draw(found, width=width, height=height), _SMALL, caption),
            is_large=False,
        )
        for name, draw, caption in charts
    ]


def _scatters(summaries: Sequence[MdpSummary], table: BoundTable, titles: Mapping[str, str]) -> list[Figure]:
    figures = []
    bounds = [row for row in ordered_rows(table.rows) if row.kind == "bound"]
    algorithm = ALGORITHM_TITLES[table.algorithm]
    for row in sorted(bounds, key=lambda row: row.name != EFFECTIVE_HORIZON):
        points = _points(summaries, row.name, table.algorithm)
        if not any(math.isfinite(point.bound) for point in points):
            continue
        is_large = row.name == EFFECTIVE_HORIZON
        size = _LARGE if is_large else _SMALL
        title = short_title(titles.get(row.name, row.title))
        drawn = scatter(points, bound_title=title, algorithm=algorithm, width=size[0], height=size[1], with_legend=True)
        caption = f"{title} against the timesteps that {algorithm} needed"
        figures.append(
            Figure(
                section=f"bounds-{table.algorithm}",
                file=f"{FOLDER}/{_file_name(row.name)}-{table.algorithm}.svg",
                caption=caption,
                svg=white_picture(drawn, size, caption),
                is_large=is_large,
            )
        )
    return figures


def _points(summaries: Sequence[MdpSummary], bound: str, algorithm: str) -> list[Point]:
    counted = [
        each for each in summaries if is_main(each) and bound in each.bounds and algorithm in each.sample_complexities
    ]
    ordered = sorted(counted, key=lambda each: (each.bounds[bound], each.name))
    return [Point(each.name, each.origin, each.bounds[bound], each.sample_complexities[algorithm]) for each in ordered]


def _min_k(distribution: MinKDistribution) -> Figure:
    algorithm = ALGORITHM_TITLES[distribution.algorithm]
    bars = [Bar(str(row.k), row.num_solved, row.num_unsolved, row.num_not_run) for row in distribution.rows]
    caption = f"how many MDPs have which least k, and how many of them {algorithm} solved"
    drawn = min_k_chart(bars, algorithm=algorithm, width=_BARS[0], height=_BARS[1])
    return Figure(
        section="min_k",
        file=f"{FOLDER}/min_k-{distribution.algorithm}.svg",
        caption=caption,
        svg=white_picture(drawn, _BARS, caption),
        is_large=False,
    )


def white_picture(drawn: Markup, size: tuple[int, int], caption: str) -> str:
    """A chart on a white background."""
    width, height = size
    background = element("rect", width=width, height=height, fill=_BACKGROUND)
    return standalone(chart(width, height, caption, background, drawn))


def _file_name(bound: str) -> str:
    """Bounds may be registered under any name; one that is not plain is made safe."""
    return bound if _PLAIN_NAME.fullmatch(bound) else slug(bound)
