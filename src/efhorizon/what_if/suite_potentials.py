"""The shapings that a suite knows for its environments, as potentials of a table's states.

A table that was built keeps the raw state behind each of its states. The suite's simulator is put into each of them
and asked for its potential; no step is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon import catalog
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.suites import minigrid_shaping, registry
from efhorizon.suites.entry import Entry


@dataclass(frozen=True)
class SuitePotential:
    shaping: str
    values: NDArray[np.float64]  # [S], with the published weight
    weight: float = 1.0


def suite_potentials(mdp: TabularMDP) -> Iterator[SuitePotential]:
    """One for each shaping of this environment in the catalogue; none where the table keeps no raw states."""
    entry = catalog.find(str(mdp.metadata.get("id")))
    if entry is None or entry.shaping is not None or mdp.states is None:
        return
    for shaped in catalog.entries():
        if shaped.unshaped == entry.name and shaped.shaping is not None:
            values = _values(mdp, shaped)
            if values is not None and np.ptp(values) > 0:
                yield SuitePotential(shaped.shaping, values)


def _values(mdp: TabularMDP, shaped: Entry) -> NDArray[np.float64] | None:
    """The potential of each state [S]; None where the environment cannot be had, or some state has none."""
    suite = registry.suite(shaped.suite)
    try:
        simulator = suite.simulator(**suite.arguments(shaped))
    except EfhorizonError:  # its package is not installed
        return None
    potential = getattr(simulator, "potential", None)
    if potential is None or mdp.states is None:
        return None
    found = np.empty(mdp.num_states)
    try:
        for state in range(mdp.num_states):
            simulator.set_state(mdp.states[state])
            tenths = potential()
            if tenths is None:
                return None
            found[state] = tenths / minigrid_shaping.TENTHS
    finally:
        simulator.close()
    return found
