"""PPO on tables against Stable-Baselines3's on the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from training_tables import NUM_ACTIONS, ShownEnv, channels_first, flat_table, image_table, numpy_state, walk_table

pytest.importorskip("jax")
pytest.importorskip("torch")

import jax
import jax.numpy as jnp

from efhorizon.agents import images, ppo, ppo_flat, ppo_images
from efhorizon.agents.forward import Sight
from efhorizon.agents.networks import adam_start, network_for
from efhorizon.agents.observations import ObservedTable
from efhorizon.agents.ppo import PPOSettings
from efhorizon.agents.protocol import Protocol

TABLES = {"flat": flat_table, "images": image_table}


def flat_updates(table: ObservedTable, settings: PPOSettings, start: np.ndarray, batch: list[np.ndarray]) -> np.ndarray:
    """The parameters after an epoch after the other, each one minibatch."""
    sight, given = Sight.of(table, "actor_critic"), [jnp.asarray(array) for array in batch]
    theta = jnp.asarray(start)
    adam = adam_start(theta)
    update = jax.jit(lambda theta, adam: ppo_flat.optimised(sight, settings, theta, adam, *given))
    for _ in range(settings.num_epochs):
        theta, adam = update(theta, adam)
    return np.asarray(theta)


def image_updates(
    table: ObservedTable, settings: PPOSettings, start: np.ndarray, batch: list[np.ndarray]
) -> np.ndarray:
    network = image_learner(table, settings, start).network
    samples = ppo_images.Samples(*batch)
    for _ in range(settings.num_epochs):
        network.improve(ppo_images.loss(settings, network.outputs(samples.observation), samples))
    return network.theta()


def image_learner(
    table: ObservedTable, settings: PPOSettings, start: np.ndarray | None = None
) -> ppo_images.ImageLearner:
    return ppo_images.ImageLearner(table, images.Images(table), settings, 10_000, 0, start)


def model_of(observations: np.ndarray, settings: PPOSettings) -> Any:
    library = pytest.importorskip("stable_baselines3")
    import torch

    torch.manual_seed(3)
    torch.set_num_threads(1)  # threads would only wait for each other in networks this small
    envs = library.common.vec_env.DummyVecEnv([lambda: ShownEnv(observations)] * settings.num_envs)
    return library.PPO(
        "MlpPolicy" if observations.ndim == 2 else "CnnPolicy",
        envs,
        learning_rate=settings.rate,
        n_steps=settings.rollout_length,
        batch_size=settings.minibatch,
        n_epochs=settings.num_epochs,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip,
        ent_coef=settings.entropy_weight,
        vf_coef=settings.value_weight,
        max_grad_norm=settings.max_gradient_norm,
        policy_kwargs={"activation_fn": torch.nn.ReLU},
        device="cpu",
    )


def fill(model: Any, rng: np.random.Generator, shown: np.ndarray) -> tuple[Any, np.ndarray]:
    """A rollout of random numbers in the model's buffer, seen as `shown`; and the observation numbers [T, N]."""
    import torch

    buffer = model.rollout_buffer
    shape = (buffer.buffer_size, buffer.n_envs)
    numbers = rng.integers(0, len(shown), shape)
    dones = rng.random((shape[0] + 1, shape[1])) < 0.2
    for step in range(shape[0]):
        buffer.add(
            shown[numbers[step]],
            rng.integers(0, NUM_ACTIONS, shape[1]),
            rng.normal(size=shape[1]),
            dones[step].astype(np.float32),
            torch.as_tensor(rng.normal(size=(shape[1], 1)), dtype=torch.float32),
            torch.as_tensor(rng.normal(size=shape[1]) * 0.2 - 1.1, dtype=torch.float32),
        )
    last = torch.as_tensor(rng.normal(size=(shape[1], 1)), dtype=torch.float32)
    buffer.compute_returns_and_advantage(last, dones[-1])
    given = buffer.rewards, buffer.values, dones[1:], last.numpy()[:, 0]
    for advantages in (
        ppo_flat.generalised_advantages(*(jnp.asarray(array) for array in given), buffer.gamma, buffer.gae_lambda),
        ppo_images.generalised_advantages(*given, buffer.gamma, buffer.gae_lambda),
    ):
        np.testing.assert_allclose(np.asarray(advantages), buffer.advantages, rtol=1e-4, atol=1e-5)
    return buffer, numbers


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("kind", TABLES)
def test_four_updates_equal_stable_baselines3(kind: str, rng: np.random.Generator) -> None:
    table, observations = TABLES[kind](rng)
    # One minibatch an epoch, so that the order of samples does not matter; the tight norm makes clipping count
    settings = PPOSettings(gamma=0.9, rollout_length=16, num_envs=2, minibatch=32, max_gradient_norm=0.3)
    model = model_of(observations, settings)
    network = network_for("actor_critic", table)
    start = network.from_torch(numpy_state(model.policy))
    buffer, numbers = fill(model, rng, channels_first(observations))
    actions = buffer.actions[:, :, 0].astype(np.int64)
    batch = [
        array.reshape(-1).copy() for array in (numbers, actions, buffer.log_probs, buffer.advantages, buffer.returns)
    ]
    theta = (flat_updates if kind == "flat" else image_updates)(table, settings, start, batch)
    model._logger = _Silent()
    model.train()
    expected = network.from_torch(numpy_state(model.policy))
    moved = np.abs(expected - start).max()
    assert moved > 5e-4  # multiplicities move sums further than the rate times four
    np.testing.assert_allclose(theta, expected, atol=2e-5)


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("kind", TABLES)
def test_outputs_equal_stable_baselines3(kind: str, rng: np.random.Generator) -> None:
    import torch

    table, observations = TABLES[kind](rng)
    settings = PPOSettings(gamma=0.9, rollout_length=16, num_envs=2, minibatch=32)
    model = model_of(observations, settings)
    network, state = network_for("actor_critic", table), numpy_state(model.policy)
    assert {name: state[name].shape for name in network.torch_shapes} == network.torch_shapes
    theta = network.from_torch(state)
    with torch.no_grad():
        shown = torch.as_tensor(channels_first(observations))
        expected = model.policy.get_distribution(shown).distribution.logits.numpy()
        values = model.policy.predict_values(shown).numpy()[:, 0]
    remembered = None if kind == "flat" else images.Remembered(image_learner(table, settings, theta).network)
    for numbers in (np.arange(len(observations)), np.array([3, 3, 5, 3, 0]), np.arange(100) % 7):
        if remembered is None:
            sight = Sight.of(table, "actor_critic")
            logits, estimated = sight.outputs(sight.network.unpacked(jnp.asarray(theta)), jnp.asarray(numbers))
        else:
            logits, estimated = np.split(remembered(numbers), [NUM_ACTIONS], axis=1)
        centred = np.asarray(logits) - np.log(np.exp(np.asarray(logits)).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(centred, expected[numbers], atol=1e-5)
        np.testing.assert_allclose(np.asarray(estimated).ravel(), values[numbers], atol=1e-4)


def test_initialisation_is_orthogonal_with_the_gains_of_stable_baselines3(rng: np.random.Generator) -> None:
    table, observations = flat_table(rng)
    model = model_of(observations, PPOSettings(gamma=0.9, rollout_length=16, num_envs=2, minibatch=32))
    sight = Sight.of(table, "actor_critic")
    ours = sight.network.unpacked(sight.network.initial(rng))
    theirs = sight.network.unpacked(sight.network.from_torch(numpy_state(model.policy)))
    for name in ours:
        assert np.linalg.norm(ours[name]) == pytest.approx(np.linalg.norm(theirs[name]), rel=0.15, abs=1e-6), name
    np.testing.assert_allclose(ours["pi.1.w"] @ ours["pi.1.w"].T, 2 * np.eye(64), atol=1e-5)


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("is_seen", [False, True])
def test_a_walk_is_learnt_and_finished_seeds_are_dropped(is_seen: bool) -> None:
    settings = PPOSettings(gamma=0.99, rollout_length=32, num_envs=8, minibatch=256)
    results = ppo.train(walk_table(is_seen=is_seen), settings, Protocol(max_steps=40_000), [0, 1, 2])
    assert [result.seed for result in results] == [0, 1, 2]
    assert all(result.sample_complexity is not None and result.best_return == 1.0 for result in results)


def test_the_walk_s_greedy_return() -> None:
    right = np.eye(3, dtype=np.float32)[np.full(4, 2)]
    for horizon, preferences, expected in ((12, right, 1), (12, -right, 0), (3, right, 0)):
        table = walk_table(horizon=horizon)
        assert int(ppo_flat.greedy_return(table, lambda seen, rows=preferences: jnp.asarray(rows)[seen])) == expected
        assert images.greedy_return(table, lambda seen, rows=preferences: rows[seen]) == expected


def test_a_rollout_with_images_is_what_happened_on_the_table() -> None:
    table = walk_table(is_seen=True)
    settings = PPOSettings(gamma=0.9, rollout_length=64, num_envs=4, minibatch=256)
    learner = image_learner(table, settings)
    seen = images.Remembered(learner.network)
    samples, is_done, units = learner._rollout(seen)
    node, time = np.zeros(4, np.int64), np.zeros(4, np.int64)
    for step in range(64):  # the observation is the place
        np.testing.assert_array_equal(samples.observation[step], node)
        following = table.transitions[node, samples.action[step]]
        time += 1
        np.testing.assert_array_equal(is_done[step], (following < 0) | (time == table.horizon))
        np.testing.assert_array_equal(units[step], following < 0)
        node, time = np.where(is_done[step], 0, following), np.where(is_done[step], 0, time)
    logits = seen(samples.observation.ravel())[:, :-1].astype(np.float64)
    log_policy = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = np.take_along_axis(log_policy, samples.action.reshape(-1, 1), axis=1)[:, 0]
    np.testing.assert_allclose(samples.log_probability.ravel(), expected, atol=1e-5)
    frequency = np.bincount(samples.action.ravel(), minlength=3) / samples.action.size
    np.testing.assert_allclose(frequency, np.exp(log_policy).mean(axis=0), atol=0.12)  # four standard deviations


def test_images_are_remembered(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = image_table(rng)
    monkeypatch.setattr(images, "_IMAGES_A_PASS", 16)  # fewer than the table's 40
    network = image_learner(table, PPOSettings(gamma=0.9)).network
    everything, frozen = network.values(np.arange(40)), network.frozen()
    network.improve(network.outputs(np.arange(40)).sum())
    np.testing.assert_allclose(frozen.values(np.arange(40)), everything, atol=1e-6)
    assert np.abs(network.values(np.arange(40)) - everything).max() > 1e-3
    asked: list[np.ndarray] = []
    values = frozen.values
    monkeypatch.setattr(frozen, "values", lambda numbers: asked.append(numbers) or values(numbers))
    remembered = images.Remembered(frozen)
    for numbers in ([3, 3, 7], [7, 3], [8, 7, 3, 8], range(40)):
        np.testing.assert_allclose(remembered(np.array(numbers)), everything[list(numbers)], atol=1e-6)
    assert [list(numbers) for numbers in asked[:2]] == [[3, 7], [8]]
    assert sorted(np.concatenate(asked)) == list(range(40))


def test_a_rollout_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="does not divide"):
        ppo.train(walk_table(), PPOSettings(gamma=1.0, rollout_length=100), Protocol(), [0])


class _Silent:
    def record(self, *_: Any, **__: Any) -> None:
        pass
