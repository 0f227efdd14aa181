"""The network and the loss of pretraining against Stable-Baselines3's, and the scale of rewards against its own."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

import stable_baselines3
import torch

from efhorizon.agents.deep.ppo_loss import MinibatchLoss, Samples
from efhorizon.policies.actor_critic import ActorCritic
from efhorizon.policies.nature_cnn import (
    BLOCKS_SHAPE,
    IMAGE_SHAPE,
    cut_into_blocks,
    network,
    packed,
    state_dictionary,
    unpacked,
)
from efhorizon.policies.pretraining_settings import PretrainingSettings, settings_for
from efhorizon.policies.return_scale import ReturnScale

CPU = torch.device("cpu")


class ImageEnv(gymnasium.Env[Any, Any]):
    """An environment that only has spaces."""

    observation_space = gymnasium.spaces.Box(0, 255, IMAGE_SHAPE, np.uint8)
    action_space = gymnasium.spaces.Discrete(9)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return np.zeros(IMAGE_SHAPE, np.uint8), {}


@pytest.fixture(scope="module")
def settings() -> PretrainingSettings:
    return settings_for("maze", num_envs=10, rollout_length=70, num_minibatches=1)  # more than one piece of 512


@pytest.fixture
def theta(rng: np.random.Generator) -> np.ndarray:
    made = network(9)
    drawn = made.initial(rng)
    return (drawn + 0.01 * rng.standard_normal(len(drawn))).astype(np.float32)  # biases are 0 at first


@pytest.fixture
def images(rng: np.random.Generator, settings: PretrainingSettings) -> np.ndarray:
    return rng.integers(0, 256, (settings.samples, *IMAGE_SHAPE)).astype(np.uint8)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def blocks_of(images: np.ndarray) -> Any:
    blocks = torch.empty((len(images), *BLOCKS_SHAPE), dtype=torch.uint8)
    cut_into_blocks(images, blocks.numpy())
    return blocks


def reference(settings: PretrainingSettings, theta: np.ndarray) -> Any:
    model = stable_baselines3.PPO(
        "CnnPolicy", ImageEnv(), learning_rate=settings.rate, max_grad_norm=settings.max_gradient_norm, device="cpu"
    )
    arrays = {name: torch.tensor(array) for name, array in state_dictionary(theta, 9).items()}
    missing = model.policy.load_state_dict(arrays, strict=False).missing_keys
    assert all(name.startswith(("pi_features", "vf_features")) for name in missing)  # the same tensors once more
    return model.policy


def samples_for(rng: np.random.Generator, count: int) -> Samples:
    floats = torch.from_numpy(rng.standard_normal((3, count)).astype(np.float32))
    return Samples(torch.from_numpy(rng.integers(0, 9, count)), -2.2 + 0.3 * floats[0], floats[1], 2 * floats[2])


def test_outputs_are_stable_baselines3_s(settings: PretrainingSettings, theta: np.ndarray, images: np.ndarray) -> None:
    learner = ActorCritic(settings, theta, CPU, threads=1)
    found = learner.outputs(blocks_of(images))
    policy = reference(settings, theta)
    seen = torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    with torch.no_grad():
        logits = policy.get_distribution(seen).distribution.logits.numpy()
        value = policy.predict_values(seen).numpy()[:, 0]
    shifted = found[:, :-1] - np.log(np.exp(found[:, :-1]).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(shifted, logits, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(found[:, -1], value, rtol=2e-4, atol=2e-5)


def test_gradient_steps_are_stable_baselines3_s(
    settings: PretrainingSettings, theta: np.ndarray, images: np.ndarray, rng: np.random.Generator
) -> None:
    """Three steps of `PPO.train` on the same minibatches, written out; pieces and threads change nothing."""
    learner = ActorCritic(settings, theta, CPU, threads=2)
    policy, blocks = reference(settings, theta), blocks_of(images)
    for _ in range(3):
        chosen = rng.permutation(len(images))
        samples = samples_for(rng, len(images))
        learner.improve(blocks, torch.from_numpy(chosen), MinibatchLoss(settings, samples, CPU))
        seen = torch.from_numpy(images[chosen].transpose(0, 3, 1, 2).copy())
        value, log_probability, entropy = policy.evaluate_actions(seen, samples.action)
        advantage = (samples.advantage - samples.advantage.mean()) / (samples.advantage.std() + 1e-8)
        ratio = torch.exp(log_probability - samples.log_probability)
        clipped = torch.clamp(ratio, 1 - settings.clip, 1 + settings.clip)
        policy_loss = -torch.min(advantage * ratio, advantage * clipped).mean()
        value_loss = torch.nn.functional.mse_loss(samples.target, value.flatten())
        total = policy_loss - settings.entropy_weight * entropy.mean() + settings.value_weight * value_loss
        policy.optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), settings.max_gradient_norm)
        policy.optimizer.step()
    learner.close()
    state = policy.state_dict()
    moved = state_dictionary(learner.state()["theta"], 9)
    before = state_dictionary(theta, 9)
    for name, array in moved.items():
        change, its = array - before[name], state[name].numpy() - before[name]
        assert np.abs(its).max() > 1e-4
        # Adam divides by the gradient's size, so where that is rounding only, steps differ: few, and none by much.
        assert np.mean(np.abs(change - its) > 0.02 * settings.rate) < 0.01
        np.testing.assert_allclose(change, its, atol=3 * settings.rate)


def test_the_number_of_threads_does_not_matter(
    settings: PretrainingSettings, theta: np.ndarray, images: np.ndarray
) -> None:
    found = []
    for threads in (1, 3):
        rng = np.random.default_rng(0)
        learner = ActorCritic(settings, theta, CPU, threads)
        for _ in range(2):
            loss = MinibatchLoss(settings, samples_for(rng, len(images)), CPU)
            learner.improve(blocks_of(images), torch.from_numpy(rng.permutation(len(images))), loss)
        learner.close()
        found.append(learner.state()["theta"])
    np.testing.assert_array_equal(*found)


def test_the_last_rows_and_columns_are_seen_by_neither(theta: np.ndarray, settings: PretrainingSettings) -> None:
    """Why 15 x 15 blocks are enough."""
    image = np.full((1, *IMAGE_SHAPE), 100, np.uint8)
    framed = image.copy()
    framed[:, 60:], framed[:, :, 60:] = 255, 255
    policy = reference(settings, theta)
    with torch.no_grad():
        one, other = (policy.predict_values(torch.from_numpy(x.transpose(0, 3, 1, 2).copy())) for x in (image, framed))
    assert one.item() == other.item()


def test_packing_is_a_permutation(theta: np.ndarray) -> None:
    np.testing.assert_array_equal(unpacked(packed(theta, 9), 9), theta)
    np.testing.assert_array_equal(np.sort(packed(theta, 9)), np.sort(theta))
    made = network(9)
    np.testing.assert_array_equal(made.from_torch(state_dictionary(theta, 9)), theta)


def test_rewards_are_scaled_as_by_vec_normalize(rng: np.random.Generator) -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    settings = settings_for("maze", num_envs=5, gamma=0.9, reward_clip=2.0)
    reward = rng.choice([0, 0, 0, 1, 10], (40, 5)).astype(np.float32)
    is_done = rng.random((40, 5)) < 0.2
    theirs = VecNormalize(DummyVecEnv([ImageEnv] * 5), norm_obs=False, clip_reward=2.0, gamma=0.9)
    expected = []
    for rewards, dones in zip(reward, is_done, strict=True):
        theirs._update_reward(rewards)
        expected.append(theirs.normalize_reward(rewards))
        theirs.returns[dones] = 0
    mine = ReturnScale(settings)
    found = np.concatenate([mine.scaled(reward[:15], is_done[:15]), mine.scaled(reward[15:], is_done[15:])])
    np.testing.assert_allclose(found, np.array(expected), rtol=1e-6)
    assert found.max() == 2.0
    assert mine.deviation == pytest.approx(np.sqrt(theirs.ret_rms.var + 1e-8))
