"""A policy network on every observation of a table: the network's policy as probabilities of a table.

What a network sees in a state is what the live environment shows there. Where it sees several frames at once (Atari),
an observation depends on the way to a state, so the table is expanded by its history of screens first, and the
probabilities belong to that table.

Legend: S states, U distinct observations, A actions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon import catalog
from efhorizon.agents.deep.observations import FlatColumns, ObservedTable, observed_table
from efhorizon.build.framestack import framestacked
from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.policies.networks import InvalidNetworkError, PolicyNetwork, probabilities
from efhorizon.suites import registry


def tabulated(mdp: TabularMDP, network: PolicyNetwork) -> tuple[TabularMDP, NDArray[np.float64]]:
    """The table that the policy belongs to, with frame stacks where agents see them, and its probabilities [S, A]."""
    table, observations, shown = observations_of(mdp)
    if network.num_actions != mdp.num_actions:
        raise InvalidNetworkError(
            f"the policy chooses among {network.num_actions} actions, and {mdp.metadata.get('id', 'the table')} has "
            f"{mdp.num_actions}"
        )
    return table, probabilities(network, observations)[shown]


def observations_of(mdp: TabularMDP) -> tuple[TabularMDP, NDArray[np.uint8], NDArray[np.int32]]:
    """What a network sees in a table: the table with frame stacks where agents see them, the distinct observations
    [U, ...] as uint8, and which of them each state shows [S].
    """
    if mdp.screens is None or mdp.screen_mapping is None:
        name = mdp.metadata.get("id", "the table")
        raise InvalidTableError(f"{name} has no screens, so a network sees nothing in it")
    entry = catalog.find(str(mdp.metadata.get("catalogue_name") or mdp.metadata.get("id")))
    if entry is None:  # an environment of somebody's own: the stored screens are what it shows
        mapping = mdp.screen_mapping.reshape(mdp.num_states, -1)
        stacks, shown = np.unique(mapping, axis=0, return_inverse=True)
        screens = np.asarray(mdp.screens[:], np.uint8)
        return mdp, _side_by_side(screens, stacks), shown.reshape(-1).astype(np.int32)
    is_stacked = registry.suite(entry.suite).frame_stack > 1 and mdp.frame_stack == 1
    table = framestacked(mdp) if is_stacked else mdp
    observed = observed_table(table)
    return table, _all_seen(observed), observed.observation


def _all_seen(table: ObservedTable) -> NDArray[np.uint8]:
    """Every distinct observation, [U, D] or [U, H, W, C]."""
    if isinstance(table.seen, FlatColumns):
        columns = np.concatenate([table.seen.values, np.zeros((len(table.seen.values), 1), np.float32)], axis=1)
        everything: NDArray[np.uint8] = columns[:, table.seen.groups].astype(
            np.uint8
        )  # group -1 is the column of zeros
        return everything
    return _side_by_side(table.seen.frames, table.seen.stacks)


def _side_by_side(frames: NDArray[np.uint8], stacks: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Stacks [U, K] of frames [F, H, W, C] as images whose channels are the frames, oldest first: [U, H, W, K C]."""
    stacked = frames[stacks]  # [U, K, H, W, C]
    return np.concatenate([stacked[:, place] for place in range(stacks.shape[1])], axis=-1)
