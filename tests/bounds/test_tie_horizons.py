"""The effective horizon with other rules for ties: the least of exact horizons over k, and reasons without them."""

from __future__ import annotations

import pytest
from goal_mdps import goal_problems
from gorp_twin import tiny_mdp

from efhorizon.bounds import effective_horizon as whole
from efhorizon.bounds.effective_horizon import effective_horizon, effective_horizon_with
from efhorizon.bounds.exact_horizon import exact_horizon
from efhorizon.gorp.ties import TIES, Ties
from efhorizon.planning.problem import Problem, problem


def problems() -> list[Problem]:
    tiny = [problem(tiny_mdp(seed, num_states=8, num_actions=3, horizon=5)) for seed in range(6)]
    return tiny + goal_problems(5, reversed_actions=True)


@pytest.mark.parametrize("ties", TIES)
def test_the_least_of_exact_horizons(ties: Ties) -> None:
    exact_ones = 0
    for given in problems():
        found = effective_horizon_with(given, ties)
        every = [exact_horizon(given, k, ties=ties).m for k in range(1, given.max_k + 1)]
        needed = {k: given.mdp.num_actions**k * m for k, m in enumerate(every, start=1) if m is not None}
        assert found.k is not None
        assert found.m is not None
        assert given.mdp.num_actions**found.k * found.m == min(needed.values())
        assert found.m == every[found.k - 1]
        exact_ones += found.kind == "exact"
        for entry in found.by_k:
            assert entry.exact_m in (None, every[entry.k - 1])
            assert (
                entry.least_possible_m is None
                or every[entry.k - 1] is None
                or (
                    entry.least_possible_m <= every[entry.k - 1]  # type: ignore[operator]
                )
            )
    assert exact_ones >= 8


def test_no_rule_is_worse_than_the_adversarial_one() -> None:
    for given in problems():
        uniform, lowest, adversarial = (effective_horizon_with(given, ties).value for ties in TIES)
        assert uniform == effective_horizon(given).value
        assert uniform is not None
        assert lowest is not None
        assert adversarial is not None
        assert max(uniform, lowest) <= adversarial


def test_without_work_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no lattice points to spend, ties against GORP are not affordable; theorems still give an upper bound."""
    monkeypatch.setattr("efhorizon.gorp.exact_success.MAX_POINTS_AGAINST", 0)
    given = goal_problems(1)[0]
    found = effective_horizon_with(given, "adversarial", max_points=1000)
    assert (found.kind, found.by_k[0].exact_m) == ("upper", None)
    assert found.by_k[0].exact_reason == ("not affordable at m = 1: ties against GORP need its success at every choice")
    assert found.by_k[0].method == "Theorem B.4"
    monkeypatch.setattr(whole, "PATIENT_POINTS", 1000)  # then Appendix C may be done
    assert "Appendix C" in str(effective_horizon_with(given, "adversarial", max_points=1000).by_k[0].method)
