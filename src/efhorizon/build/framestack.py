"""Tables whose states remember the last screens: what a network that sees several frames at once acts on.

Agents in Atari see four frames, so their policy is a function of the last four screens, not of a state. Expanding a
table by its history of screens makes it one again: a state of the new table is a state with the last K screens, and
only those that can be reached are there. Rewards, ends and returns stay the same.

Legend: S states, P states with their history, A actions, K frames.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from efhorizon import catalog
from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TERMINAL, ScreenArray, TabularMDP
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry

OBSERVATION = "observation"  # the format of screens that are what an agent sees


def framestacked(mdp: TabularMDP, frames: int | None = None) -> TabularMDP:
    """The table expanded by its last `frames` screens; by default as many as agents see in its suite.

    Screens become what agents see of them: grey and 84 x 84 in Atari.
    """
    if mdp.screens is None:
        raise InvalidTableError(f"{_name(mdp)}: the table has no screens, so there are none to stack")
    if not mdp.is_complete:
        raise InvalidTableError(f"{_name(mdp)}: the table is unfinished; frame stacks need a complete one")
    if mdp.frame_stack > 1:
        raise InvalidTableError(f"{_name(mdp)}: its states already hold {mdp.frame_stack} frames")
    if frames is None:
        entry = _entry(mdp)
        frames = 1 if entry is None else registry.suite(entry.suite).frame_stack
    if isinstance(frames, bool) or not isinstance(frames, int | np.integer) or frames < 1:
        raise InvalidTableError(f"the number of frames must be a positive integer, got {frames!r}")
    states, transitions, mapping = histories(mdp.transitions, mdp.shown, int(frames))
    screens, stored_as = seen_screens(mdp)
    metadata = dict(mdp.metadata)
    for stale in ("inputs", "provenance", "verification", "num_states_raw"):
        metadata.pop(stale, None)  # they describe the table without stacks
    return TabularMDP(
        transitions,
        (mdp.reward_codes[states], mdp.reward_values),
        mdp.horizon,
        screens=screens,
        screen_mapping=mapping,
        base_states=states,
        metadata={**metadata, "screen_format": stored_as, "frames": int(frames), "unstacked": mdp.fingerprint()},
    )


def histories(
    transitions: NDArray[np.int32], screen: NDArray[np.int32], depth: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """What can be reached of (state, last `depth` screens), breadth first: states [P], transitions [P, A] and screens
    [P, depth], oldest first. The first one is the start, whose history is its own screen repeated.
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


def seen_screens(mdp: TabularMDP) -> tuple[ScreenArray, str]:
    """The screens of a table as agents see them, [N, H, W, C], and their format: where networks take images, what the
    suite shows them; else the stored screens.
    """
    assert mdp.screens is not None
    stored_as = str(mdp.metadata.get("screen_format", "rgb"))
    entry = _entry(mdp)
    if entry is None or stored_as == OBSERVATION or registry.suite(entry.suite).network(entry.game) != "image":
        return mdp.screens, stored_as
    observe = registry.suite(entry.suite).observer(entry)
    seen = [observe(np.asarray(mdp.screens[number], np.uint8)) for number in range(mdp.num_screens)]
    return np.stack(seen), OBSERVATION


def _entry(mdp: TabularMDP) -> Entry | None:
    return catalog.find(str(mdp.metadata.get("catalogue_name") or mdp.metadata.get("id")))


def _name(mdp: TabularMDP) -> str:
    return str(mdp.metadata.get("id", "the table"))
