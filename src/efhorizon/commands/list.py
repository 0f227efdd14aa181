"""`efhorizon list`: the catalogue."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from efhorizon import catalog
from efhorizon.cli import print_json
from efhorizon.suites.entry import Entry


def run(options: argparse.Namespace) -> int:
    entries = catalog.entries(options.suite)
    if options.json:
        print_json([{**dataclasses.asdict(entry), "id": entry.name, "gym_id": entry.gym_id} for entry in entries])
    else:
        _print_table(entries)
    return 0


def _print_table(entries: Iterable[Entry]) -> None:
    """One row a game, level or gridworld: horizons are listed in one cell, since only they differ."""
    rows: dict[tuple[str, ...], list[int]] = {}
    for entry in entries:
        key: tuple[str, ...] = (entry.suite, entry.pattern, str(entry.num_actions), f"{entry.reward_factor:g}")
        rows.setdefault(key, []).append(entry.horizon)
    table = Table("suite", "name", "actions", "reward factor", "horizons T", box=None, pad_edge=False)
    for column in (2, 3):
        table.columns[column].justify = "right"
    for key, horizons in rows.items():
        table.add_row(*key, " ".join(map(str, horizons)))
    console = Console()
    console.print(table)
    console.print(f"{sum(map(len, rows.values()))} environments; build one with: efhorizon build NAME", style="dim")
