"""Bounds with the policies that the paper's authors published, against their figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon import TabularMDP, analyze, load
from efhorizon.planning.policies import InvalidPolicyError, exploration_policy, load_policy, published_policy

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "exploration"
PUBLISHED: dict[str, dict[str, Any]] = {
    "freeway_10_fs30": {
        "table": "consolidated_framestack.npz",
        "min_k": 1,
        "epw": 6,
        "min_state_occupancy": 2.997777343526967e-13,
        "min_sum_state_occupancy": 2.997777343526967e-13,
        "min_state_action_occupancy": 1.525107048196644e-16,
        "min_sum_state_action_occupancy": 1.525107048196644e-16,
        "sample_complexity": {1: 300, 2: 1_800, 3: 5_400},
    },
    "maze_easy_l0_30_fs1": {
        "table": "consolidated.npz",
        "min_k": 1,
        "epw": 1,
        "min_state_occupancy": 0.0006436213457715351,
        "min_sum_state_occupancy": 0.0006436213457715351,
        "min_state_action_occupancy": 4.2578066191686665e-5,
        "min_sum_state_action_occupancy": 4.2578066191686665e-5,
        "sample_complexity": {1: 16_200, 2: 1_166_400},
    },
}


@pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference data")
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures(name: str) -> None:
    published = PUBLISHED[name]
    mdp = load(REFERENCE / name / published["table"])
    found = analyze(mdp, exploration_policy=load_policy(REFERENCE / name / "exploration_policy.npy")).as_json()
    assert (found["min_k"], found["epw"]) == (published["min_k"], published["epw"])
    for figure in published:
        if "occupancy" in figure:
            assert found[figure] == pytest.approx(published[figure], rel=1e-6)
    for k, timesteps in published["sample_complexity"].items():
        at_k = found["effective_horizon"]["by_k"][str(k)]
        m = at_k["exact_m"] if at_k["exact_m"] is not None else at_k["upper_m"]
        assert mdp.horizon**2 * mdp.num_actions**k * m <= timesteps
        assert at_k["upper_m"] <= at_k["theorem_m"]
    assert found["sample_complexity"]["mistakes"] < found["sample_complexity"]["pg_gorp"]


def test_the_row_for_the_end_is_ignored() -> None:
    mdp = TabularMDP([[0, 1], [-1, -1]], [[0, 1], [1, 0]], 3)
    rows = np.array([[0.25, 0.75], [0.5, 0.5]])
    plain = exploration_policy(mdp, rows)
    for at_end in ([0.0, 1.0], [7.0, np.nan]):  # whatever it says
        published = np.broadcast_to(np.vstack([rows, [at_end]]), (3, 3, 2))
        again = exploration_policy(mdp, published)
        for time in range(3):
            np.testing.assert_array_equal(again.at(time), plain.at(time))
    np.testing.assert_array_equal(exploration_policy(mdp, np.vstack([rows, [[1, 0]]])).at(0), plain.at(0))


def test_the_published_layout() -> None:
    mdp = TabularMDP([[0, 1], [-1, -1]], [[0, 1], [1, 0]], 3)
    made = published_policy(mdp, [[0.25, 0.75], [0.5, 0.5]])
    assert (made.shape, made.dtype) == ((3, 3, 2), np.float32)
    np.testing.assert_array_equal(made[1], [[0.25, 0.75], [0.5, 0.5], [0.5, 0.5]])
    made[:, -1] = [1.0, 0.0]
    np.testing.assert_array_equal(published_policy(mdp, made), made)
    np.testing.assert_array_equal(published_policy(mdp, None), np.full((3, 3, 2), 0.5))
    with pytest.raises(InvalidPolicyError, match=r"has shape \(3, 5, 2\); this table needs \(2, 2\) or \(3, 2, 2\)"):
        exploration_policy(mdp, np.full((3, 5, 2), 0.5))
