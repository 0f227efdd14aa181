"""PPO on tables against Stable-Baselines3's on the same numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from training_tables import NUM_ACTIONS, ShownEnv, channels_first, flat_table, image_table, numpy_state, walk_table

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from efhorizon.agents import forward, ppo
from efhorizon.agents.forward import Sight
from efhorizon.agents.networks import adam_start
from efhorizon.agents.ppo import PPOSettings
from efhorizon.agents.protocol import Protocol

TABLES = {"flat": flat_table, "images": image_table}


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
    advantages = ppo.generalised_advantages(
        jnp.asarray(buffer.rewards),
        jnp.asarray(buffer.values),
        jnp.asarray(dones[1:]),
        jnp.asarray(last.numpy()[:, 0]),
        buffer.gamma,
        buffer.gae_lambda,
    )
    np.testing.assert_allclose(np.asarray(advantages), buffer.advantages, rtol=1e-4, atol=1e-5)
    return buffer, numbers


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("kind", TABLES)
def test_four_updates_equal_stable_baselines3(
    kind: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "_SHARES", (0.5, 1))  # fewer sizes to compile
    table, observations = TABLES[kind](rng)
    # One minibatch an epoch, so that the order of samples does not matter; the tight norm makes clipping count
    settings = PPOSettings(gamma=0.9, rollout_length=16, num_envs=2, minibatch=32, max_gradient_norm=0.3)
    model = model_of(observations, settings)
    sight = Sight.of(table, "actor_critic")
    theta = jnp.asarray(sight.network.from_torch(numpy_state(model.policy)))
    buffer, numbers = fill(model, rng, channels_first(observations))
    batch = [
        jnp.asarray(array.reshape(-1).copy())
        for array in (
            numbers,
            buffer.actions[:, :, 0].astype(np.int64),
            buffer.log_probs,
            buffer.advantages,
            buffer.returns,
        )
    ]
    start, adam = theta, adam_start(theta)
    update = jax.jit(lambda theta, adam: ppo.optimised(sight, settings, theta, adam, *batch))
    for _ in range(settings.num_epochs):
        theta, adam = update(theta, adam)
    model._logger = _Silent()
    model.train()
    expected = sight.network.from_torch(numpy_state(model.policy))
    moved = np.abs(np.asarray(expected - start)).max()
    assert moved > 5e-4  # multiplicities move sums further than the rate times four
    np.testing.assert_allclose(np.asarray(theta), expected, atol=2e-5)


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("kind", TABLES)
def test_outputs_equal_stable_baselines3(kind: str, rng: np.random.Generator) -> None:
    import torch

    table, observations = TABLES[kind](rng)
    model = model_of(observations, PPOSettings(gamma=0.9, rollout_length=16, num_envs=2, minibatch=32))
    sight = Sight.of(table, "actor_critic")
    state = numpy_state(model.policy)
    assert {name: state[name].shape for name in sight.network.torch_shapes} == sight.network.torch_shapes
    parameters = sight.network.unpacked(jnp.asarray(sight.network.from_torch(state)))
    with torch.no_grad():
        shown = torch.as_tensor(channels_first(observations))
        expected = model.policy.get_distribution(shown).distribution.logits.numpy()
        values = model.policy.predict_values(shown).numpy()[:, 0]
    for numbers in (np.arange(len(observations)), np.array([3, 3, 5, 3, 0]), np.arange(100) % 7):
        logits, estimated = sight.outputs(parameters, jnp.asarray(numbers))
        centred = np.asarray(logits) - np.log(np.exp(np.asarray(logits)).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(centred, expected[numbers], atol=1e-5)
        np.testing.assert_allclose(np.asarray(estimated), values[numbers], atol=1e-4)


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
def test_a_walk_is_learnt_and_finished_seeds_are_dropped() -> None:
    settings = PPOSettings(gamma=0.99, rollout_length=32, num_envs=8, minibatch=256)
    results = ppo.train(walk_table(), settings, Protocol(max_steps=40_000), [0, 1, 2])
    assert [result.seed for result in results] == [0, 1, 2]
    assert all(result.sample_complexity is not None and result.best_return == 1.0 for result in results)


def test_the_walk_s_greedy_return() -> None:
    table = walk_table()
    right = np.eye(3, dtype=np.float32)[np.full(4, 2)]
    assert int(ppo.greedy_return(table, lambda seen: jnp.asarray(right)[seen])) == 1
    assert int(ppo.greedy_return(table, lambda seen: -jnp.asarray(right)[seen])) == 0
    short = dataclasses.replace(table, horizon=3)
    assert int(ppo.greedy_return(short, lambda seen: jnp.asarray(right)[seen])) == 0


def test_a_rollout_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="does not divide"):
        ppo.train(walk_table(), PPOSettings(gamma=1.0, rollout_length=100), Protocol(), [0])


class _Silent:
    def record(self, *_: Any, **__: Any) -> None:
        pass
