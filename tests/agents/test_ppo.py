"""PPO on tables against Stable-Baselines3's on the same numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from training_tables import NUM_ACTIONS, ShownEnv, channels_first, flat_table, image_table, numpy_state, walk_table

pytest.importorskip("torch")

from efhorizon.agents.deep import flat, images, ppo, ppo_flat, ppo_gradient, ppo_images
from efhorizon.agents.deep.networks import network_for
from efhorizon.agents.deep.observations import ObservedTable
from efhorizon.agents.deep.protocol import Protocol
from efhorizon.agents.deep.settings import PPOSettings
from efhorizon.agents.streams import streams

TABLES = {"flat": flat_table, "images": image_table}


def flat_updates(table: ObservedTable, settings: PPOSettings, start: np.ndarray, batch: list[np.ndarray]) -> np.ndarray:
    """The parameters after an epoch after the other, each one minibatch."""
    game, rules = flat.game_of(table), ppo_gradient.rules_of(table, settings, 10_000)
    room, place = ppo_gradient.empty_room(settings.minibatch, game), np.full(table.num_observations, -1, np.int32)
    theta, gradient, first, second = start.copy(), np.empty_like(start), np.zeros_like(start), np.zeros_like(start)
    multiplicity = network_for("actor_critic", table).multiplicity
    observation, action, *floats = batch
    samples = ppo_gradient.Samples(observation.astype(np.int32), action.astype(np.int32), *floats)
    for count in range(1, settings.num_epochs + 1):
        ppo_gradient.fill_gradient(np.arange(len(action)), samples, theta, place, game, rules, room, gradient)
        flat.adam_step(theta, gradient, first, second, multiplicity, count, rules)
    assert (place == -1).all()
    return theta


def image_updates(
    table: ObservedTable, settings: PPOSettings, start: np.ndarray, batch: list[np.ndarray]
) -> np.ndarray:
    network = image_learner(table, settings, start).network
    samples = ppo_images.ImageSamples(*batch)
    for _ in range(settings.num_epochs):
        network.improve(ppo_images.loss(settings, network.outputs(samples.observation), samples))
    return network.theta()


def flat_outputs(table: ObservedTable, theta: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Logits and values [., A + 1] of observation numbers."""
    room = ppo_gradient.empty_room(len(numbers), flat.game_of(table))
    room.seen[:] = flat.game_of(table).observations[numbers]
    ppo_gradient.evaluate(len(numbers), theta, room)
    return np.hstack([room.logits, room.values])


def image_learner(
    table: ObservedTable, settings: PPOSettings, start: np.ndarray | None = None
) -> ppo_images.ImagePPOSeed:
    return ppo_images.ImagePPOSeed(table, images.Images(table), settings, 10_000, 0, start)


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
        ppo_flat.generalised_advantages(*given, np.float32(buffer.gamma), np.float32(buffer.gae_lambda)),
        ppo_images.generalised_advantages(*given, buffer.gamma, buffer.gae_lambda),
    ):
        np.testing.assert_allclose(np.asarray(advantages), buffer.advantages, rtol=1e-4, atol=1e-5)
    return buffer, numbers


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
        outputs = flat_outputs(table, theta, numbers) if remembered is None else remembered(numbers)
        logits, estimated = np.split(outputs, [NUM_ACTIONS], axis=1)
        centred = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(centred, expected[numbers], atol=1e-5)
        np.testing.assert_allclose(estimated.ravel(), values[numbers], atol=1e-4)


def test_initialisation_is_orthogonal_with_the_gains_of_stable_baselines3(rng: np.random.Generator) -> None:
    table, observations = flat_table(rng)
    model = model_of(observations, PPOSettings(gamma=0.9, rollout_length=16, num_envs=2, minibatch=32))
    network = network_for("actor_critic", table)
    ours = network.unpacked(network.initial(rng))
    theirs = network.unpacked(network.from_torch(numpy_state(model.policy)))
    for name in ours:
        assert np.linalg.norm(ours[name]) == pytest.approx(np.linalg.norm(theirs[name]), rel=0.15, abs=1e-6), name
    np.testing.assert_allclose(ours["pi.1.w"] @ ours["pi.1.w"].T, 2 * np.eye(64), atol=1e-5)


@pytest.mark.parametrize("window", [None, Protocol().window])
@pytest.mark.parametrize("is_seen", [False, True])
def test_a_walk_is_learnt_and_finished_seeds_are_dropped(is_seen: bool, window: int | None) -> None:
    settings = PPOSettings(gamma=0.99, rollout_length=32, num_envs=8, minibatch=256)
    protocol = Protocol(max_steps=40_000, window=window)
    results = ppo.train(walk_table(is_seen=is_seen), settings, protocol, [0, 1, 2])
    assert [result.seed for result in results] == [0, 1, 2]
    assert all(result.sample_complexity is not None and result.best_return == 1.0 for result in results)
    if window is None:
        assert all(result.solved_by == "evaluation" for result in results)


def test_the_walk_s_greedy_return() -> None:
    right = np.eye(3, dtype=np.float32)[np.full(4, 2)]
    for horizon, preferences, expected in ((12, right, 1), (12, -right, 0), (3, right, 0)):
        table = walk_table(horizon=horizon)
        learners = ppo_flat.FlatPPO(table, PPOSettings(gamma=0.9), 10_000, [0])
        (mine,) = learners.seeds()
        mine.outputs[:, :-1], mine.places[0] = preferences, 7  # as if rollout 7 had met all observations
        room = ppo_gradient.empty_room(8, flat.game_of(table))
        rules = ppo_gradient.rules_of(table, PPOSettings(gamma=0.9), 10_000)
        assert ppo_flat.greedy_return(7, mine, flat.game_of(table), rules, room) == expected
        assert images.greedy_return(table, lambda seen, rows=preferences: rows[seen]) == expected


def flat_rollout(
    table: ObservedTable, settings: PPOSettings
) -> tuple[ppo_gradient.Samples, np.ndarray, np.ndarray, Any]:
    """The first rollout of seed 0: samples, ends of episodes and returns until then, what the network says."""
    game, rules = flat.game_of(table), ppo_gradient.rules_of(table, settings, 10_000)
    learners = ppo_flat.FlatPPO(table, settings, 10_000, [0])
    (mine,) = learners.seeds()
    shape = (settings.rollout_length, settings.num_envs)
    is_done, units = np.empty(shape, np.bool_), np.empty(shape, np.int64)
    room = ppo_gradient.empty_room(settings.minibatch, game)
    samples = ppo_flat.rollout(0, mine, game, rules, room, is_done, units)
    return samples, is_done, units, lambda numbers: flat_outputs(table, mine.theta, numbers)


def image_rollout(table: ObservedTable, settings: PPOSettings) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    learner = image_learner(table, settings)
    seen = images.Remembered(learner.network)
    return *learner._rollout(seen), seen


@pytest.mark.parametrize(("is_seen", "bootstraps"), [(False, False), (False, True), (True, False)])
def test_a_rollout_is_what_happened_on_the_table(is_seen: bool, bootstraps: bool) -> None:
    table = dataclasses.replace(walk_table(is_seen=is_seen), bootstraps_at_horizon=bootstraps)
    settings = PPOSettings(gamma=0.9, rollout_length=512, num_envs=4, minibatch=256)
    samples, is_done, units, seen = (image_rollout if is_seen else flat_rollout)(table, settings)
    observation, action, log_probability, advantage, target = (field.reshape(512, 4) for field in samples)
    node, time = np.zeros(4, np.int64), np.zeros(4, np.int64)
    reward = np.empty((512, 4), np.float32)
    for step in range(512):  # the observation is the place
        np.testing.assert_array_equal(observation[step], node)
        following = table.transitions[node, action[step]]
        reward[step] = table.rewards[node, action[step]]
        time += 1
        is_cut = (time == table.horizon) & (following >= 0)
        if bootstraps:
            reward[step] += np.where(is_cut, 0.9 * seen(np.maximum(following, 0))[:, -1], 0)
        np.testing.assert_array_equal(is_done[step], (following < 0) | (time == table.horizon))
        np.testing.assert_array_equal(units[step], following < 0)
        node, time = np.where(is_done[step], 0, following), np.where(is_done[step], 0, time)
    outputs = seen(observation.ravel()).astype(np.float64)
    log_policy = outputs[:, :-1] - np.log(np.exp(outputs[:, :-1]).sum(axis=1, keepdims=True))
    expected = np.take_along_axis(log_policy, action.reshape(-1, 1), axis=1)[:, 0]
    np.testing.assert_allclose(log_probability.ravel(), expected, atol=1e-5)
    frequency = np.bincount(action.ravel(), minlength=3) / action.size
    np.testing.assert_allclose(frequency, np.exp(log_policy).mean(axis=0), atol=0.042)  # four standard deviations
    value = outputs[:, -1].reshape(512, 4).astype(np.float32)
    last = seen(table.observation[node])[:, -1]
    expected = ppo_images.generalised_advantages(reward, value, is_done, last, settings.gamma, settings.gae_lambda)
    np.testing.assert_allclose(advantage, expected, atol=1e-5)
    np.testing.assert_allclose(target, expected + value, atol=1e-5)


def test_actions_are_drawn_with_the_policy_s_probabilities(rng: np.random.Generator) -> None:
    logits = np.array([0.5, -1.0, 2.0, -30.0], np.float32)
    words = streams(rng, 1)[0]
    drawn = [ppo_flat.drawn(logits, words) for _ in range(20_000)]
    probabilities = np.exp(logits) / np.exp(logits).sum()
    counts = np.bincount([action for action, _ in drawn], minlength=4)
    np.testing.assert_allclose(counts / 20_000, probabilities, atol=0.015)  # four standard deviations
    for action, log_probability in drawn[:50]:
        assert log_probability == pytest.approx(np.log(probabilities[action]), abs=1e-5)


def test_results_do_not_depend_on_the_other_seeds() -> None:
    table, settings = walk_table(), PPOSettings(gamma=0.99, rollout_length=32, num_envs=8, minibatch=64)
    alone = ppo_flat.FlatPPO(table, settings, 10_000, [3])
    together = ppo_flat.FlatPPO(table, settings, 10_000, [1, 2, 3])
    alone.updates(0)
    together.updates(0)
    together.keep([1, 2])
    step = 40 * settings.samples
    for ours, theirs in zip(alone.updates(step), together.updates(step), strict=True):
        np.testing.assert_array_equal(ours[:, 0], theirs[:, 1])
    np.testing.assert_array_equal(alone.carried.theta[0], together.carried.theta[1])


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
