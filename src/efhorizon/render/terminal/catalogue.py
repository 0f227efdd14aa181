"""The environments that can be built by name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from efhorizon.render.numbers import counted
from efhorizon.render.terminal.layout import Parts, table
from efhorizon.suites.entry import Entry


def catalogue(entries: Sequence[Entry]) -> Parts:
    """One table for each suite, which fits a terminal of 80 columns."""
    for suite, its in groupby(entries, key=lambda entry: entry.suite):
        yield f"[bold]{suite}[/bold]"
        yield from _suite(list(its))
        yield ""
    yield f"[dim]{counted(len(entries), 'environment')}; build one with: efhorizon build NAME[/dim]"


def _suite(entries: Sequence[Entry]) -> Parts:
    """One row for each game, level or gridworld: horizons are listed in one cell, since only they differ."""
    rows: dict[tuple[str, ...], list[int]] = {}
    for entry in entries:
        pattern = entry.name.replace(f"_{entry.horizon}_fs", "_T_fs")
        rows.setdefault((pattern, str(entry.num_actions), f"{entry.reward_factor:g}"), []).append(entry.horizon)
    listed = table("name", "actions", "factor", "T")
    listed.columns[-1].justify = "left"
    for key, horizons in rows.items():
        listed.add_row(*key, " ".join(map(str, horizons)))
    yield listed
