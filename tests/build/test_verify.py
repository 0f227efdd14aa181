"""Verification: it passes on exact tables and finds planted errors."""

from __future__ import annotations

import functools
import struct
from pathlib import Path

import numpy as np
import pytest
from toy_mdps import LyingWalkSimulator, WalkSimulator

from efhorizon import TabularMDP
from efhorizon.build.explore import explore, opened_search
from efhorizon.build.table import table
from efhorizon.build.target import table_spec
from efhorizon.build.verify import SAMPLE, verify
from efhorizon.errors import EfhorizonError, InvalidTableError
from efhorizon.io.metadata import checked_metadata
from efhorizon.render.terminal import building

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
    assert (report.num_pairs, report.num_pairs_replayed) == (12, 12)
    assert (report.num_states, report.num_states_replayed) == (4, 4)
    assert (report.num_raw_states, report.num_raw_states_from_reset) == (4, 4)
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


def test_what_few_episodes_miss_the_pairs_show(tmp_path: Path) -> None:
    long_walk = functools.partial(WalkSimulator, 40, False)
    search = opened_search(tmp_path, long_walk(), {})
    explore(search, 60, long_walk)
    right = table(search, 60)
    rewards = right.rewards.copy()
    rewards[30, 0] = -0.5  # a good episode stays away from it
    wrong = TabularMDP(right.transitions, rewards, 60, screens=right.screens, screen_mapping=right.screen_mapping)
    assert verify(wrong, long_walk, num_episodes=3, num_pairs=0).agrees
    difference = verify(wrong, long_walk, num_episodes=3).difference
    search.close()
    assert str(difference) == f"after actions {[2] * 30 + [0]} the reward is 0, but -0.5 in the table"


def test_a_sample_says_what_it_covers(mdp: TabularMDP) -> None:
    report = verify(mdp, walk, num_episodes=3, num_pairs=2, seed=3)
    assert report.agrees
    assert not report.is_exact
    assert not report.is_complete
    assert report.num_pairs_drawn == 2
    assert 2 <= report.num_pairs_replayed <= 12
    written = report.as_json()
    assert (written["verified"], written["exact"], written["complete"], written["pairs"]) == (True, False, False, 12)
    assert (written["raw_states"], written["raw_states_from_reset"]) == (None, None)
    everything = verify(mdp, walk, num_pairs=12)
    assert everything.is_exact


def test_the_size_of_a_sample() -> None:
    """The fewest pairs such that, if one in a thousand is wrong, all of them are right with a chance below 1%."""
    assert SAMPLE == 4603
    assert 0.999**SAMPLE < 0.01 <= 0.999 ** (SAMPLE - 1)


def test_pairs_that_are_drawn(mdp: TabularMDP) -> None:
    """All but one of twelve; next states are recognised by the raw states that the table has, if it has any."""
    blind = verify(mdp, walk, num_episodes=3, num_pairs=11)
    assert (blind.num_pairs_drawn, blind.num_next_states_recognised) == (11, 0)
    raw = [struct.pack("<ii", position, 0) for position in range(4)]
    known = TabularMDP(mdp.transitions, mdp.rewards, 12, states=raw)
    seeing = verify(known, walk, num_episodes=3, num_pairs=11)
    assert seeing.agrees
    assert seeing.num_next_states == blind.num_next_states == seeing.num_next_states_recognised
    assert seeing.num_next_states in (10, 11)  # one of the twelve ends the episode


def test_too_many_raw_states(mdp: TabularMDP, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then pairs are drawn, which is known beforehand only where the table says how many raw states it stands for."""
    monkeypatch.setattr("efhorizon.build.verify.MOST_RAW_PAIRS", 10)
    said: list[str] = []
    report = verify(mdp, walk, on_progress=said.append)
    assert (report.agrees, report.is_complete, report.num_pairs_drawn) == (True, False, 12)
    assert "more raw states than can be visited: drawing pairs instead" in said
    assert verify(mdp, walk, num_pairs="all").is_exact
    said.clear()
    verify(mdp.with_metadata(num_states_raw=4), walk, on_progress=said.append)
    assert "more raw states than can be visited: drawing pairs instead" not in said


def test_few_steps_from_reset_are_not_called_exact(mdp: TabularMDP, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("efhorizon.build.verify._LEAST_RESET_STEPS", 0)
    monkeypatch.setattr("efhorizon.build.verify._RESET_STEPS_A_PAIR", 0)
    report = verify(mdp, walk)
    assert (report.agrees, report.is_complete, report.is_exact) == (True, True, False)
    assert (report.num_raw_states, report.num_raw_states_from_reset) == (4, 0)
    assert "no difference in any of the 12 pairs, 0% of the snapshots" in building.verification(report.as_json())


def test_another_number_of_actions(mdp: TabularMDP) -> None:
    fewer = TabularMDP(mdp.transitions[:, :2], mdp.rewards[:, :2], 12)
    with pytest.raises(EfhorizonError, match="the table has 2 actions but its environment 3"):
        verify(fewer, walk)


def test_what_a_certificate_says(mdp: TabularMDP) -> None:
    older = {"verified": True, "episodes": 20, "steps": 57, "screens_compared": True}
    assert building.verification(older) == "on 20 episodes only: no difference in 57 steps with screens"
    newer = verify(mdp, walk).as_json()
    assert building.verification(newer) == "[green]exact[/green], all 12 pairs of 4 states replayed with screens"
    assert checked_metadata({"verification": older})
    assert checked_metadata({"verification": newer})
    with pytest.raises(InvalidTableError, match="counts pairs and raw states"):
        checked_metadata({"verification": {**newer, "raw_states": None}})
    sampled = {**newer, "exact": False, "complete": False, "pairs": 5000, "pairs_replayed": 60}
    assert building.verification(sampled) == "no difference in 60 of 5,000 pairs (1%) with screens"


def test_a_table_whose_states_were_replayed_is_verified_that_way() -> None:
    mdp = TabularMDP([[0]], [[0.0]], 10, metadata={"suite": "atari", "id": "freeway_10_fs30"})
    assert not table_spec(mdp).replay
    assert table_spec(mdp.with_metadata(provenance={"replay": True})).replay


def test_an_environment_that_restores_inexactly_does_not_verify(tmp_path: Path) -> None:
    search = opened_search(tmp_path, lying_walk(), {})
    explore(search, 6, lying_walk)
    report = verify(table(search, 6), lying_walk)
    search.close()
    assert not report.agrees
    assert report.as_json()["difference"]["what"] == "reward"
