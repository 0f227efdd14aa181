"""`efhorizon demo`: three small tables, one of each suite."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console

from efhorizon.build.pipeline import Options
from efhorizon.build.target import catalogue_target
from efhorizon.commands import showing
from efhorizon.commands.building import build_with_progress, work_line

NAMES = ("MiniGrid-KeyCorridorS3R1-v0", "maze_easy_l0_30_fs1", "freeway_10_fs30")


def run(out: Path) -> int:
    console = Console(highlight=False)
    options = Options(out=out, num_workers=len(os.sched_getaffinity(0)))
    for name in NAMES:
        console.rule(f"[bold]{name}")
        result = build_with_progress(catalogue_target(name), options)
        assert result.path is not None  # no budget was set
        console.print(work_line(result))
        showing.run(path=result.path, image=out / f"{name}-start.png", as_json=False)
    console.rule()
    console.print(
        f"Three exact tables are in [bold]{out}[/bold]. Next: efhorizon list, efhorizon build NAME, efhorizon --help"
    )
    return 0
