"""What an agent sees in each state of a table: the same numbers as the live environment shows.

Tables of the catalogue: the suite says what is seen of a screen, a flat vector or an image. Tables of any other
environment say themselves what their observations are (suites/observation_layout.py). Where a table has none, the
number of the state is the observation, as a one-hot vector. Where several frames are seen at once, an
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

import hashlib
import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon import catalog
from efhorizon.build.framestack import OBSERVATION, histories
from efhorizon.errors import EfhorizonError, InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import optimal_sum
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.observation_layout import Layout, Numbers, stored_layout
from efhorizon.suites.observation_reader import MOST_VALUES, ObservationReader, is_image, reading_notes
from efhorizon.suites.suite import NetworkKind

STATE_NUMBER = "state number"  # what is observed where a table has no observations
_MAX_RETURN_UNITS = 2**31 - 1  # returns are summed in int32
_SCREENS_A_BLOCK = 256


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
    stickiness: float = 0.0  # the chance that the previous action is repeated, where nodes know one
    previous: NDArray[np.int32] | None = None  # [P], the action that led to each node; -1 at the start

    @property
    def num_actions(self) -> int:
        return int(self.transitions.shape[1])

    @property
    def num_observations(self) -> int:
        return len(self.seen.values) if isinstance(self.seen, FlatColumns) else len(self.seen.stacks)


def observed_table(mdp: TabularMDP) -> ObservedTable:
    """A complete table, ready for training."""
    name = mdp.metadata.get("id")
    if not mdp.is_complete:
        raise UntrainableTableError(f"{name}: the table is unfinished; training needs a complete one")
    units, unit, optimal_units = _reward_units(mdp)
    entry = _entry(mdp)
    suite = registry.suite(mdp.metadata.get("suite") if entry is None else entry.suite)
    node_states, transitions, observation = np.arange(mdp.num_states), mdp.transitions, np.arange(mdp.num_states)
    if mdp.screens is None or mdp.screen_mapping is None:
        seen: FlatColumns | ImageStacks = _state_numbers(mdp)
    elif entry is None:
        seen, observation = _laid_out(mdp, np.asarray(mdp.shown))
    else:
        node_states, transitions, observation, seen = _of_entry(mdp, entry)
    codes = mdp.reward_codes[node_states]
    factor = float(mdp.metadata.get("reward_factor", 1.0)) if entry is None else entry.reward_factor
    return ObservedTable(
        id=str(mdp.metadata.get("id", None if entry is None else entry.name)),
        transitions=np.asarray(transitions, np.int32),
        rewards=(mdp.reward_values / factor).astype(np.float32)[codes],
        reward_units=units.astype(np.int32)[codes],
        unit=unit,
        horizon=mdp.horizon,
        state=node_states.astype(np.int32),
        observation=observation.reshape(-1).astype(np.int32),
        seen=seen,
        optimal_units=optimal_units,
        bootstraps_at_horizon=suite.bootstraps_at_horizon and not isinstance(seen, ImageStacks),
    )


def _reward_units(mdp: TabularMDP) -> tuple[NDArray[np.int64], float, int]:
    """The rewards [R] as whole numbers of a unit, the unit, and the optimal return in units.

    Where rewards have no common unit, or one too small, they are rounded to the finest that returns can be counted in,
    some 10^9 to a return; what is optimal is then decided on the rounded table, where it is exact.
    """
    exact = mdp.reward_units()
    if exact is not None and int(np.abs(exact[0]).max()) * mdp.horizon <= _MAX_RETURN_UNITS:
        units, unit = exact[0].astype(np.int64), float(exact[1])
        return units, unit, optimal_sum(mdp, units)
    unit = float(np.abs(mdp.reward_values).max()) * mdp.horizon / (_MAX_RETURN_UNITS // 2)
    units = np.rint(mdp.reward_values / unit).astype(np.int64)
    return units, unit, optimal_sum(mdp, units)


def network_on(mdp: TabularMDP) -> NetworkKind:
    """What agents learn with on a table: "dense" where observations are flat, "image" where they are pictures."""
    if mdp.screens is None:
        return "dense"
    entry = _entry(mdp)
    if entry is not None:
        return registry.suite(entry.suite).network(entry.game)
    return "image" if is_image(_layout(mdp)) else "dense"


def observation_note(mdp: TabularMDP) -> str | None:
    """What people should know about what agents see on a table, in one sentence; None where that is plain."""
    if mdp.screens is None:
        return "The table has no observations: agents see the number of the state, as a one-hot vector."
    notes = [] if _entry(mdp) is not None else reading_notes(_layout(mdp))
    text = "; ".join(notes)
    return f"{text[0].upper()}{text[1:]}." if text else None


def observation_digest(mdp: TabularMDP) -> str | None:
    """What a run on this table depends on besides its graph and rewards: what is observed in each state. None for
    tables of the catalogue, where the name says it."""
    if mdp.screens is None or mdp.screen_mapping is None:
        return STATE_NUMBER
    if _entry(mdp) is not None:
        return None
    digest = hashlib.sha256(json.dumps(mdp.metadata.get("observation"), sort_keys=True).encode())
    digest.update(np.ascontiguousarray(mdp.screen_mapping, "<i4").data)
    for start in range(0, mdp.num_screens, _SCREENS_A_BLOCK):
        digest.update(np.ascontiguousarray(mdp.screens[start : start + _SCREENS_A_BLOCK], np.uint8).data)
    return digest.hexdigest()[:12]


def _of_entry(
    mdp: TabularMDP, entry: Entry
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], FlatColumns | ImageStacks]:
    """A table of the catalogue: the state of each node, where actions lead, what is observed, and what is seen."""
    assert mdp.screens is not None
    assert mdp.screen_mapping is not None
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
    return node_states, transitions, observation, seen


def _laid_out(mdp: TabularMDP, shown: NDArray[np.int32]) -> tuple[FlatColumns | ImageStacks, NDArray[np.int64]]:
    """Any other table: what is seen of its screens, and which of it each state shows [S]."""
    assert mdp.screens is not None
    used, observation = np.unique(shown, return_inverse=True)
    screens = np.stack([np.asarray(mdp.screens[int(screen)], np.uint8) for screen in used])
    try:
        read = ObservationReader(_layout(mdp), screens)
        found = read.images(screens) if read.is_image else read.vectors(screens)
    except InvalidTableError as error:
        raise UntrainableTableError(f"{mdp.metadata.get('id')}: {error}") from None
    if read.is_image:
        images = found.astype(np.uint8, copy=False)
        return ImageStacks(images, np.arange(len(images), dtype=np.int32)[:, None]), observation
    return merged_columns(found), observation


def _state_numbers(mdp: TabularMDP) -> FlatColumns:
    count = mdp.num_states
    if count > MOST_VALUES:
        raise UntrainableTableError(
            f"{mdp.metadata.get('id')}: the table has no observations, and {count:,} states are too many to show an "
            f"agent their number (at most {MOST_VALUES:,}); build it with observations, or run GORP, which needs none"
        )
    return FlatColumns(np.eye(count, dtype=np.float32), np.ones(count, np.float32), np.arange(count, dtype=np.int32))


def _layout(mdp: TabularMDP) -> Layout:
    """What the screens of a table mean; of a file that does not say, that they are images."""
    assert mdp.screens is not None
    return stored_layout(mdp.metadata) or Numbers("|u1", [int(side) for side in mdp.screens.shape[1:]])


def merged_columns(observations: NDArray[np.uint8] | NDArray[np.float32]) -> FlatColumns:
    """Flat observations [U, D] with equal columns as one and zero columns left out."""
    rows = np.ascontiguousarray(observations.T)
    # columns are compared at once, as bytes; those of uint8 in the order of their numbers
    as_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, first, groups, counts = np.unique(as_bytes, return_index=True, return_inverse=True, return_counts=True)
    columns = rows[first]
    keep = columns.any(axis=1)
    keep[:1] |= not keep.any()  # where nothing is ever seen, one column that says so
    renumbered = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    return FlatColumns(
        values=np.ascontiguousarray(columns[keep].T, dtype=np.float32),
        multiplicity=counts[keep].astype(np.float32),
        groups=renumbered[groups.reshape(-1)],
    )


def _entry(mdp: TabularMDP) -> Entry | None:
    """The entry of the catalogue that a table is of, if it is of one."""
    return catalog.find(str(mdp.metadata.get("catalogue_name") or mdp.metadata.get("id")))
