"""OpenSpiel's games for one player, against episodes played by OpenSpiel itself."""

from __future__ import annotations

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

from efhorizon.stochastic.planning import Plan  # noqa: E402
from efhorizon.stochastic.returns import return_distribution  # noqa: E402
from efhorizon.stochastic.sources.openspiel import OpenSpielError, from_openspiel, games  # noqa: E402


def test_catch_is_the_game() -> None:
    """The ball starts in one of five columns and the paddle in the middle: it can always be caught."""
    mdp = from_openspiel("catch")
    assert mdp.is_exact
    assert mdp.initial_probabilities.tolist() == pytest.approx([0.2] * 5)
    plan = Plan(mdp)
    assert plan.optimal.values.at_start == 1.0
    rng = np.random.default_rng(0)
    game, returns = pyspiel.load_game("catch"), []
    for _ in range(1500):
        state = game.new_initial_state()
        while not state.is_terminal():
            actions = [action for action, _ in state.chance_outcomes()] if state.is_chance_node() else [0, 1, 2]
            state.apply_action(int(rng.choice(actions)))
        returns.append(state.player_return(0))
    found = return_distribution(plan)
    assert found.returns.tolist() == [-1.0, 1.0]
    assert np.mean(np.array(returns) > 0) == pytest.approx(found.probabilities[1], abs=0.05)


def test_games_that_are_no_tables_are_refused_in_one_line() -> None:
    assert "catch" in games()
    for name, reason in (("chess", "2 players"), ("no_such_game", "does not know")):
        with pytest.raises(OpenSpielError, match=reason):
            from_openspiel(name)
