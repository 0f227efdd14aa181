"""The progress of a search: how far it has come, and when it will end."""

from __future__ import annotations

from efhorizon.build.explore import Progress
from efhorizon.build.target import Target

_NEVER = 1e12  # states


def progress_line(target: Target, progress: Progress) -> str:
    """Where a search stands, in one line; what matters most comes first, since a narrow terminal cuts off the rest."""
    return (
        f"{target.id}: layer {progress.depth + 1} of {target.horizon}, {time_left(target, progress)}, "
        f"{progress.num_expanded:,} of {_num_to_expand(target, progress):,} states expanded, "
        f"{progress.pairs_per_second:,.0f} pairs/s, {progress.memory / 2**20:,.0f} MB"
    )


def time_left(target: Target, progress: Progress) -> str:
    """The time left if layers keep growing like the last three."""
    sizes = [
        after - before for before, after in zip(progress.layer_starts[:-1], progress.layer_starts[1:], strict=True)
    ]
    if len(sizes) < 4 or not progress.num_pairs:
        return "estimating"
    growth = (sizes[-1] / max(1, sizes[-4])) ** (1 / 3)
    to_expand, layer = float(progress.layer_starts[-1]), float(sizes[-1])  # states at the horizon are not expanded
    num_met = progress.num_states - progress.layer_starts[-1]  # of the next layer, so far
    for _ in range(target.horizon - len(sizes)):
        layer, num_met = max(layer * growth, num_met), 0
        to_expand += layer
        if to_expand > _NEVER:
            return "will not end at this growth"
    pairs_left = (to_expand - progress.num_expanded) * progress.num_actions
    return f"about {_duration(pairs_left / progress.pairs_per_second)} left at this growth"


def _num_to_expand(target: Target, progress: Progress) -> int:
    """States that are known and will be expanded: those at the horizon are not."""
    starts = progress.layer_starts
    return starts[target.horizon] if target.horizon < len(starts) else progress.num_states


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} seconds"
