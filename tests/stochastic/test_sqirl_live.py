"""SQIRL without a table: what it plays, what it finds, and how that is judged."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon.agents.live.rollouts import EnvironmentName
from efhorizon.commands._main import main
from efhorizon.stochastic.live_episodes import LiveGame, UnsuitableEnvironmentError
from efhorizon.stochastic.live_worth import UnknownObservationsError, Worth, estimated, known
from efhorizon.stochastic.sources.transition_function import from_transition_function
from efhorizon.stochastic.sqirl import InvalidSqirlError
from efhorizon.stochastic.sqirl_learner import SqirlSettings
from efhorizon.stochastic.sqirl_live import LiveSqirl, sqirl_live
from efhorizon.suites.environment_source import environment_source

CLIMB = '''
import gymnasium
import numpy as np
from gymnasium import spaces


class Climb(gymnasium.Env):
    """Action 1 climbs with chance 3/4, action 0 falls to the ground; four steps up pay 1 and end the episode."""

    observation_space = spaces.Discrete(5)
    action_space = spaces.Discrete(2)
    P = {
        cell: {
            0: [(1.0, 0, 0.0, False)],
            1: [(0.75, cell + 1, float(cell == 3), cell == 3), (0.25, cell, 0.0, False)],
        }
        for cell in range(4)
    } | {4: {0: [(1.0, 4, 0.0, True)], 1: [(1.0, 4, 0.0, True)]}}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action):
        if action == 0:
            self.cell = 0
        elif self.np_random.random() < 0.75:
            self.cell += 1
        return self.cell, float(self.cell == 4), self.cell == 4, False, {}


class Photo(gymnasium.Env):
    observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros((64, 64, 3), np.uint8), {}

    def step(self, action):
        return np.zeros((64, 64, 3), np.uint8), 0.0, True, False, {}
'''
HORIZON = 8


@pytest.fixture
def climb(tmp_path: Path) -> str:
    file = tmp_path / "climbing.py"
    file.write_text(CLIMB)
    return f"{file}:Climb"


class Always:
    """One action, whatever is seen."""

    def __init__(self, chosen: int) -> None:
        self.chosen = chosen

    def action(self, time: int, observation: Any) -> int:
        return self.chosen


def test_means_find_the_optimal_policy(climb: str) -> None:
    game = LiveGame(EnvironmentName(climb, HORIZON), seed=1)
    found = sqirl_live(game, k=2, m=400, seed=1)
    table = from_transition_function(environment_source(climb, {}), HORIZON, name="climb")
    worth, optimal = known(table, 0.0, game.width, HORIZON).worth(found.policy)
    assert worth.is_success(optimal)
    assert 400 * HORIZON * 4 < found.timesteps <= 400 * HORIZON * HORIZON
    guess = estimated(game, found, 2000)
    assert guess.low <= worth.value <= guess.high
    again = sqirl_live(LiveGame(EnvironmentName(climb, HORIZON), seed=1), k=2, m=400, seed=1)
    assert again.timesteps == found.timesteps


@pytest.mark.parametrize("chosen", [0, 1])
def test_worth_of_a_policy_that_is_known(climb: str, chosen: int) -> None:
    """Always climbing is optimal: at least 4 of 8 steps go up."""
    table = from_transition_function(environment_source(climb, {}), HORIZON, name="climb")
    worth, optimal = known(table, 0.0, 5, HORIZON).worth(Always(chosen))
    share = sum(comb(HORIZON, ups) * 0.75**ups * 0.25 ** (HORIZON - ups) for ups in range(4, HORIZON + 1))
    assert optimal == pytest.approx(share)
    assert worth.value == pytest.approx(share if chosen else 0.0)
    assert worth.is_success(optimal) is bool(chosen)
    game = LiveGame(EnvironmentName(climb, HORIZON), seed=3)
    guess = estimated(game, LiveSqirl(Always(chosen), 1, (0.0, 1.0)), 1500)
    assert guess.low <= worth.value <= guess.high
    assert 0 < guess.high - guess.low < 0.05


def test_what_an_interval_says() -> None:
    assert Worth(0.5, 0.4, 0.6, 10).is_success(0.4) is True
    assert Worth(0.5, 0.4, 0.6, 10).is_success(0.7) is False
    assert Worth(0.5, 0.4, 0.6, 10).is_success(0.5) is None
    assert Worth(0.5, 0.4, 0.6, 10).is_success(None) is None
    assert Worth(-1.0, -1.0, -1.0, 0).is_success(-0.995) is True


def test_a_network_learns_too(climb: str) -> None:
    """A tiny problem with few batches: a larger rate. The network's greedy policy beats random play by far."""
    pytest.importorskip("torch")
    game = LiveGame(EnvironmentName(climb, HORIZON), seed=0)
    settings = SqirlSettings(rate=3e-3, epochs=4)
    found = sqirl_live(game, k=1, m=60, seed=0, regression="network", settings=settings)
    table = from_transition_function(environment_source(climb, {}), HORIZON, name="climb")
    exact = known(table, 0.0, game.width, HORIZON)
    worth, optimal = exact.worth(found.policy)
    assert worth.value > 0.9 * optimal
    again = sqirl_live(
        LiveGame(EnvironmentName(climb, HORIZON), seed=0), k=1, m=60, seed=0, regression="network", settings=settings
    )
    assert exact.worth(again.policy)[0] == worth


def test_sticky_actions_are_played_as_often_as_they_should(climb: str) -> None:
    """Climb, then fall for ever: with stickiness, the second step climbs with chance q."""

    class Once:
        def action(self, time: int, observation: Any) -> int:
            return int(time == 0)

    game, heights = LiveGame(EnvironmentName(climb, 3), chance=0.25, seed=5), []
    for _ in range(4000):
        (step,) = game.episode(Once(), 2, 1).steps
        heights.append(int(step.observation.argmax()))
    # 0.75 up; then repeated with 1/4 (up with 3/4: 2, else stays 1), or falls to 0; from 0: repeated climbs with 1/4
    expected = {2: 0.75 * 0.25 * 0.75, 1: 0.75 * 0.25 * 0.25 + 0.25 * 0.25 * 0.75}
    for height, share in expected.items():
        assert np.mean(np.array(heights) == height) == pytest.approx(share, abs=0.02)


def test_what_cannot_be_played(climb: str) -> None:
    game = LiveGame(EnvironmentName(climb, HORIZON))
    for k, m in ((0, 1), (HORIZON + 1, 1), (1, 0)):
        with pytest.raises(InvalidSqirlError):
            sqirl_live(game, k=k, m=m)
    with pytest.raises(UnsuitableEnvironmentError, match="time limit"):
        LiveGame(EnvironmentName(climb))
    with pytest.raises(UnsuitableEnvironmentError, match="pictures"):
        LiveGame(EnvironmentName(climb.replace(":Climb", ":Photo"), 3))
    table = from_transition_function(environment_source(climb, {}), HORIZON, name="climb")
    with pytest.raises(UnknownObservationsError, match="steps"):
        known(table, 0.0, 5, HORIZON + 1)


def test_the_command(climb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sqirl", climb, "--live", "--horizon", str(HORIZON), "--m", "200", "--k", "2", "--runs", "2"]
    assert main([*arguments, "--episodes", "300", "--optimal", "0.886", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["seed"] for run in found["runs"]] == [0, 1]
    assert all(run["low"] <= run["value"] <= run["high"] and run["episodes"] == 300 for run in found["runs"])
    built = ["build", "--env", climb, "--horizon", str(HORIZON), "--out", str(tmp_path / "tables"), "--json"]
    assert main(built) == 0
    name = json.loads(capsys.readouterr().out)["id"]
    assert main([*arguments, "--known", name, "--tables", str(tmp_path / "tables")]) == 0
    assert "computed exactly; within 1% of optimal" in capsys.readouterr().out
    assert main([*arguments, "--runs", "1", "--episodes", "20"]) == 0
    assert "nobody knows" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [
        ["--live"],
        ["--m", "3", "--network"],
        ["--live", "--m", "3", "--known", "none", "--optimal", "1"],
        ["--live", "--m", "3", "--known", "none"],
    ],
)
def test_wrong_calls_are_one_line(climb: str, wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sqirl", climb, "--horizon", "4", *wrong]) != 0
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1
