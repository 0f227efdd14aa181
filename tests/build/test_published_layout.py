"""A table in the published layout: whatever its screens are stored as, they become pictures."""

from __future__ import annotations

import numpy as np
import pytest

from efhorizon import TabularMDP, examples
from efhorizon.build.published import published_table


@pytest.mark.parametrize(
    ("metadata", "shape", "picture"),
    [
        ({"suite": "atari", "screen_format": "palette"}, (210, 160, 1), (210, 160, 3)),
        ({"suite": "procgen", "screen_format": "rgb"}, (64, 64, 3), (64, 64, 3)),
        ({}, (2, 3, 1), (2, 3, 1)),
    ],
)
def test_screens_become_pictures(
    metadata: dict[str, str], shape: tuple[int, ...], picture: tuple[int, ...], rng: np.random.Generator
) -> None:
    mdp = examples.sparse_rewards(3)
    screens = rng.integers(0, 128, (mdp.num_states, *shape), dtype=np.uint8) * 2
    given = TabularMDP(
        mdp.transitions, mdp.rewards, 3, screens=screens, screen_mapping=np.arange(mdp.num_states), metadata=metadata
    )
    made = published_table(given, with_screens=True, with_states=True, on_message=print)
    assert made.screens is not None
    assert made.screens.shape == (mdp.num_states, *picture)
    assert made.screens[0:2].shape == (2, *picture)
    assert made.metadata.get("screen_format", "rgb") == "rgb"
    without = published_table(given, with_screens=False, with_states=False, on_message=print)
    assert without.screens is None
