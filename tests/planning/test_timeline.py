"""What is too large to be unrolled over time is refused before memory is taken."""

from __future__ import annotations

import numpy as np
import pytest

from efhorizon import InvalidTableError, TabularMDP
from efhorizon.planning import optimal, timeline


def cyclic(num_states: int, horizon: int) -> TabularMDP:
    """Twice as many states at each time, until it is all of them."""
    states = np.arange(num_states)
    transitions = np.stack([2 * states, 2 * states + 1], axis=1) % num_states
    return TabularMDP(transitions, np.zeros(transitions.shape), horizon)


def test_too_many_pairs() -> None:
    mdp = cyclic(30_000, 100_000)
    with pytest.raises(InvalidTableError, match="do not fit in 32-bit indices"):
        timeline.timeline(mdp)


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = cyclic(64, 1000)
    assert timeline.timeline(mdp).num_pairs == 63 + 994 * 64
    for module in (timeline, optimal):
        monkeypatch.setattr(module, "_LEAST_CHECKED", 0)
        monkeypatch.setattr(module, "available_memory", lambda: 40_000)
    with pytest.raises(InvalidTableError, match=r"pairs need .* bytes of memory, more than is available"):
        timeline.timeline(mdp)
    with pytest.raises(InvalidTableError, match="a plan of 1,000 steps needs 64,000 bytes of memory"):
        optimal.optimal_plan(mdp)
