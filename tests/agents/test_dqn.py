"""DQN on tables against Stable-Baselines3's on the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from training_tables import NUM_ACTIONS, ShownEnv, channels_first, flat_table, image_table, numpy_state, walk_table

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from efhorizon.agents import dqn
from efhorizon.agents.dqn import DQNSettings
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


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize(("kind", "keeps_values"), [("flat", True), ("flat", False), ("images", False)])
def test_three_updates_equal_stable_baselines3(
    kind: str, keeps_values: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    table, observations = TABLES[kind](rng)
    settings = DQNSettings(gamma=0.9, minibatch=24, max_gradient_norm=0.05)
    model = model_of(observations, settings)
    sight = Sight.of(table, "q")
    state = numpy_state(model.policy)
    assert {name: state[name].shape for name in sight.network.torch_shapes} == sight.network.torch_shapes
    theta = jnp.asarray(sight.network.from_torch(state))
    monkeypatch.setattr(dqn, "_keeps_values", lambda sight, settings: keeps_values)
    target = jax.jit(lambda theta: dqn._target(sight, settings, theta))(theta)
    adam, start = adam_start(theta), theta
    update = jax.jit(lambda *given: dqn.optimised(table, sight, settings, *given))
    batches = []
    for _ in range(3):
        codes = rng.integers(0, 2 * table.transitions.size, settings.minibatch)
        node, action = np.divmod(codes // 2, NUM_ACTIONS)
        codes |= table.transitions[node, action] < 0  # a step off the table is an end
        theta, adam = update(theta, adam, target, jnp.asarray(codes))
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
    np.testing.assert_allclose(np.asarray(dqn.epsilon(settings, jnp.asarray(steps))), expected, rtol=1e-5)
    assert model.exploration_rate == 0.0 == float(dqn.epsilon(settings, jnp.asarray(0)))  # the first action is greedy


def played(
    table: ObservedTable, settings: DQNSettings, policy: ExplorationPolicy | None = None
) -> tuple[dqn.Learner, dqn.Report]:
    """The first 100 timesteps of seed 0."""
    sight = Sight.of(table, "q")
    run = jax.jit(dqn._interval_of(table, settings, 100, sight, dqn.random_actions(table, policy)))
    learner = jax.tree.map(lambda array: array[0], dqn.starts(sight, settings, [0], None))
    learner, (report, _) = run(learner, jnp.int32(0))
    return learner, report


@pytest.mark.usefixtures("quick_compilation")
def test_the_buffer_wraps_and_holds_what_happened() -> None:
    table = walk_table()
    settings = DQNSettings(gamma=0.99, buffer_size=40, target_interval=20, minibatch=8, final_epsilon=1.0)
    learner, report = played(table, settings)
    assert report.is_done.shape == (25, settings.train_every)
    assert int(learner.adam.count) == 25
    codes = np.asarray(learner.buffer)
    node, action = np.divmod(codes // 2, NUM_ACTIONS)
    ends = codes % 2 == 1
    np.testing.assert_array_equal(ends, table.transitions[node, action] < 0)  # the horizon cuts, it does not end
    # Timesteps 61 .. 100 are there: the oldest is at 60 % 40 = 20
    order = (20 + np.arange(40)) % 40
    following = table.transitions[node, action][order]
    is_done = np.asarray(report.is_done).reshape(-1)[60:]
    for step in range(39):
        assert node[order][step + 1] == (0 if is_done[step] else following[step])
    # All actions are random. Each is a uniform number, scaled, bit for bit as before policies could be given.
    subkey = jax.random.split(jax.random.key(0))[1]
    uniform = np.asarray(jax.random.uniform(subkey, (25, 2 * settings.train_every + settings.minibatch)))
    choices = uniform[:, settings.train_every : 2 * settings.train_every].reshape(-1)
    assert action[order].tolist() == (choices * NUM_ACTIONS).astype(int)[60:].tolist()


@pytest.mark.usefixtures("quick_compilation")
def test_random_actions_are_those_of_the_policy() -> None:
    table, settings = walk_table(), DQNSettings(gamma=0.99, buffer_size=100, train_every=1, final_epsilon=1.0)
    to_the_right = ExplorationPolicy(NUM_ACTIONS, np.tile([0.0, 0.0, 1.0], (1, 4, 1)))
    learner, _ = played(table, settings, to_the_right)
    assert set((np.asarray(learner.buffer) // 2 % NUM_ACTIONS)[1:]) == {2}  # the first action is greedy


def test_random_actions_have_the_policy_s_probabilities() -> None:
    table = walk_table()
    first, then = [[0.25, 0.75, 0.0]] * 4, [[0.0, 0.5, 0.5]] * 3 + [[1.0, 0.0, 0.0]]
    policy = ExplorationPolicy(NUM_ACTIONS, np.array([first, then]))
    choices = jnp.append(jnp.arange(1000) / 1000, 1 - 2**-24)

    def counts(policy: ExplorationPolicy | None, time: int, node: int) -> list[int]:
        at = dqn.Episode(jnp.int32(node), jnp.int32(time), jnp.int32(0))
        actions = jax.vmap(lambda choice: dqn.random_actions(table, policy)(at, choice))(choices)
        return np.bincount(actions, minlength=NUM_ACTIONS).tolist()

    assert counts(policy, 0, 0) == [250, 751, 0]
    assert counts(policy, 1, 2) == counts(policy, 9, 2) == [0, 500, 501]
    assert counts(policy, 1, 3) == [1001, 0, 0]
    assert counts(None, 0, 0) == counts(ExplorationPolicy(NUM_ACTIONS), 0, 0) == [334, 333, 334]


def test_a_walk_is_learnt() -> None:
    settings = DQNSettings(gamma=0.99, schedule_steps=20_000)
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
