"""DQN on tables against Stable-Baselines3's on the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from training_tables import NUM_ACTIONS, ShownEnv, channels_first, flat_table, image_table, numpy_state, walk_table

pytest.importorskip("torch")

from efhorizon.agents.deep import dqn, dqn_flat, flat
from efhorizon.agents.deep.dqn_flat import FlatDQN
from efhorizon.agents.deep.dqn_images import ImageDQN
from efhorizon.agents.deep.networks import network_for
from efhorizon.agents.deep.observations import ObservedTable
from efhorizon.agents.deep.protocol import Protocol
from efhorizon.agents.deep.settings import DQNSettings
from efhorizon.agents.streams import drawn_action, streams
from efhorizon.planning.policies import ExplorationPolicy

TABLES = {"flat": flat_table, "images": lambda rng: image_table(rng, 16)}


def model_of(observations: np.ndarray, settings: DQNSettings) -> Any:
    library = pytest.importorskip("stable_baselines3")
    import torch

    torch.manual_seed(3)
    torch.set_num_threads(1)  # threads would only wait for each other in networks this small
    return library.DQN(
        "MlpPolicy" if observations.ndim == 2 else "CnnPolicy",
        library.common.vec_env.DummyVecEnv([lambda: ShownEnv(observations)]),
        learning_rate=settings.rate,
        buffer_size=100,
        batch_size=settings.minibatch,
        gamma=settings.gamma,
        exploration_fraction=settings.exploration_fraction,
        exploration_final_eps=settings.final_epsilon,
        max_grad_norm=settings.max_gradient_norm,
        device="cpu",
    )


def image_updates(table: ObservedTable, settings: DQNSettings, start: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """What makes one gradient step after the other: from packed transitions to parameters."""
    (learner,) = ImageDQN(table, settings, 100, [0], start).learners

    def updated(codes: np.ndarray) -> np.ndarray:
        learner.learn(codes.astype(np.int32))
        return learner.network.theta()

    return updated


def flat_updates(table: ObservedTable, settings: DQNSettings, start: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The same, by the compiled loop's own functions."""
    game, rules = flat.game_of(table), dqn_flat.rules_of(table, settings)
    learners = FlatDQN(table, settings, 100, [0], start)
    theta, target = learners.theta[0], learners.target[0]
    multiplicity = network_for("q", table).multiplicity
    gradient, first, second = np.empty_like(theta), np.zeros_like(theta), np.zeros_like(theta)
    count = 0

    def updated(codes: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        batch = dqn_flat._empty_batch(game, rules)
        dqn_flat.fill_gradient(codes.astype(np.int32), theta, target, game, rules, batch, gradient)
        flat.adam_step(theta, gradient, first, second, multiplicity, count, rules)
        return theta.copy()

    return updated


@pytest.mark.parametrize(("kind", "keeps_values"), [("flat", True), ("flat", False), ("images", False)])
def test_three_updates_equal_stable_baselines3(
    kind: str, keeps_values: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    table, observations = TABLES[kind](rng)
    settings = DQNSettings(gamma=0.9, minibatch=24, max_gradient_norm=0.05)
    model = model_of(observations, settings)
    network, state = network_for("q", table), numpy_state(model.policy)
    assert {name: state[name].shape for name in network.torch_shapes} == network.torch_shapes
    monkeypatch.setattr(DQNSettings, "keeps_values", lambda settings, num_observations: keeps_values)
    start = network.from_torch(state)
    updated = (flat_updates if kind == "flat" else image_updates)(table, settings, start)
    batches = []
    for _ in range(3):
        codes = rng.integers(0, 2 * table.transitions.size, settings.minibatch)
        node, action = np.divmod(codes // 2, NUM_ACTIONS)
        codes |= table.transitions[node, action] < 0  # a step off the table is an end
        theta = updated(codes)
        shown = channels_first(observations)[table.observation]
        batches.append(
            ReplayBufferSamples(
                torch.as_tensor(shown[node]),
                torch.as_tensor(action[:, None]),
                torch.as_tensor(shown[np.maximum(table.transitions[node, action], 0)]),
                torch.as_tensor((codes % 2)[:, None], dtype=torch.float32),
                torch.as_tensor(table.rewards[node, action][:, None]),
            )
        )
    model.replay_buffer.sample = lambda *_, **__: batches.pop(0)
    model._logger = _Silent()
    model.train(gradient_steps=3, batch_size=settings.minibatch)
    expected = network.from_torch(numpy_state(model.policy))
    assert np.abs(expected - start).max() > 2e-4
    np.testing.assert_allclose(theta, expected, atol=2e-5)


def test_epsilon_falls_as_in_stable_baselines3(rng: np.random.Generator) -> None:
    settings = DQNSettings(gamma=1.0, exploration_fraction=0.1, schedule_steps=1000)
    model = model_of(flat_table(rng)[1], settings)
    steps = np.array([1, 5, 50, 99, 100, 101, 500, 1000])
    expected = [model.exploration_schedule(1.0 - step / 1000) for step in steps]
    rules = dqn_flat.rules_of(walk_table(), settings)
    np.testing.assert_allclose([dqn_flat.epsilon(step, rules) for step in steps], expected, rtol=1e-12)
    assert model.exploration_rate == 0.0 == dqn_flat.epsilon(0, rules)  # the first action is greedy


def played(
    learners: type[FlatDQN | ImageDQN],
    table: ObservedTable,
    settings: DQNSettings,
    policy: ExplorationPolicy | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The replay buffer [.] and which steps ended an episode [100] after the first 100 timesteps of seed 0."""
    learner = learners(table, settings, 100, [0], None, policy)
    is_done, _, _ = learner.interval(0)
    buffer = learner.buffer[0] if isinstance(learner, FlatDQN) else learner.learners[0].buffer
    return buffer, is_done[0]


@pytest.mark.parametrize("learners", [FlatDQN, ImageDQN])
def test_the_buffer_wraps_and_holds_what_happened(learners: type[FlatDQN | ImageDQN]) -> None:
    table = walk_table(is_seen=learners is ImageDQN)
    settings = DQNSettings(gamma=0.99, buffer_size=40, target_interval=20, minibatch=8, final_epsilon=1.0)
    codes, is_done = played(learners, table, settings)
    node, action = np.divmod(codes // 2, NUM_ACTIONS)
    ends = codes % 2 == 1
    # Timesteps 61 .. 100 are there: the oldest is at 60 % 40 = 20
    order = (20 + np.arange(40)) % 40
    is_off = table.transitions[node, action] < 0
    if table.bootstraps_at_horizon:
        np.testing.assert_array_equal(ends, is_off)  # the horizon cuts, it does not end
    else:
        np.testing.assert_array_equal(ends[order], is_done[60:])
        assert (is_off <= ends).all()
    following = table.transitions[node, action][order]
    for step in range(39):
        assert node[order][step + 1] == (0 if is_done[60 + step] else following[step])
    assert set(action) == {0, 1, 2}  # all are random


def test_a_seed_goes_its_way_whatever_runs_beside_it() -> None:
    table, settings = walk_table(), DQNSettings(gamma=0.99, schedule_steps=2_000)
    together, alone = FlatDQN(table, settings, 500, [3, 4, 5]), FlatDQN(table, settings, 500, [5])
    together.interval(0)
    alone.interval(0)
    assert together.keep([0, 2]) == [0, 2]
    for its, expected in zip(together.interval(500), alone.interval(500), strict=True):
        np.testing.assert_array_equal(its[1], expected[0])
    np.testing.assert_array_equal(together.theta[1], alone.theta[0])
    assert (together.theta[0] != together.theta[1]).any()


@pytest.mark.parametrize("learners", [FlatDQN, ImageDQN])
def test_random_actions_are_those_of_the_policy(learners: type[FlatDQN | ImageDQN]) -> None:
    table = walk_table(is_seen=learners is ImageDQN)
    settings = DQNSettings(gamma=0.99, buffer_size=100, train_every=1, final_epsilon=1.0)
    to_the_right = ExplorationPolicy(NUM_ACTIONS, np.tile([0.0, 0.0, 1.0], (1, 4, 1)))
    codes, _ = played(learners, table, settings, to_the_right)
    assert set((codes // 2 % NUM_ACTIONS)[1:]) == {2}  # the first action is greedy


def test_random_actions_have_the_policy_s_probabilities() -> None:
    first, then = [[0.25, 0.75, 0.0]] * 4, [[0.0, 0.5, 0.5]] * 3 + [[1.0, 0.0, 0.0]]
    policy, uniform = np.array([first, then]), np.zeros((0, 0, 0))
    words = streams(np.random.default_rng(0), 1)[0]

    def shares(probabilities: np.ndarray, time: int, state: int) -> np.ndarray:
        drawn = [drawn_action(words, time, state, NUM_ACTIONS, probabilities) for _ in range(4000)]
        return np.bincount(drawn, minlength=NUM_ACTIONS) / 4000

    assert shares(policy, 0, 0) == pytest.approx(np.array(first[0]), abs=0.03)  # four standard deviations
    assert shares(policy, 0, 0)[2] == 0
    assert shares(policy, 1, 2) == pytest.approx(np.array(then[2]), abs=0.03)
    assert shares(policy, 9, 2)[0] == 0
    assert shares(policy, 1, 3).tolist() == [1, 0, 0]
    assert shares(uniform, 0, 0) == pytest.approx(np.full(3, 1 / 3), abs=0.03)


@pytest.mark.parametrize("target_interval", [1000, 4])  # with 4 there are more observations than a copy serves
def test_a_walk_is_learnt(target_interval: int) -> None:
    settings = DQNSettings(gamma=0.99, schedule_steps=20_000, target_interval=target_interval, minibatch=3)
    results = dqn.train(walk_table(), settings, Protocol(max_steps=40_000, window=None), [0, 1])
    assert all(result.solved_by == "evaluation" and result.sample_complexity for result in results)


def test_a_walk_is_learnt_from_images() -> None:
    settings = DQNSettings(gamma=0.99, schedule_steps=5_000, target_interval=100, minibatch=8)
    protocol = Protocol(max_steps=5_000, evaluation_interval=500, window=None)
    results = dqn.train(walk_table(is_seen=True), settings, protocol, [0, 1])
    assert all(result.solved_by == "evaluation" and result.sample_complexity for result in results)


def test_initialisation_is_torch_s(rng: np.random.Generator) -> None:
    table, observations = flat_table(rng)
    model = model_of(observations, DQNSettings(gamma=0.9))
    network = network_for("q", table)
    ours = network.unpacked(network.initial(rng))
    theirs = network.unpacked(network.from_torch(numpy_state(model.policy)))
    for name in ours:
        assert np.linalg.norm(ours[name]) == pytest.approx(np.linalg.norm(theirs[name]), rel=0.6), name
    assert np.abs(ours["q.1.w"]).max() <= 1 / 8
    assert np.abs(ours["q.1.w"]).max() == pytest.approx(1 / 8, rel=0.01)


def test_lengths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="buffer_size"):
        dqn.train(walk_table(), DQNSettings(gamma=1.0, buffer_size=1001), Protocol(), [0])


class _Silent:
    def record(self, *_: Any, **__: Any) -> None:
        pass
