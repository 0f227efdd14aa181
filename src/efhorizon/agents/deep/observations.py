"""What an agent sees in each state of a table: the same numbers as the live environment shows.

The suite says what is seen of a screen: a flat vector or an image. Where several frames are seen at once, an
observation depends on the way to a state, so the table is unrolled: a node is a state with the last screens, only
reachable ones. Elsewhere a node is a state. Many nodes can show the same observation; networks are evaluated once for
each distinct one.

Columns of a flat observation that are equal in every state (the mission text, walls, cells that are always empty) get
equal gradients, hence equal Adam updates: they are kept as one column with a multiplicity. `networks` keeps the sum of
their weights, moves it by the multiplicity times one update, and counts each of them in the norm of the gradient; that
is the full network, exactly. Columns that are always zero have no gradient and are left out.

Legend: P nodes, A actions, U distinct observations, D columns of a flat observation, G distinct columns, F frames,
K frames of a stack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon import catalog
from efhorizon.build.framestack import OBSERVATION, histories
from efhorizon.build.target import catalogue_target
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import optimal_plan
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry

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
    """A table as agents see it: where actions lead, what they pay, what is observed."""

    id: str
    transitions: NDArray[np.int32]  # [P, A], -1 = the end
    rewards: NDArray[np.float32]  # [P, A], divided by the reward factor: what the learner gets
    reward_units: NDArray[np.int32]  # [P, A], exact: what returns are compared in
    unit: float  # points per unit
    horizon: int
    state: NDArray[np.int32]  # [P], the table's state that each node is
    observation: NDArray[np.int32]  # [P], index of what is seen
    seen: FlatColumns | ImageStacks
    optimal_units: int
    bootstraps_at_horizon: bool  # whether the horizon cuts an episode short; else it ends it: see docs/training.md

    @property
    def num_actions(self) -> int:
        return int(self.transitions.shape[1])

    @property
    def num_observations(self) -> int:
        return len(self.seen.values) if isinstance(self.seen, FlatColumns) else len(self.seen.stacks)


def observed_table(mdp: TabularMDP) -> ObservedTable:
    """A complete table of a catalogue entry with screens, ready for training."""
    entry = _entry(mdp)
    if not mdp.is_complete:
        raise UntrainableTableError(f"{mdp.metadata.get('id')}: the table is unfinished; training needs a complete one")
    if mdp.screens is None or mdp.screen_mapping is None:
        raise UntrainableTableError(f"{mdp.metadata.get('id')}: the table has no screens; training needs them")
    units = mdp.reward_units()
    if units is None or int(np.abs(units[0]).max()) * mdp.horizon > _MAX_RETURN_UNITS:
        raise UntrainableTableError(f"{mdp.metadata.get('id')}: rewards have no common unit, so returns are not exact")
    suite = registry.suite(entry.suite)
    is_flat = suite.network(entry.game) == "dense"
    if is_flat and suite.frame_stack > 1:
        raise UntrainableTableError(f"{entry.name}: flat observations are not stacked, but {suite.title} asks for it")
    if not is_flat and suite.bootstraps_at_horizon:
        raise UntrainableTableError(f"{entry.name}: with images, the horizon must end an episode")
    used, shown = np.unique(mdp.screen_mapping, return_inverse=True)
    shown = shown.reshape(mdp.screen_mapping.shape).astype(np.int32)  # [S], or [S, K]
    observe = np.asarray if mdp.metadata.get("screen_format") == OBSERVATION else suite.observer(entry)
    frames = np.stack([observe(np.asarray(mdp.screens[int(screen)], np.uint8)) for screen in used])
    node_states, transitions, observation = np.arange(mdp.num_states), mdp.transitions, shown
    stacks = np.arange(len(used), dtype=np.int32)[:, None]
    if mdp.frame_stack not in (1, suite.frame_stack):
        raise UntrainableTableError(f"{entry.name}: agents see {suite.frame_stack} frames, not {mdp.frame_stack}")
    if suite.frame_stack > 1:
        if mdp.frame_stack == 1:
            node_states, transitions, shown = histories(mdp.transitions, shown, suite.frame_stack)
        stacks, observation = np.unique(shown, axis=0, return_inverse=True)
    seen = merged_columns(frames) if is_flat else ImageStacks(frames, stacks.astype(np.int32))
    codes = mdp.reward_codes[node_states]
    plan = optimal_plan(mdp)
    return ObservedTable(
        id=str(mdp.metadata.get("id", entry.name)),
        transitions=np.asarray(transitions, np.int32),
        rewards=(mdp.reward_values / entry.reward_factor).astype(np.float32)[codes],
        reward_units=units[0].astype(np.int32)[codes],
        unit=float(units[1]),
        horizon=mdp.horizon,
        state=node_states.astype(np.int32),
        observation=observation.reshape(-1).astype(np.int32),
        seen=seen,
        optimal_units=round(plan.optimal_return / float(units[1])),
        bootstraps_at_horizon=suite.bootstraps_at_horizon,
    )


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


def _entry(mdp: TabularMDP) -> Entry:
    name = mdp.metadata.get("catalogue_name") or mdp.metadata.get("id")
    if name is None:
        raise UntrainableTableError("the table does not say which environment it is; training needs its observations")
    catalogue_target(str(name), mdp.horizon)  # refuses an unknown name
    return catalog.entry(str(name))
