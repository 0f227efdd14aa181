"""`efhorizon show`: a table at a glance."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from efhorizon.catalog import load
from efhorizon.cli import print_json
from efhorizon.commands.build import verification_line
from efhorizon.errors import EfhorizonError
from efhorizon.io.png import write_png
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import return_range
from efhorizon.suites.drawing import picture

_MAX_REWARDS_SHOWN = 8
_BAR_WIDTH = 40
_MAX_BARS = 20


def run(options: argparse.Namespace) -> int:
    mdp = load(options.path)
    saved = _saved_start_screen(mdp, options.path, options.image)
    content = description(mdp, options.path, saved)
    if options.json:
        print_json(content)
    else:
        print_description(mdp, content)
    return 0


def description(mdp: TabularMDP, path: Path, image: Path | None) -> dict[str, Any]:
    """Everything that `show` says."""
    depths = mdp.depths()
    reached = depths[depths >= 0]
    counts = np.bincount(mdp.reward_codes.ravel(), minlength=len(mdp.reward_values))
    worst, best = return_range(mdp) if mdp.is_complete else (None, None)
    return {
        "id": mdp.metadata.get("id"),
        "path": str(path),
        "num_states": mdp.num_states,
        "num_states_raw": mdp.metadata.get("num_states_raw"),
        "num_actions": mdp.num_actions,
        "horizon": mdp.horizon,
        "num_screens": mdp.num_screens,
        "layer_sizes": np.bincount(reached).tolist(),
        "rewards": {f"{value:g}": int(count) for value, count in zip(mdp.reward_values, counts, strict=True) if count},
        "worst_return": worst,
        "optimal_return": best,
        "degenerate": worst == best if mdp.is_complete else None,
        "num_unexplored": 0 if mdp.unexplored is None else int(mdp.unexplored.sum()),
        "num_terminal_pairs": int((mdp.transitions < 0).sum()),
        "verification": mdp.metadata.get("verification"),
        "fingerprint": mdp.fingerprint(),
        "image": str(image) if image else None,
        "provenance": mdp.metadata.get("provenance"),
    }


def print_description(mdp: TabularMDP, content: dict[str, Any]) -> None:
    console = Console(highlight=False)
    raw = f" (from {content['num_states_raw']:,} raw)" if content["num_states_raw"] else ""
    rewards = sorted(content["rewards"].items(), key=lambda item: -item[1])
    shown = ", ".join(f"{value} ({count:,} pairs)" for value, count in rewards[:_MAX_REWARDS_SHOWN])
    more = f" and {len(rewards) - _MAX_REWARDS_SHOWN} more values" if len(rewards) > _MAX_REWARDS_SHOWN else ""
    console.print(f"[bold]{content['id'] or content['path']}[/bold]")
    console.print(f"  size         {mdp.num_states:,} states{raw}, {mdp.num_actions} actions, horizon {mdp.horizon}")
    console.print(f"  rewards      {shown}{more}")
    if mdp.is_complete:
        degenerate = (
            "  [yellow]degenerate: every action sequence pays the same[/yellow]" if content["degenerate"] else ""
        )
        console.print(f"  returns      {content['worst_return']:g} to {content['optimal_return']:g}{degenerate}")
    else:
        console.print(
            f"  unfinished   [yellow]{content['num_unexplored']:,} states were found but not explored[/yellow]"
        )
    console.print(f"  ends         {content['num_terminal_pairs']:,} of {mdp.transitions.size:,} pairs end the episode")
    console.print(
        f"  screens      {mdp.num_screens:,}"
        + (f", start screen saved as {content['image']}" if content["image"] else "")
    )
    console.print(f"  verified     {verification_line(content['verification'])}")
    console.print(f"  fingerprint  {content['fingerprint'][:16]}")
    console.print("  layers       states by the fewest steps that lead to them")
    _print_layers(console, content["layer_sizes"])


def _print_layers(console: Console, sizes: list[int]) -> None:
    step = -(-len(sizes) // _MAX_BARS)  # long searches: several layers a row
    rows = [(start, sum(sizes[start : start + step])) for start in range(0, len(sizes), step)]
    largest = max(size for _, size in rows)
    for start, size in rows:
        name = str(start) if step == 1 else f"{start}-{min(start + step, len(sizes)) - 1}"
        console.print(f"    {name:>9} {size:>12,} [cyan]{'█' * max(1, round(_BAR_WIDTH * size / largest))}[/cyan]")


def _saved_start_screen(mdp: TabularMDP, path: Path, image: Path | None) -> Path | None:
    if mdp.screens is None:
        return None
    try:
        start = picture(mdp, 0)
    except EfhorizonError:
        if image is not None:
            raise
        return None  # an observation that is no picture, or a suite that is not installed
    name = mdp.metadata.get("id") or path.stem
    return write_png(image or Path(f"{name}-start.png"), start)
