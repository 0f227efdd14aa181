"""Flat observations: equal columns as one, in an order that rows of earlier runs rely on."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from efhorizon.agents.deep.observations import merged_columns


@pytest.mark.parametrize("num_observations", [1, 5, 300])
def test_columns_are_merged_in_the_order_of_their_numbers(num_observations: int, rng: np.random.Generator) -> None:
    """As numpy sorts them; also beyond 127, where signed bytes would come first."""
    observations = rng.choice([0, 1, 127, 128, 255], (num_observations, 40)).astype(np.uint8)
    observations[:, 10:20] = observations[:, [3]]
    observations[:, 20:25] = 0
    columns, groups, counts = np.unique(observations.T, axis=0, return_inverse=True, return_counts=True)
    is_used = columns.any(axis=1)
    merged = merged_columns(observations)
    np.testing.assert_array_equal(merged.values, columns[is_used].T)
    np.testing.assert_array_equal(merged.multiplicity, counts[is_used])
    expected = np.where(is_used, np.cumsum(is_used) - 1, -1)[groups.reshape(-1)]
    np.testing.assert_array_equal(merged.groups, expected)
    assert (merged.groups[20:25] == -1).all()
