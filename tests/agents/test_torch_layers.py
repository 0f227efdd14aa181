"""The parts of torch networks that are computed in our own way, against torch's plain functions."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from efhorizon.agents.deep import torch_still
from efhorizon.agents.deep.torch_learner import Optimiser, TorchLearner
from efhorizon.agents.deep.torch_linear import linear
from efhorizon.agents.deep.torch_still import first_layer, still_picture
from efhorizon.agents.live_deep.games import network_of

CPU = torch.device("cpu")


def mostly_still(share: float, count: int = 12, seed: int = 0) -> torch.Tensor:
    """Images [B, 84, 84, 4] of which this share of blocks differs from one picture."""
    rng = np.random.default_rng(seed)
    picture = rng.integers(0, 256, (21, 4, 21, 4, 4), np.uint8)
    changes = rng.random((count, 21, 1, 21, 1, 1)) < share
    images = np.where(changes, rng.integers(0, 256, (count, *picture.shape), np.uint8), picture)
    return torch.from_numpy(images.reshape(count, 84, 84, 4))


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    scale = float(expected.detach().abs().max())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * scale)


def test_the_product_is_torchs() -> None:
    rng = torch.Generator().manual_seed(0)
    inputs, weights = (torch.randn(shape, generator=rng) for shape in ((5, 7), (3, 7)))
    bias, wanted = torch.randn(3, generator=rng), torch.randn(5, 3, generator=rng)
    for each in (inputs, weights, bias):
        each.requires_grad_()
    outputs = [function(inputs, weights, bias) for function in (linear, functional.linear)]
    close(outputs[0], outputs[1])
    gradients = [torch.autograd.grad(found, (inputs, weights, bias), wanted) for found in outputs]
    for own, expected in zip(*gradients, strict=True):
        close(own, expected)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.25])
def test_the_first_layer_of_changed_blocks_is_the_convolution(share: float) -> None:
    """Outputs, and gradients by filters and bias."""
    images = mostly_still(share)
    still = still_picture(images)
    assert still is not None
    rng = torch.Generator().manual_seed(1)
    weights = (torch.randn(32, 8, 8, 4, generator=rng) / 255).permute(0, 3, 1, 2).requires_grad_()
    bias = torch.randn(32, generator=rng).requires_grad_()
    wanted = torch.randn(12, 32, 20, 20, generator=rng)
    expected = functional.conv2d(images.float().permute(0, 3, 1, 2), weights, bias, 4).relu()
    found = first_layer(images, weights, bias, still)
    close(found, expected)
    gradients = [torch.autograd.grad(outputs, (weights, bias), wanted) for outputs in (found, expected)]
    for own, other in zip(*gradients, strict=True):
        close(own, other)


def test_the_picture_is_what_most_images_show() -> None:
    images = mostly_still(0.2, count=50)
    still = still_picture(images)
    assert still is not None
    blocks = images.view(50, 21, 4, 21, 4, 4)
    shown = (blocks == still.picture.view(1, 21, 4, 21, 4, 4)).all(dim=5).all(dim=4).all(dim=2)
    assert bool((shown.float().mean(dim=0) > 0.5).all())
    assert still_picture(mostly_still(0.9)) is None


def test_a_gradient_step_is_the_same_with_a_still_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    images, chosen = mostly_still(0.1, count=300), torch.randperm(300)[:256]
    network = network_of("actor_critic", 6, images[0].numpy())
    theta = network.initial(np.random.default_rng(0))
    calls: list[int] = []
    own = torch_still._changed_blocks

    def counted(few: torch.Tensor, still: torch_still.Still) -> object:
        calls.append(len(few))
        return own(few, still)

    monkeypatch.setattr(torch_still, "_changed_blocks", counted)
    # A large epsilon makes Adam's step proportional to the gradient: else it would only show the signs.
    learners = [TorchLearner(network, Optimiser(10.0, 1.0, 0.5, 128), theta, CPU, threads) for threads in (1, 2)]
    for learner, still in zip(learners, (None, learners[0].still(images)), strict=True):
        learner.improve(images, chosen, lambda outputs, piece: (outputs**2).sum(), still)
        learner.close()
    assert sum(calls) == 256
    steps = [torch.from_numpy(learner.theta() - theta) for learner in learners]
    close(*steps)
    assert float(steps[0].abs().max()) > 0


def test_the_state_of_a_learner_comes_back() -> None:
    images = mostly_still(0.1, count=40)
    network = network_of("q", 4, images[0].numpy())
    theta, rng = network.initial(np.random.default_rng(0)), torch.Generator().manual_seed(0)
    settings = Optimiser(1e-3, 1e-8, 10.0, 16)
    learner, other = (TorchLearner(network, settings, theta, CPU, 1) for _ in range(2))

    def improved(which: TorchLearner, chosen: torch.Tensor) -> None:
        which.improve(images, chosen, lambda outputs, piece: (outputs - 1).square().sum())

    for _ in range(3):
        improved(learner, torch.randperm(40, generator=rng))
    frozen = learner.frozen()
    other.restore(learner.state())
    for each in (learner, other):
        improved(each, torch.arange(40))
    np.testing.assert_array_equal(learner.theta(), other.theta())
    for name, array in learner.state().items():
        np.testing.assert_array_equal(array, other.state()[name])
    assert not np.array_equal(frozen.theta(), learner.theta())
    again = type(frozen).restored(frozen.theta(), learner.packing, CPU)
    np.testing.assert_array_equal(again.outputs(images), frozen.outputs(images))
