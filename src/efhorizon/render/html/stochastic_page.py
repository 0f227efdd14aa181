"""The page of tables with chance, and the part of an MDP's page that shows it with sticky actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from efhorizon.evaluation.metrics import METRICS
from efhorizon.evaluation.stochastic import StochasticTables, line_of
from efhorizon.render.html.front_page import METRIC_TITLES, metric_lines
from efhorizon.render.learning_curves import ALGORITHM_TITLES
from efhorizon.render.numbers import percent
from efhorizon.render.stochastic_words import ABOUT, COUNT_HEADINGS, HEADINGS, NOTE, cells, count_cells, verdict

LINK, TITLE = "with-chance.html", "With chance"


def stochastic_page(tables: StochasticTables, pages: Mapping[str, str]) -> dict[str, Any]:
    """What the template needs; `pages` are the links of MDPs by their names."""
    used = [each for each in tables.bounds if each.num_mdps]
    lines = metric_lines(used)
    return {
        "verdict": verdict(tables.counts, len(tables.lines)),
        "about": ABOUT,
        "count_headings": COUNT_HEADINGS,
        "counts": [(ALGORITHM_TITLES[each.algorithm], count_cells(each)) for each in tables.counts],
        "algorithms": [ALGORITHM_TITLES[each.algorithm] for each in used],
        "metrics": [METRIC_TITLES.get(metric.name, metric.title) for metric in METRICS],
        "metric_lines": lines,
        "reasons": sorted({cell.reason for line in lines for group in line.groups for cell in group if cell.reason}),
        "level": percent(tables.level),
        "num_resamples": tables.num_resamples,
        "headings": HEADINGS,
        "mdps": [
            (line.record.made_from or line.record.id, pages.get(line.record.made_from or ""), cells(line))
            for line in tables.lines
        ],
        "note": NOTE,
        "notes": tables.notes,
    }


def sticky_part(tables: StochasticTables | None, name: str) -> dict[str, Any] | None:
    """With sticky actions, on the page of one MDP; None if that is not known."""
    lines = line_of(tables, name)
    if not lines:
        return None
    rows = [list(row) for row in zip(*map(cells, lines), strict=True)]
    return {"lines": list(zip(HEADINGS, rows, strict=True)), "link": f"../{LINK}", "note": NOTE, "about": ABOUT}
