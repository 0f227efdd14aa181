"""Unfinished tables: intervals that hold the truth, whatever it is."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from brute_force import Exact
from planning.test_sweeps import random_table

from efhorizon import TabularMDP
from efhorizon.bounds import examples
from efhorizon.bounds.analysis import Analysis, analyze
from efhorizon.bounds.interval import Interval
from efhorizon.bounds.unfinished import AnytimeAnalysis, InvalidRewardBoundsError
from efhorizon.commands import main
from efhorizon.io.tables import save


def hidden(mdp: TabularMDP, unexplored: list[int]) -> TabularMDP:
    """The same table, with some rows unknown: their placeholders end the episode."""
    marks = np.zeros(mdp.num_states, np.bool_)
    marks[unexplored] = True
    transitions, rewards = mdp.transitions.copy(), mdp.rewards.copy()
    transitions[marks], rewards[marks] = -1, 0.0
    return TabularMDP(transitions, rewards, mdp.horizon, unexplored=marks)


def contains(interval: Interval, value: float) -> bool:
    slack = 1e-12 * (1 + abs(value))
    return interval.low - slack <= value and (interval.high is None or value <= interval.high + slack)


@pytest.mark.parametrize("seed", range(120))
def test_intervals_hold_the_truth(seed: int) -> None:
    mdp = random_table(seed, nonnegative=seed % 2 == 0)
    rng = np.random.default_rng(seed)
    unexplored = rng.choice(mdp.num_states, size=int(rng.integers(1, mdp.num_states + 1)), replace=False)
    rewards = mdp.rewards
    found = analyze(hidden(mdp, unexplored.tolist()), reward_bounds=(float(rewards.min()), float(rewards.max())))
    assert isinstance(found, AnytimeAnalysis)
    truth = analyze(mdp, max_k=1, exact=False)
    assert isinstance(truth, Analysis)
    exact = Exact(mdp)
    sequences = list(product(exact.actions, repeat=mdp.horizon))
    best = exact.optimal(0, 0)
    lucky = sum(exact.probability(s) for s in sequences if exact.sequence_return(s) == best)
    for name, value in {
        "optimal_return": float(best),
        "worst_return": float(exact.worst(0, 0)),
        "exploration_return": float(exact.average(0, 0)),
        "optimal_return_probability": float(lucky),
        "min_k": min(k for k in range(1, mdp.horizon + 1) if exact.solvable(k)),
        "epw": min(k for k in range(1, mdp.horizon + 1) if exact.solvable(k, window=True)),
        "min_state_action_occupancy": truth.occupancy.state_action,
        "min_sum_state_action_occupancy": truth.occupancy.state_action_sum,
    }.items():
        assert contains(found.intervals[name], value), (name, found.intervals[name], value)
    json.dumps(found.as_json())


def test_what_does_not_matter_does_not_blur() -> None:
    """Action 1 ends at once with nothing; hide what follows the worst of three actions: all is known."""
    mdp = examples.dense_rewards(4, 2)
    transitions = np.concatenate([mdp.transitions, [[-1, -1]]])
    transitions[3, 1] = 4  # at the last step, into a state that is entered at the horizon only
    rewards = np.concatenate([mdp.rewards, [[0.0, 0.0]]])
    table = TabularMDP(transitions, rewards, 4, unexplored=[False] * 4 + [True])
    found = analyze(table)
    assert isinstance(found, AnytimeAnalysis)
    assert found.intervals["optimal_return"] == Interval(4.0, 4.0)
    assert found.intervals["min_k"] == Interval(1, 1)
    assert found.intervals["epw"] == Interval(1, 1)


def test_how_rare_a_known_state_can_be() -> None:
    """A chain that random actions stay on with chance 1/2: what is hidden may lead back to any known state."""
    (last, last_two) = (analyze(hidden(examples.dense_rewards(4), states)) for states in ([3], [2, 3]))
    assert isinstance(last, AnytimeAnalysis)
    assert isinstance(last_two, AnytimeAnalysis)
    # state 2: 1/4, each action 1/8, and 1/8 besides from state 3, at the last step only
    assert last.intervals["min_state_action_occupancy"] == Interval(0.0, 0.25)
    assert last.intervals["min_sum_state_action_occupancy"] == Interval(0.0, 0.25)
    assert last.intervals["covering_length"] == Interval(math.log(2) / (2 * 0.25), None)
    assert last.sample_complexity["covering_length"] == Interval(4 * math.log(2) / (2 * 0.25), None)
    # state 1: 1/2, each action 1/4, and 1/4 besides at each of two steps
    assert last_two.intervals["min_state_action_occupancy"] == Interval(0.0, 0.5)
    assert last_two.intervals["min_sum_state_action_occupancy"] == Interval(0.0, 0.75)
    assert last_two.intervals["covering_length"] == Interval(1.0, None)  # one episode in any case
    # every step may pay 1 on; both ends are what the table pays at least and at most
    assert last_two.intervals["optimal_return"] == Interval(2.0, 4.0)
    assert (last_two.num_explored, last_two.num_unexplored) == (2, 2)
    assert last_two.sample_complexity["ucb"] == Interval(4 * 2 * 4, None)


def test_a_tie_that_is_known_is_no_doubt() -> None:
    """Two of three actions pay 1; the third leads into the dark, but only when the episode is over."""
    table = TabularMDP([[-1, -1, 1], [-1, -1, -1]], [[1.0, 1.0, 0.0], [0.0] * 3], 1, unexplored=[False, True])
    found = analyze(table)
    assert isinstance(found, AnytimeAnalysis)
    for name, value in {"optimal_return_probability": 2 / 3, "min_k": 1, "epw": 1, "optimal_return": 1.0}.items():
        assert found.intervals[name] == Interval(pytest.approx(value), pytest.approx(value)), name


def test_reward_bounds_must_hold_in_the_table() -> None:
    with pytest.raises(InvalidRewardBoundsError, match=r"range from 0 to 1, beyond the bounds 0 and 0\.5"):
        analyze(hidden(examples.dense_rewards(3), [2]), reward_bounds=(0.0, 0.5))


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(hidden(examples.dense_rewards(4), [3]), tmp_path / "unfinished")
    assert main(["analyze", str(path)]) == 0
    assert "1 not" in capsys.readouterr().out
    assert main(["analyze", str(path), "--json", "--reward-bounds", "0", "5"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["complete"] is False
    assert content["optimal_return"] == [3.0, 8.0]
    assert content["effective_horizon"]["kind"] == "interval"
    assert content["sample_complexity"]["worst_case"] == 4 * 8
    assert main(["analyze", str(path), str(path)]) == 0
    assert "interval" in capsys.readouterr().out
