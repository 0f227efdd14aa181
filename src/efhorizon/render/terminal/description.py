"""A table at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import return_range
from efhorizon.render import numbers
from efhorizon.render.terminal import building
from efhorizon.render.terminal.layout import Parts, bar, literal

_MAX_REWARDS_SHOWN = 8
_BAR_WIDTH = 40
_MAX_BARS = 20


@dataclass(frozen=True)
class Description:
    """Everything that `efhorizon show` says, under the names that its JSON has."""

    id: str | None
    path: str
    num_states: int
    num_states_raw: int | None
    num_actions: int
    horizon: int
    num_screens: int
    layer_sizes: Sequence[int]  # states by the fewest steps that lead to them
    rewards: Mapping[str, int]  # value: number of state-action pairs
    worst_return: float | None
    optimal_return: float | None
    degenerate: bool | None
    num_unexplored: int
    num_terminal_pairs: int
    verification: Mapping[str, Any] | None
    fingerprint: str
    image: str | None
    provenance: Mapping[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def description(mdp: TabularMDP, path: Path, image: Path | None) -> Description:
    """A table described; `image` is where its start screen was saved."""
    depths = mdp.depths()
    counts = np.bincount(mdp.reward_codes.ravel(), minlength=len(mdp.reward_values))
    worst, best = return_range(mdp) if mdp.is_complete else (None, None)
    return Description(
        id=mdp.metadata.get("id"),
        path=str(path),
        num_states=mdp.num_states,
        num_states_raw=mdp.metadata.get("num_states_raw"),
        num_actions=mdp.num_actions,
        horizon=mdp.horizon,
        num_screens=mdp.num_screens,
        layer_sizes=np.bincount(depths[depths >= 0]).tolist(),
        rewards={f"{value:g}": int(count) for value, count in zip(mdp.reward_values, counts, strict=True) if count},
        worst_return=worst,
        optimal_return=best,
        degenerate=worst == best if mdp.is_complete else None,
        num_unexplored=0 if mdp.unexplored is None else int(mdp.unexplored.sum()),
        num_terminal_pairs=int((mdp.transitions < 0).sum()),
        verification=mdp.metadata.get("verification"),
        fingerprint=mdp.fingerprint(),
        image=str(image) if image else None,
        provenance=mdp.metadata.get("provenance"),
    )


def described(table: Description) -> Parts:
    """One screen."""
    raw = f" (from {table.num_states_raw:,} raw)" if table.num_states_raw else ""
    saved = f", start screen saved as {literal(table.image)}" if table.image else ""
    num_pairs = table.num_states * table.num_actions
    yield f"[bold]{literal(table.id or table.path)}[/bold]"
    yield (
        f"  size         {table.num_states:,} states{raw}, {numbers.counted(table.num_actions, 'action')}, "
        f"horizon {table.horizon}"
    )
    yield f"  rewards      {_rewards(table.rewards)}"
    if table.worst_return is not None and table.optimal_return is not None:
        yield f"  returns      {building.returns(table.worst_return, table.optimal_return)}"
    else:
        yield f"  unfinished   {building.unexplored(table.num_unexplored)}"
    yield f"  ends         {table.num_terminal_pairs:,} of {num_pairs:,} pairs end the episode"
    yield f"  screens      {table.num_screens:,}{saved}"
    yield f"  verified     {building.verification(table.verification)}"
    yield f"  fingerprint  {table.fingerprint[:16]}"
    yield "  layers       states by the fewest steps that lead to them"
    yield from _layers(table.layer_sizes)


def _rewards(rewards: Mapping[str, int]) -> str:
    """The most frequent values first."""
    ordered = sorted(rewards.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{value} ({count:,} pairs)" for value, count in ordered[:_MAX_REWARDS_SHOWN])
    left = len(ordered) - _MAX_REWARDS_SHOWN
    return f"{shown} and {left} more values" if left > 0 else shown


def _layers(sizes: Sequence[int]) -> Parts:
    step = -(-len(sizes) // _MAX_BARS)  # long searches: several layers per row
    rows = [(start, sum(sizes[start : start + step])) for start in range(0, len(sizes), step)]
    largest = max(size for _, size in rows)
    for start, size in rows:
        name = str(start) if step == 1 else f"{start}-{min(start + step, len(sizes)) - 1}"
        yield f"    {name:>9} {size:>12,} {bar(size / largest, _BAR_WIDTH)}"
