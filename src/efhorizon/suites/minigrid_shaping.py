"""Potential-based reward shaping of the gridworlds (Appendix E.3 of the paper).

A shaped step pays `reward + w * (phi(s') - phi(s))`, with three potentials and the published weights:

    Distance   -(turns and forward moves to the nearest goal, as if nothing were in the way)   w = 0.1
    OpenDoors  number of doors that are open                                                   w = 0.2
    Pickup     number of objects picked up at least once                                       w = 0.2

The end of an episode is no exception: phi of the terminal state counts like any other, as in the published tables.

All weights are multiples of 0.1, so `w * phi` is kept here as an integer, in tenths of a reward. Rewards that are equal
on paper are then the same floating-point number, and optimal values can be computed exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from efhorizon.suites.simulator import SimulatorError

TENTHS = 10  # in one reward
SHAPINGS: dict[str, tuple[str, ...]] = {  # name, as in the published ids -> the potentials it adds up
    "Distance": ("Distance",),
    "OpenDoors": ("OpenDoors",),
    "Pickup": ("Pickup",),
    "OpenDoorsPickup": ("OpenDoors", "Pickup"),
}
DISTANCE_WEIGHT, DOOR_WEIGHT, PICKUP_WEIGHT = 1, 2, 2  # tenths
HEADINGS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # MiniGrid's directions: right, down, left, up


def moves_between(dx: int, dy: int, direction: int) -> int:
    """Turns and forward moves to a cell that lies `(dx, dy)` away, on a grid without obstacles."""
    heading_x, heading_y = HEADINGS[direction]
    ahead, across = dx * heading_x + dy * heading_y, dx * heading_y - dy * heading_x
    turns = 2 if ahead < 0 else min(abs(across), 1)  # turning round takes two, wherever on the way they are spent
    return abs(dx) + abs(dy) + turns


class Potential:
    """`w * phi` of one gridworld's states, in tenths of a reward.

    Where the task is to fetch an object, that object's cell is the goal, the distance is 0 once it is carried, and it
    counts as a pick-up like any other: the published table of UnlockPickup with OpenDoorsPickup pays 1.2 for success.
    Goals never move: nothing can be put on one, and fetching the object ends the episode.
    """

    def __init__(self, shaping: str, env: Any) -> None:
        if shaping not in SHAPINGS:
            raise SimulatorError(f"no shaping {shaping!r}; known are {', '.join(SHAPINGS)}")
        potentials = SHAPINGS[shaping]
        self._counts_doors = "OpenDoors" in potentials
        self._counts_pickups = "Pickup" in potentials
        self._cells: list[Any] = env.grid.grid
        self._target: Any = getattr(env, "obj", None)  # only the fetching gridworlds have one
        self._target_cell = self._cells.index(self._target) if self._target is not None else -1
        self._moves: list[int] | None = None  # [cell * 4 + direction]
        if "Distance" in potentials:
            goals = [cell for cell, thing in enumerate(self._cells) if thing is not None and thing.type == "goal"]
            goals += [self._target_cell] if self._target is not None else []
            if not goals:
                raise SimulatorError(f"{type(env).__name__} has no goal to measure a distance to")
            self._moves = _moves_to_nearest(goals, env.grid.width, len(self._cells))

    def value(
        self,
        cell: int,
        direction: int,
        doors: Iterable[Any],
        things: Iterable[Any],
        carried: Any,
        picked: Collection[Any],
    ) -> int | None:
        """The potential of a state, or None where it has none: the target is gone (a box that was opened, not fetched).

        The published tables pay no distance shaping on a step into or between such states.
        """
        tenths = 0
        if self._moves is not None and (self._target is None or carried is not self._target):
            if self._target is not None and self._cells[self._target_cell] is not self._target:
                return None
            tenths -= DISTANCE_WEIGHT * self._moves[cell * 4 + direction]
        if self._counts_doors:
            tenths += DOOR_WEIGHT * sum(1 for door in doors if door.is_open)
        if self._counts_pickups and picked:
            # An opened box is gone with its pick-up: only what still exists is part of the state, and so can count.
            tenths += PICKUP_WEIGHT * sum(1 for thing in things if thing in picked)
            tenths += PICKUP_WEIGHT * (carried is not None)
        return tenths


def _moves_to_nearest(goals: list[int], width: int, num_cells: int) -> list[int]:
    """Moves from each cell and direction to the nearest goal, [cell * 4 + direction]."""
    return [
        min(moves_between(goal % width - cell % width, goal // width - cell // width, direction) for goal in goals)
        for cell in range(num_cells)
        for direction in range(len(HEADINGS))
    ]
