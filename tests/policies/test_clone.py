"""Behaviour cloning: the loss has a known optimum, the network is Stable-Baselines3's, and the seed decides all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon.agents.deep.observations import ImageStacks
from efhorizon.agents.deep.pretrained import check_parameters, load_parameters


@pytest.fixture
def clone() -> Any:
    pytest.importorskip("torch")
    from efhorizon.policies import clone

    return clone


def images(rng: np.random.Generator, number: int, size: int = 40, channels: int = 2) -> np.ndarray:
    return rng.integers(0, 256, (number, size, size, channels), dtype=np.uint8)


def best(counts: np.ndarray, entropy: float) -> np.ndarray:
    """The probabilities that minimise -sum_a w_a log p_a + c sum_a p_a log p_a, by bisection on the multiplier.

    With x_a = log p_a, w_a exp(-x_a) - c x_a is the same for every a; it falls in x_a, so each follows from it.
    """
    weights = counts / counts.sum()

    def chances(multiplier: float) -> np.ndarray:
        low, high = np.full(len(weights), -60.0), np.full(len(weights), 5.0)
        for _ in range(80):
            middle = (low + high) / 2
            above = weights * np.exp(-middle) - entropy * middle > multiplier
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.exp(low)

    low, high = -100.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if chances(middle).sum() > 1 else (low, middle)
    return chances(low)


def test_probabilities_become_those_that_the_loss_asks_for(clone: Any, rng: np.random.Generator) -> None:
    observations = np.eye(3, 12, dtype=np.uint8)
    counts = np.array([[8, 0, 0], [4, 4, 0], [1, 2, 5]])
    for entropy in (0.1, 1.0):
        policy = clone.cloned(
            observations, counts, settings=clone.CloneSettings(batches=1500, batch_size=3000, entropy=entropy)
        )
        expected = [best(row, entropy) for row in counts]
        np.testing.assert_allclose(policy(observations), expected, rtol=0.05, atol=2e-4)
    # the closed form of the docstring: one label only
    p, q = best(counts[0], 0.1)[:2]
    assert 0.1 * p * np.log(p / q) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("kind", ["flat", "images", "stacks"])
def test_the_fit_and_the_file(clone: Any, rng: np.random.Generator, tmp_path: Path, kind: str) -> None:
    frames, order = images(rng, 9, channels=1), rng.integers(9, size=(6, 2)).astype(np.int32)
    stacked = np.concatenate([frames[order[:, 0]], frames[order[:, 1]]], axis=-1)
    seen = {
        "flat": rng.integers(0, 9, (6, 20), dtype=np.uint8),
        "images": stacked,
        "stacks": ImageStacks(frames, order),
    }
    counts, others = rng.integers(0, 5, (6, 4)) + np.eye(6, 4, dtype=int), rng.integers(0, 3, (6, 4))
    policy = clone.cloned(
        seen[kind], counts, held_out_counts=others, settings=clone.CloneSettings(batches=10, batch_size=50)
    )
    chances = policy(stacked if kind == "stacks" else seen[kind])
    assert policy.num_actions == chances.shape[1] == 4
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)
    for fit, labels in ((policy.training, counts), (policy.held_out, others)):
        pairs = [(row, action) for row in range(6) for action in range(4) for _ in range(labels[row, action])]
        assert fit.num_labels == len(pairs)
        assert fit.loss == pytest.approx(np.mean([-np.log(chances[pair]) for pair in pairs]), rel=1e-6)
        assert fit.accuracy == pytest.approx(np.mean([chances[row].argmax() == action for row, action in pairs]))
    check_file(policy, clone, seen[kind], tmp_path)


def check_file(policy: Any, clone: Any, seen: Any, folder: Path) -> None:
    """What is written is what `train --initial` reads."""
    loaded = load_parameters(policy.save(folder / "f.npz"))
    network = clone.network_of(clone._Seen(seen), 4)
    check_parameters(loaded, network.torch_shapes)
    assert set(loaded) == set(network.torch_shapes)
    with np.load(folder / "f.npz", allow_pickle=False) as theirs:  # numpy reads it too
        assert set(theirs) == set(loaded)
    for name, array in policy.parameters.items():
        np.testing.assert_array_equal(loaded[name], array)
    # the critic's own layers are as they were drawn, the others are not
    fresh = clone.fresh_parameters(network, 0)
    for name, array in fresh.items():
        is_critic = "value" in name
        assert np.array_equal(array.numpy(), loaded[name]) == (is_critic or not np.any(loaded[name])), name


def test_stable_baselines3_says_the_same(clone: Any, rng: np.random.Generator) -> None:
    """Loaded into its policies, the parameters give the same probabilities."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("stable_baselines3")
    from gymnasium import spaces
    from stable_baselines3.common.policies import ActorCriticCnnPolicy, ActorCriticPolicy

    counts = np.eye(5, 3, dtype=int) + 1
    for seen in (images(rng, 5, 84, 4), rng.integers(0, 9, (5, 30), dtype=np.uint8)):
        policy = clone.cloned(seen, counts, settings=clone.CloneSettings(batches=5, batch_size=10))
        state = {name: torch.tensor(array) for name, array in policy.parameters.items()}
        if seen.ndim == 4:
            shown = np.moveaxis(seen, 3, 1)
            theirs: Any = ActorCriticCnnPolicy(
                spaces.Box(0, 255, shown.shape[1:], np.uint8), spaces.Discrete(3), lambda _: 0
            )
        else:
            shown = seen
            theirs = ActorCriticPolicy(
                spaces.Box(0, 255, seen.shape[1:], np.uint8),
                spaces.Discrete(3),
                lambda _: 0,
                activation_fn=torch.nn.ReLU,
                net_arch=[64, 64],
            )
        missing, unexpected = theirs.load_state_dict(state, strict=False)
        assert not unexpected
        assert all(name.startswith(("pi_features", "vf_features")) for name in missing)  # the same module's other names
        with torch.no_grad():
            expected = theirs.get_distribution(torch.tensor(shown)).distribution.probs
        np.testing.assert_allclose(policy(seen), expected, rtol=1e-4)


def test_the_initialisation_is_orthogonal(clone: Any) -> None:
    network = clone.network_of(clone._Seen(np.zeros((1, 100), np.uint8)), 5)
    fresh = {name: tensor.numpy() for name, tensor in clone.fresh_parameters(network, 3).items()}
    for name, gain in (("mlp_extractor.policy_net.0", 2**0.5), ("action_net", 0.01), ("value_net", 1.0)):
        weights = fresh[f"{name}.weight"]
        np.testing.assert_allclose(weights @ weights.T, gain**2 * np.eye(len(weights)), atol=1e-5)
        assert not fresh[f"{name}.bias"].any()


def test_the_seed_decides(clone: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on another number of cores; more images than one part, so that gradients are added up."""
    monkeypatch.setattr(clone, "_IMAGES_A_PART", 3)
    seen, counts = images(rng, 10), rng.integers(1, 5, (10, 3))
    results = []
    for seed, cores in ((0, 1), (0, 4), (1, 1)):
        monkeypatch.setattr(clone, "num_cores", lambda cores=cores: cores)
        settings = clone.CloneSettings(batches=4, batch_size=40, seed=seed)
        results.append(clone.cloned(seen, counts, settings=settings).parameters)
    same = [all(np.array_equal(results[0][name], other[name]) for name in other) for other in results]
    assert same == [True, True, False]
    monkeypatch.setattr(clone, "_IMAGES_A_PART", 100)
    whole = clone.cloned(seen, counts, settings=clone.CloneSettings(batches=4, batch_size=40)).parameters
    for name in whole:  # parts change only how sums are rounded
        np.testing.assert_allclose(whole[name], results[0][name], rtol=1e-2, atol=1e-5)


def test_equal_observations_are_evaluated_once(
    clone: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, counts = images(rng, 4), rng.integers(1, 5, (4, 3))
    evaluated = []
    monkeypatch.setattr(
        clone, "logits", lambda parameters, shown, f=clone.logits: evaluated.append(len(shown)) or f(parameters, shown)
    )
    settings = clone.CloneSettings(batches=3, batch_size=500)
    one = clone.cloned(seen, counts, settings=settings)
    assert evaluated == [4] * 4  # three batches, and the fit
    twice = clone.cloned(np.concatenate([seen, seen]), np.concatenate([counts, counts]), settings=settings)
    assert evaluated == [4] * 8
    for name in one.parameters:
        np.testing.assert_array_equal(one.parameters[name], twice.parameters[name])


def test_progress_and_refusals(clone: Any) -> None:
    heard: list[tuple[int, float]] = []
    flat = np.eye(2, 3, dtype=np.uint8)
    clone.cloned(flat, np.eye(2), settings=clone.CloneSettings(batches=3), on_batch=lambda *news: heard.append(news))
    assert [number for number, _ in heard] == [1, 2, 3]
    for seen, counts, reason in [
        (flat.astype(float), np.eye(2), "got float64"),
        (flat[0], np.eye(2), r"got uint8 \[3\]"),
        (flat[:0], np.eye(2)[:0], r"got uint8 \[0, 3\]"),
        (flat, np.eye(3), r"N = 2.*got \[3, 3\]"),
        (flat, np.zeros((2, 2)), "above 0"),
        (flat, np.array([[1.0, -1.0], [1, 1]]), "from 0"),
        (flat, np.array([[1.0, np.nan], [1, 1]]), "from 0"),
    ]:
        with pytest.raises(clone.InvalidSamplesError, match=reason):
            clone.cloned(seen, counts)
