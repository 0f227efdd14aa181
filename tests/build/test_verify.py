"""Verification: it passes on exact tables and finds planted errors."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from toy_mdps import LyingWalkSimulator, WalkSimulator

from efhorizon import TabularMDP
from efhorizon.build.explore import explore, opened_search
from efhorizon.build.table import table
from efhorizon.build.verify import verify

walk = functools.partial(WalkSimulator, 5, False)
lying_walk = functools.partial(LyingWalkSimulator, 5)


@pytest.fixture
def mdp(tmp_path: Path) -> TabularMDP:
    search = opened_search(tmp_path, walk(), {})
    explore(search, 12, walk)
    mdp = table(search, 12)
    copied = TabularMDP(
        mdp.transitions, mdp.rewards, 12, screens=np.stack([mdp.screen(s) for s in range(4)]), screen_mapping=range(4)
    )
    search.close()
    return copied


def changed(mdp: TabularMDP, **changes: object) -> TabularMDP:
    fields = {"transitions": mdp.transitions, "rewards": mdp.rewards, "screens": mdp.screens} | changes
    return TabularMDP(
        fields["transitions"],  # type: ignore[arg-type]
        fields["rewards"],  # type: ignore[arg-type]
        12,
        screens=fields["screens"],  # type: ignore[arg-type]
        screen_mapping=mdp.screen_mapping,
    )


def test_an_exact_table(mdp: TabularMDP) -> None:
    report = verify(mdp, walk, num_episodes=12)
    assert report.is_exact
    assert report.num_episodes == 12
    assert report.screens_compared
    assert report.optimal_return == 1.0


def test_a_wrong_reward(mdp: TabularMDP) -> None:
    rewards = mdp.rewards.copy()
    rewards[3, 2] = 0.5  # the goal: only an optimal episode is sure to find it
    difference = verify(changed(mdp, rewards=rewards), walk).difference
    assert difference is not None
    assert (difference.what, difference.expected, difference.found) == ("reward", "0.5", "1")
    assert difference.actions.count(2) >= 4  # the goal is four steps to the right


def test_a_wrong_end(mdp: TabularMDP) -> None:
    transitions = mdp.transitions.copy()
    transitions[3, 2] = 3
    difference = verify(changed(mdp, transitions=transitions), walk).difference
    assert difference is not None
    assert (difference.what, difference.expected, difference.found) == ("end", "no end", "an end")


def test_a_wrong_screen(mdp: TabularMDP) -> None:
    screens = np.array(mdp.screens)
    screens[2] += 1
    difference = verify(changed(mdp, screens=screens), walk).difference
    assert difference is not None
    assert difference.what == "screen"
    screens = np.array(mdp.screens)
    screens[0] += 1
    difference = verify(changed(mdp, screens=screens), walk).difference
    assert difference is not None
    assert difference.actions == ()
    assert "at the start" in str(difference)


def test_a_wrong_transition_shows_in_the_screen(mdp: TabularMDP) -> None:
    transitions = mdp.transitions.copy()
    transitions[2, 0] = 3
    difference = verify(changed(mdp, transitions=transitions), walk).difference
    assert difference is not None
    assert difference.what == "screen"


def test_an_environment_that_restores_inexactly_does_not_verify(tmp_path: Path) -> None:
    search = opened_search(tmp_path, lying_walk(), {})
    explore(search, 6, lying_walk)
    report = verify(table(search, 6), lying_walk)
    search.close()
    assert not report.is_exact
    assert report.as_json()["difference"]["what"] == "reward"
