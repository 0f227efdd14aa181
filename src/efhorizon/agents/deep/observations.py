"""What an agent sees in each state of a table: the same numbers as the live environment shows.

    MiniGrid   the fully observed grid column by column, then the mission text: one flat vector
    Procgen    the 64 x 64 x 3 screen
    Atari      the last four 84 x 84 grey frames

An Atari observation depends on the way to a state, so the table is unrolled: a node is a state with the last four
screens, only reachable ones. In the other suites a node is a state. Many nodes can show the same observation; networks
are evaluated once for each distinct one.

Columns of a flat observation that are equal in every state (the mission text, walls, cells that are always empty) get
equal gradients, hence equal Adam updates: they are kept as one column with a multiplicity. `networks` keeps the sum of
their weights, moves it by the multiplicity times one update, and counts each of them in the norm of the gradient; that
is the full network, exactly. Columns that are always zero have no gradient and are left out.

Legend: P nodes, A actions, U distinct observations, D columns of a flat observation, G distinct columns, F frames,
K frames of a stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon import catalog
from efhorizon.build.target import catalogue_target
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TERMINAL, TabularMDP

ATARI_STACK = 4  # frames in an observation, as in `envs.bridge`
_GREY_WEIGHTS = (0.2989, 0.5870, 0.1140)  # of red, green and blue in ALE's grey palette
_MAX_RETURN_UNITS = 2**31 - 1  # returns are summed in int32


class UntrainableTableError(EfhorizonError):
    """A table lacks something that training needs; the message is one line for the user."""


@dataclass(frozen=True)
class FlatColumns:
    """Flat observations with equal columns merged."""

    values: NDArray[np.float32]  # [U, G]
    multiplicity: NDArray[np.float32]  # [G], how many columns each stands for
    groups: NDArray[np.int32]  # [D], the group of each original column; -1: always zero

    @property
    def width(self) -> int:
        """Numbers in an observation of the live environment."""
        return len(self.groups)


@dataclass(frozen=True)
class ImageStacks:
    """Image observations as stacks of frames."""

    frames: NDArray[np.uint8]  # [F, H, W, C]
    stacks: NDArray[np.int32]  # [U, K], oldest frame first


@dataclass(frozen=True)
class ObservedTable:
    """A table as agents meet it: where actions lead, what they pay, what is seen."""

    id: str
    suite: str
    transitions: NDArray[np.int32]  # [P, A], -1 = the end
    rewards: NDArray[np.float32]  # [P, A], divided by the reward factor: what the learner gets
    reward_units: NDArray[np.int32]  # [P, A], exact: what returns are compared in
    unit: float  # points per unit
    horizon: int
    state: NDArray[np.int32]  # [P], the table's state that each node is
    observation: NDArray[np.int32]  # [P], index of what is seen
    seen: FlatColumns | ImageStacks
    optimal_units: int

    @property
    def num_actions(self) -> int:
        return int(self.transitions.shape[1])

    @property
    def num_observations(self) -> int:
        return len(self.seen.values) if isinstance(self.seen, FlatColumns) else len(self.seen.stacks)

    @property
    def bootstraps_at_horizon(self) -> bool:
        """Whether the horizon cuts an episode short (True) or ends it (False).

        With discount 1 it must end it: the authors' Atari and Procgen environments do so. See docs/training.md.
        """
        return self.suite == "minigrid"


def observed_table(mdp: TabularMDP) -> ObservedTable:
    """A complete table of a catalogue entry with screens, ready for training."""
    from efhorizon.planning.optimal import optimal_plan

    entry = _entry(mdp)
    if not mdp.is_complete:
        raise UntrainableTableError(f"{mdp.metadata.get('id')}: the table is unfinished; training needs a complete one")
    if mdp.screens is None or mdp.screen_mapping is None:
        raise UntrainableTableError(f"{mdp.metadata.get('id')}: the table has no screens; training needs them")
    units = mdp.reward_units()
    if units is None or int(np.abs(units[0]).max()) * mdp.horizon > _MAX_RETURN_UNITS:
        raise UntrainableTableError(f"{mdp.metadata.get('id')}: rewards have no common unit, so returns are not exact")
    used, screen_of_state = np.unique(mdp.screen_mapping, return_inverse=True)
    if entry.suite == "atari":
        node_states, transitions, stacks = unrolled(mdp.transitions, screen_of_state.astype(np.int32), ATARI_STACK)
        seen_stacks, observation = np.unique(stacks, axis=0, return_inverse=True)
        frames = np.stack([atari_frame(np.asarray(mdp.screens[int(screen)])) for screen in used])
        seen: FlatColumns | ImageStacks = ImageStacks(frames[:, :, :, None], seen_stacks.astype(np.int32))
    else:
        node_states, transitions = np.arange(mdp.num_states), mdp.transitions
        observation = screen_of_state
        screens = np.stack([np.asarray(mdp.screens[int(screen)], np.uint8) for screen in used])
        if entry.suite == "minigrid":
            seen = merged_columns(_flat_observations(entry, screens))
        else:
            seen = ImageStacks(screens, np.arange(len(screens), dtype=np.int32)[:, None])
    codes = mdp.reward_codes[node_states]
    plan = optimal_plan(mdp)
    return ObservedTable(
        id=str(mdp.metadata.get("id", entry.name)),
        suite=entry.suite,
        transitions=np.asarray(transitions, np.int32),
        rewards=(mdp.reward_values / entry.reward_factor).astype(np.float32)[codes],
        reward_units=units[0].astype(np.int32)[codes],
        unit=float(units[1]),
        horizon=mdp.horizon,
        state=node_states.astype(np.int32),
        observation=observation.reshape(-1).astype(np.int32),
        seen=seen,
        optimal_units=round(plan.optimal_return / float(units[1])),
    )


def unrolled(
    transitions: NDArray[np.int32], screen: NDArray[np.int32], depth: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Nodes (state, last `depth` screens) that can be reached: states [P], transitions [P, A], screens [P, depth].

    Node 0 is the start, whose history is its own screen repeated.
    """
    start = (0, *(int(screen[0]),) * depth)
    known = {start: 0}  # node -> number
    nodes = [start]  # grows while it is read: breadth first
    rows: list[list[int]] = []
    following, shown = transitions.tolist(), screen.tolist()
    for node in nodes:
        row = []
        for state in following[node[0]]:
            if state == TERMINAL:
                row.append(TERMINAL)
                continue
            successor = (state, *node[2:], shown[state])
            number = known.setdefault(successor, len(nodes))
            if number == len(nodes):
                nodes.append(successor)
            row.append(number)
        rows.append(row)
    table = np.array(nodes, np.int32)
    return table[:, 0].astype(np.int64), np.array(rows, np.int32), table[:, 1:]


def merged_columns(observations: NDArray[np.uint8]) -> FlatColumns:
    """Flat observations [U, D] with equal columns as one and zero columns left out."""
    rows = np.ascontiguousarray(observations.T)
    as_bytes = rows.view(np.dtype((np.void, rows.shape[1])))[:, 0]  # compared at once, in the order of their numbers
    _, first, groups, counts = np.unique(as_bytes, return_index=True, return_inverse=True, return_counts=True)
    columns = rows[first]
    keep = columns.any(axis=1)
    renumbered = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    return FlatColumns(
        values=np.ascontiguousarray(columns[keep].T, dtype=np.float32),
        multiplicity=counts[keep].astype(np.float32),
        groups=renumbered[groups.reshape(-1)],
    )


def atari_frame(screen: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The frame [84, 84] that agents see of a stored screen [H, W, 1] of palette indices."""
    from efhorizon.suites._ntsc_palette import PALETTE
    from efhorizon.suites.atari import grey_frame

    grey = np.rint(PALETTE.astype(np.float64) @ np.array(_GREY_WEIGHTS)).astype(np.uint8)
    return grey_frame(np.ascontiguousarray(grey[screen[:, :, 0] >> 1]))


def _flat_observations(entry: catalog.Entry, screens: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """[U, D]: the grid transposed as MiniGrid shows it, then the mission, which is the same in every state."""
    from efhorizon.suites.specification import spec_of

    simulator: Any = spec_of(entry)()
    start = simulator.observation()
    simulator.close()
    grids = screens.transpose(0, 2, 1, 3).reshape(len(screens), -1)
    mission = np.broadcast_to(start[grids.shape[1] :], (len(screens), len(start) - grids.shape[1]))
    return np.concatenate([grids, mission], axis=1)


def _entry(mdp: TabularMDP) -> catalog.Entry:
    name = mdp.metadata.get("catalogue_name") or mdp.metadata.get("id")
    if name is None:
        raise UntrainableTableError("the table does not say which environment it is; training needs its observations")
    catalogue_target(str(name), mdp.horizon)  # refuses an unknown name
    return catalog.entry(str(name))
