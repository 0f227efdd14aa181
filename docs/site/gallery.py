"""The gallery: every MDP of the committed study with its start screen and its effective horizon."""

from __future__ import annotations

import contextlib
import html
import math
from collections import defaultdict
from pathlib import Path

import numpy as np

from efhorizon import catalog
from efhorizon.evaluation.records import EXPLORATION, MdpSummary
from efhorizon.evaluation.source import study_data
from efhorizon.io.png import write_png
from efhorizon.render.html.names import page_link
from efhorizon.suites.registry import suite

_HEAD = """\
# Gallery

Every MDP of [the study](study.md) as it looks at the start, with its effective horizon H, its number of states and its
horizon T. "Not found" means that no number of episodes was found for the few steps of lookahead that were tried. The
pictures are drawn by the environments themselves when this site is built.
"""


def page(study: Path, pictures: Path, report: str | None, *, quick: bool = False) -> str:
    """The page; it writes the pictures."""
    groups: dict[str, list[MdpSummary]] = defaultdict(list)
    for summary in study_data(study).summaries:
        if summary.type != EXPLORATION:
            groups[summary.origin].append(summary)
    drawn: dict[str, str | None] = {}
    parts = [_HEAD]
    for origin, summaries in sorted(groups.items()):
        parts.append(f"\n## {suite(origin).title}\n\n<div class='gallery'>\n")
        for summary in sorted(summaries, key=lambda each: (each.family, each.horizon, each.name)):
            picture = None if quick else _picture(summary, pictures, drawn)
            parts.append(_figure(summary, picture, report))
        parts.append("</div>\n")
    return "".join(parts)


def _figure(summary: MdpSummary, picture: str | None, report: str | None) -> str:
    name = html.escape(summary.name)
    image = f"<img src='gallery/{picture}' alt='{name} at the start' loading='lazy'>" if picture else ""
    value = summary.effective_horizon
    sign = {"exact": "=", "upper": "≤"}.get(summary.effective_horizon_kind or "", "=")
    found = "H not found" if value is None or math.isinf(value) else f"H {sign} {value:.2f}"
    title = f"<a href='{report}/{page_link(summary.name)}'>{name}</a>" if report else name
    facts = f"{found}, {summary.num_states:,} states, T = {summary.horizon}".replace(" = ", "&nbsp;=&nbsp;")
    return f"<figure>{image}<figcaption>{title}<br><span class='hard'>{facts}</span></figcaption></figure>\n"


def _picture(summary: MdpSummary, folder: Path, drawn: dict[str, str | None]) -> str | None:
    """The name of the file with the start screen: one for each environment, whatever its horizon and rewards."""
    entry = catalog.find(summary.name)
    if entry is None:
        return None
    of = suite(entry.suite)
    key = f"{entry.suite}-{entry.game}-{getattr(entry, 'level', None)}".replace("/", "_")
    if key not in drawn:
        drawn[key] = None
        with contextlib.suppress(Exception):  # a gallery without one of its pictures is still a gallery
            simulator = of.simulator(**of.arguments(entry))
            simulator.reset()
            screen = simulator.picture() if of.draws_states else of.drawn(simulator.screen())
            simulator.close()
            folder.mkdir(parents=True, exist_ok=True)
            write_png(folder / f"{key}.png", np.asarray(screen, np.uint8))
            drawn[key] = f"{key}.png"
    return drawn[key]
