"""MDPs that are hard for one reason each are named right."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hard_mdps import HARD, misleading

from efhorizon import TabularMDP, examples
from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.why import Kind, Why
from efhorizon.library import analyze
from efhorizon.reasons.kinds import KINDS, TITLES, Evidence, factors, kind_of
from efhorizon.reasons.sentences import headline, sentences

CASES = [(kind, mdp) for kind, mdps in HARD.items() for mdp in mdps]


def analyzed(mdp: TabularMDP) -> tuple[Analysis, Why]:
    found = analyze(mdp)
    assert isinstance(found, Analysis)
    assert found.why is not None
    return found, found.why


def test_every_kind_has_an_mdp_and_a_title() -> None:
    assert set(get_args(Kind)) == set(HARD) == set(TITLES) == set(KINDS)


@pytest.mark.parametrize(("kind", "mdp"), CASES, ids=[f"{kind}-{mdp.horizon}x{mdp.num_actions}" for kind, mdp in CASES])
def test_the_one_difficulty_is_named(kind: Kind, mdp: TabularMDP) -> None:
    _, why = analyzed(mdp)
    assert why.kind == kind
    assert headline(why).lower().startswith(TITLES[kind])
    assert len(sentences(why)) == len(why)


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_the_depth_of_a_trap_is_the_least_k(depth: int) -> None:
    found, why = analyzed(misleading(depth))
    trap = why[0]
    assert (trap.state, trap.time, trap.depth) == (0, 0, depth)
    assert found.solvability.min_k == depth > 1
    assert trap.wrong is not None
    assert (trap.right.action, trap.wrong.action, trap.wrong.q) == (0, 1, 3.0)
    assert trap.right.q == pytest.approx(10 / 2**depth, rel=1e-12)
    assert trap.episodes_90 is None  # no number of episodes helps
    assert trap.as_json()["factors"] == {"misleading": None}


def test_a_mdp_where_everything_is_optimal_has_no_reasons() -> None:
    table = TabularMDP([[1, 1], [-1, -1]], [[1.0, 1.0], [2.0, 2.0]], 2)
    _, why = analyzed(table)
    assert len(why) == 0
    assert why.kind is None
    assert "nothing to get wrong" in (why.note or "")


def test_episodes_for_a_reward_that_is_met_with_a_known_chance() -> None:
    """In the start of `sparse_rewards` only the right action pays, with p = 2^(1 - T): m episodes show it with a chance
    of 1 - (1 - p)^m, and otherwise a draw is right half the time."""
    _, why = analyzed(examples.sparse_rewards(horizon=6))
    p = 2.0**-5
    needed = math.ceil(math.log(2 * (1 - 0.9)) / math.log(1 - p))
    assert (why[0].state, why[0].time, why[0].episodes_90, why[0].episodes_half) == (0, 0, needed, 1)


def test_rules_of_kinds_on_plain_numbers() -> None:
    def named(**changes: float) -> Kind:
        plain = {"num_actions": 2, "horizon": 10, "needed": 10, "m": 4, "steps_at_risk": 1.0}
        plain |= {"seen_chance": 1.0, "episodes": 4, "pair_episodes": 4}
        return kind_of(factors(Evidence(**(plain | changes))))  # type: ignore[arg-type]

    assert named(seen_chance=0.01, episodes=200, pair_episodes=200, m=200) == "sparse"
    assert named(episodes=500, pair_episodes=500, m=500) == "noise"
    assert named(steps_at_risk=30.0) == "long"
    assert named(num_actions=60, seen_chance=1 / 60, episodes=120, pair_episodes=100, m=100) == "actions"
    assert named(needed=2) == "horizon"
    assert named(misleads=True) == "misleading"
