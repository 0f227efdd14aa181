"""What random networks earn, against networks written out in numpy; capacities against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from efhorizon import TabularMDP
from efhorizon.agents.random_networks import information_capacity, play, weight_guessing
from efhorizon.agents.random_networks.information_capacity import (
    policy_information_capacity,
    policy_optimal_information_capacity,
)
from efhorizon.agents.random_networks.play import UNITS, Returns, Sampling
from efhorizon.agents.random_networks.shares import share_interval
from efhorizon.planning.problem import Problem, problem

GREEDY = Sampling(networks=300, image_networks=30, episodes=1, greedy=True)


def bandit(num_actions: int = 2) -> TabularMDP:
    return TabularMDP([[-1] * num_actions], [[1.0] + [0.0] * (num_actions - 1)], horizon=1)


def a_game(rng: np.random.Generator, num_nodes: int = 30, num_actions: int = 3) -> play._Game:
    """Nodes that show two of six frames each, one after the other."""
    transitions = rng.integers(-1, num_nodes, size=(num_nodes, num_actions))
    rewards = rng.integers(-3, 4, size=(num_nodes, num_actions))
    values = rng.random((6, 5), np.float32)
    stacks = rng.integers(6, size=(9, 2))
    observation = rng.integers(9, size=num_nodes)
    return play._Game(transitions, rewards, observation, 12, values, stacks)


def test_greedy_networks_are_those_of_numpy() -> None:
    game = a_game(np.random.default_rng(5))
    scales = np.array([1, 2, 1, 0.5, 1], np.float32)
    earned = play._played(game, scales, GREEDY, 300)
    rng = np.random.default_rng(play.SEED)  # the same numbers in the same order
    first = rng.standard_normal((300, 2, 5, UNITS), np.float32) * scales[:, None]
    second = rng.standard_normal((300, UNITS, UNITS), np.float32)
    last = rng.standard_normal((300, UNITS, 3), np.float32)
    for network in range(300):
        node, total, time = 0, 0, 0
        while node >= 0 and time < game.horizon:
            frames = game.values[game.stacks[game.observation[node]]]  # [K, G]
            hidden = np.tanh(np.einsum("kg,kgu->u", frames.astype(float), first[network]))
            outputs = np.tanh(hidden @ second[network]) @ last[network]
            action = int(outputs.argmax())
            total += int(game.rewards[node, action])
            node, time = int(game.transitions[node, action]), time + 1
        assert earned[network, 0] == total
    assert len(np.unique(earned)) > 5


def test_greedy_networks_choose_every_action_of_a_bandit_alike() -> None:
    found = weight_guessing.weight_guessing(problem(bandit(4)))
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.25 <= found.high
    assert found.note == (
        "10,000 networks with random weights, seed 0, which see the number of the state: there are no observations"
    )


def test_the_capacity_of_a_bandit() -> None:
    """One step and two actions: the chance of a return is the sigmoid of a difference of outputs."""
    rng = np.random.default_rng(1)
    count = 200_000
    hidden = np.tanh(rng.standard_normal((count, UNITS)))
    hidden = np.tanh(np.einsum("nu,nuv->nv", hidden, rng.standard_normal((count, UNITS, UNITS))))
    outputs = np.einsum("nu,nua->na", hidden, rng.standard_normal((count, UNITS, 2)))
    chances = 1 / (1 + np.exp(outputs[:, 1] - outputs[:, 0]))
    coins = -chances * np.log(chances) - (1 - chances) * np.log(1 - chances)
    expected = math.log(2) - coins.mean()  # both actions are equally likely overall
    found = policy_information_capacity(problem(bandit()))
    assert found.low is not None
    assert found.high is not None
    assert found.low < expected < found.high
    optimal = policy_optimal_information_capacity(problem(bandit()))
    assert optimal.value is not None  # a plug-in estimate: too large by up to 1 / (2 x 100 episodes)
    assert expected - 0.01 < optimal.value < expected + 0.02


def given_returns(monkeypatch: pytest.MonkeyPatch, units: list[list[int]], optimal: int) -> Problem:
    returns = Returns(np.array(units, np.int64), optimal, "made up")
    monkeypatch.setattr(information_capacity, "returns_of_random_networks", lambda given, sampling: returns)
    return problem(bandit())


def test_capacities_by_their_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three networks, four episodes each."""
    units = [[0, 0, 0, 1], [1, 1, 1, 1], [0, 2, 2, 1]]
    given = given_returns(monkeypatch, units, 2)

    def entropy(numbers: list[int]) -> float:
        shares = [numbers.count(each) / len(numbers) for each in set(numbers)]
        corrected = (len(shares) - 1) / (2 * len(numbers))
        return -sum(share * math.log(share) for share in shares) + corrected

    every = [number for row in units for number in row]
    expected = entropy(every) - sum(map(entropy, units)) / 3
    assert policy_information_capacity(given).value == pytest.approx(expected)

    def coin(chance: float) -> float:
        return -sum(p * math.log(p) for p in (chance, 1 - chance) if p)

    def capacity(eta: float) -> float:
        chances = [sum(math.exp((r - 2) / eta) for r in row) / 4 for row in units]
        return coin(sum(chances) / 3) - sum(map(coin, chances)) / 3

    best = max(capacity(2 * eta) for eta in information_capacity.TEMPERATURES if eta > 0.01)
    assert policy_optimal_information_capacity(given).value == pytest.approx(best)


def test_networks_that_all_earn_the_same_say_nothing_and_the_interval_says_how_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = given_returns(monkeypatch, [[3, 3]] * 50, 7)
    for measure in (policy_information_capacity, policy_optimal_information_capacity):
        found = measure(given)
        assert found.value == found.low == 0
        assert found.high is not None
        assert 0 < found.high < 0.4


def test_a_share_and_its_interval() -> None:
    assert share_interval(0, 100) == (0.0, pytest.approx(1 - 0.025**0.01))
    assert share_interval(100, 100) == (pytest.approx(0.025**0.01), 1.0)
    low, high = share_interval(30, 100)
    assert stats.binom.sf(29, 100, low) == pytest.approx(0.025)  # 30 or more
    assert stats.binom.cdf(30, 100, high) == pytest.approx(0.025)


def test_the_numbers_of_a_stream_are_uniform_and_normal() -> None:
    seed = np.uint64(77)
    uniform = [play._uniform(seed, place) for place in range(4000)]
    normal = [play._normal(seed, place) for place in range(4000)]
    assert stats.kstest(uniform, "uniform").pvalue > 0.01
    assert stats.kstest(normal, "norm").pvalue > 0.01


def test_what_cannot_be_played_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = problem(TabularMDP([[0, -1]], [[1e30, 1e-7]], horizon=3))
    found = weight_guessing.weight_guessing(odd)
    assert (found.value, found.reason) == (None, "rewards have no common unit, so returns are not exact")
    screens = np.zeros((1, 64, 64, 3), np.uint8)
    seen = TabularMDP(
        [[-1, -1]], [[1.0, 0.0]], horizon=1, screens=screens, screen_mapping=np.zeros(1, np.int32), metadata={"id": "x"}
    )
    few = Sampling(networks=4, image_networks=3, episodes=1, greedy=True)
    assert isinstance(play.returns_of_random_networks(problem(seen), few), Returns)
    monkeypatch.setattr(play, "MOST_FRAME_BYTES", 10)
    assert "1 images are too many" in str(play.returns_of_random_networks(problem(seen), few))
