"""DQN on tables against Stable-Baselines3's on the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from training_tables import NUM_ACTIONS, ShownEnv, channels_first, flat_table, image_table, numpy_state, walk_table

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from efhorizon.agents import dqn, dqn_flat, dqn_images
from efhorizon.agents.dqn import DQNSettings
from efhorizon.agents.dqn_flat import FlatLearners
from efhorizon.agents.dqn_images import ImageLearners
from efhorizon.agents.forward import Sight
from efhorizon.agents.networks import adam_start
from efhorizon.agents.observations import ObservedTable
from efhorizon.agents.protocol import Protocol
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


def image_updates(
    table: ObservedTable, sight: Sight, settings: DQNSettings, start: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """What makes one gradient step after the other: from packed transitions to parameters."""
    theta = jnp.asarray(start)
    adam, target = adam_start(theta), jax.jit(lambda theta: dqn_images._target(sight, settings, theta))(theta)
    update = jax.jit(lambda *given: dqn_images.optimised(table, sight, settings, *given))

    def updated(codes: np.ndarray) -> np.ndarray:
        nonlocal theta, adam
        theta, adam = update(theta, adam, target, jnp.asarray(codes))
        return np.asarray(theta)

    return updated


def flat_updates(
    table: ObservedTable, sight: Sight, settings: DQNSettings, start: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """The same, by the compiled loop's own functions."""
    game, rules = dqn_flat.game_of(table, None), dqn_flat.rules_of(table, settings)
    learners = FlatLearners(table, settings, 100, [0], start)
    theta, target = learners.theta[0], learners.target[0]
    gradient, first, second = np.empty_like(theta), np.zeros_like(theta), np.zeros_like(theta)
    count = 0

    def updated(codes: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        batch = dqn_flat._empty_batch(game, rules)
        dqn_flat.fill_gradient(codes.astype(np.int32), theta, target, game, rules, batch, gradient)
        dqn_flat.adam_step(theta, gradient, first, second, sight.network.multiplicity, count, rules)
        return theta.copy()

    return updated


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize(
    ("learner", "kind", "keeps_values"),
    [("flat", "flat", True), ("flat", "flat", False), ("images", "flat", True), ("images", "images", False)],
)
def test_three_updates_equal_stable_baselines3(
    learner: str, kind: str, keeps_values: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    table, observations = TABLES[kind](rng)
    settings = DQNSettings(gamma=0.9, minibatch=24, max_gradient_norm=0.05)
    model = model_of(observations, settings)
    sight = Sight.of(table, "q")
    state = numpy_state(model.policy)
    assert {name: state[name].shape for name in sight.network.torch_shapes} == sight.network.torch_shapes
    monkeypatch.setattr(DQNSettings, "keeps_values", lambda settings, num_observations: keeps_values)
    start = sight.network.from_torch(state)
    updated = {"flat": flat_updates, "images": image_updates}[learner](table, sight, settings, start)
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
    expected = sight.network.from_torch(numpy_state(model.policy))
    assert np.abs(np.asarray(expected - start)).max() > 2e-4
    np.testing.assert_allclose(np.asarray(theta), expected, atol=2e-5)


def test_epsilon_falls_as_in_stable_baselines3(rng: np.random.Generator) -> None:
    settings = DQNSettings(gamma=1.0, exploration_fraction=0.1, schedule_steps=1000)
    model = model_of(flat_table(rng)[1], settings)
    steps = np.array([1, 5, 50, 99, 100, 101, 500, 1000])
    expected = [model.exploration_schedule(1.0 - step / 1000) for step in steps]
    np.testing.assert_allclose(np.asarray(dqn_images.epsilon(settings, jnp.asarray(steps))), expected, rtol=1e-5)
    rules = dqn_flat.rules_of(walk_table(), settings)
    np.testing.assert_allclose([dqn_flat.epsilon(step, rules) for step in steps], expected, rtol=1e-12)
    assert model.exploration_rate == 0.0 == dqn_flat.epsilon(0, rules)  # the first action is greedy
    assert float(dqn_images.epsilon(settings, jnp.asarray(0))) == 0.0


def played(
    learners: type[FlatLearners | ImageLearners],
    table: ObservedTable,
    settings: DQNSettings,
    policy: ExplorationPolicy | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The replay buffer [.] and which steps ended an episode [100] after the first 100 timesteps of seed 0."""
    learner = learners(table, settings, 100, [0], None, policy)
    is_done, _, _ = learner.interval(0)
    carried = learner if isinstance(learner, FlatLearners) else learner._carried
    return np.asarray(carried.buffer)[0], is_done[0]


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("learners", [FlatLearners, ImageLearners])
def test_the_buffer_wraps_and_holds_what_happened(learners: type[FlatLearners | ImageLearners]) -> None:
    table = walk_table()
    settings = DQNSettings(gamma=0.99, buffer_size=40, target_interval=20, minibatch=8, final_epsilon=1.0)
    codes, is_done = played(learners, table, settings)
    node, action = np.divmod(codes // 2, NUM_ACTIONS)
    ends = codes % 2 == 1
    np.testing.assert_array_equal(ends, table.transitions[node, action] < 0)  # the horizon cuts, it does not end
    # Timesteps 61 .. 100 are there: the oldest is at 60 % 40 = 20
    order = (20 + np.arange(40)) % 40
    following = table.transitions[node, action][order]
    for step in range(39):
        assert node[order][step + 1] == (0 if is_done[60 + step] else following[step])
    assert set(action) == {0, 1, 2}  # all are random


def test_a_seed_goes_its_way_whatever_runs_beside_it() -> None:
    table, settings = walk_table(), DQNSettings(gamma=0.99, schedule_steps=2_000)
    together, alone = FlatLearners(table, settings, 500, [3, 4, 5]), FlatLearners(table, settings, 500, [5])
    together.interval(0)
    alone.interval(0)
    assert together.keep([0, 2]) == [0, 2]
    for its, expected in zip(together.interval(500), alone.interval(500), strict=True):
        np.testing.assert_array_equal(its[1], expected[0])
    np.testing.assert_array_equal(together.theta[1], alone.theta[0])
    assert (together.theta[0] != together.theta[1]).any()


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("learners", [FlatLearners, ImageLearners])
def test_random_actions_are_those_of_the_policy(learners: type[FlatLearners | ImageLearners]) -> None:
    table, settings = walk_table(), DQNSettings(gamma=0.99, buffer_size=100, train_every=1, final_epsilon=1.0)
    to_the_right = ExplorationPolicy(NUM_ACTIONS, np.tile([0.0, 0.0, 1.0], (1, 4, 1)))
    codes, _ = played(learners, table, settings, to_the_right)
    assert set((codes // 2 % NUM_ACTIONS)[1:]) == {2}  # the first action is greedy


def test_random_actions_have_the_policy_s_probabilities() -> None:
    table = walk_table()
    first, then = [[0.25, 0.75, 0.0]] * 4, [[0.0, 0.5, 0.5]] * 3 + [[1.0, 0.0, 0.0]]
    policy = ExplorationPolicy(NUM_ACTIONS, np.array([first, then]))
    choices = jnp.append(jnp.arange(1000) / 1000, 1 - 2**-24)

    def counts(policy: ExplorationPolicy | None, time: int, node: int) -> list[int]:
        at = dqn_images.Episode(jnp.int32(node), jnp.int32(time), jnp.int32(0))
        actions = jax.vmap(lambda choice: dqn_images.random_actions(table, policy)(at, choice))(choices)
        return np.bincount(actions, minlength=NUM_ACTIONS).tolist()

    assert counts(policy, 0, 0) == [250, 751, 0]
    assert counts(policy, 1, 2) == counts(policy, 9, 2) == [0, 500, 501]
    assert counts(policy, 1, 3) == [1001, 0, 0]
    assert counts(None, 0, 0) == counts(ExplorationPolicy(NUM_ACTIONS), 0, 0) == [334, 333, 334]


@pytest.mark.parametrize("learners", [FlatLearners, ImageLearners])
@pytest.mark.parametrize("target_interval", [1000, 4])  # with 4 there are more observations than a copy serves
def test_a_walk_is_learnt(
    learners: type[FlatLearners | ImageLearners], target_interval: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dqn, "_learners", lambda table: learners)
    settings = DQNSettings(gamma=0.99, schedule_steps=20_000, target_interval=target_interval, minibatch=3)
    results = dqn.train(walk_table(), settings, Protocol(max_steps=40_000, window=None), [0, 1])
    assert all(result.solved_by == "evaluation" and result.sample_complexity for result in results)


def test_initialisation_is_torch_s(rng: np.random.Generator) -> None:
    table, observations = flat_table(rng)
    model = model_of(observations, DQNSettings(gamma=0.9))
    sight = Sight.of(table, "q")
    ours = sight.network.unpacked(sight.network.initial(rng))
    theirs = sight.network.unpacked(sight.network.from_torch(numpy_state(model.policy)))
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
