"""Behaviour cloning: a network that does what was done, and stays a little undecided.

Appendix F of the paper, 'Exploration policies':

    L = - E[log pi(a | s)] - c E[H(pi(. | s))]

over the samples (s, a) of a batch: 400 batches of 500, Adam with rate 10^-3, c = 0.1. The entropy bonus keeps the
policy from giving an action next to no probability, which would make it a poor one to explore with. Where all labels of
an observation are one action, the best pi gives it probability p with 0.1 p log(p / q) = 1, q being that of each other
action: 0.9999 of three.

A sample is drawn in proportion to its labels, and counts with the distribution of the labels of its observation: in
expectation that is one drawn label. Each distinct observation of a batch is evaluated once.

Networks are the actor of Stable-Baselines3's `CnnPolicy` (images) or `MlpPolicy` with ReLU (flat), with its parameter
names, shapes and initialisation, so that `efhorizon train --initial` takes the result. What only the critic uses stays
as it was drawn.

The result depends on the seed and not on the number of cores: a batch is cut into parts of fixed size, each part is
computed by one thread, and gradients are added in the order of the parts.

Legend: N observations, A actions, B samples of a batch, D numbers of a flat observation, K frames of a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from efhorizon.agents.deep.networks import (
    HIDDEN_GAIN,
    POLICY_GAIN,
    VALUE_GAIN,
    Network,
)
from efhorizon.agents.deep.observations import FlatColumns, ImageStacks
from efhorizon.errors import EfhorizonError
from efhorizon.io.machine import num_cores
from efhorizon.policies.actor import Parameters, logits
from efhorizon.policies.parameter_file import save_parameters

_IMAGES_A_PART, _ROWS_A_PART = 128, 4096
_GAINS = {"action_net": POLICY_GAIN, "value_net": VALUE_GAIN}
_CRITIC = ("value_net.", "mlp_extractor.value_net.")


class InvalidSamplesError(EfhorizonError, ValueError):
    """Samples that nothing can be learnt from; the message is one line for the user."""


@dataclass(frozen=True)
class CloneSettings:
    """The defaults are the paper's."""

    batches: int = 400
    batch_size: int = 500
    rate: float = 1e-3  # Adam's learning rate
    entropy: float = 0.1  # weight of the bonus
    seed: int = 0


@dataclass(frozen=True)
class Fit:
    """How well a policy predicts labels."""

    loss: float  # mean of -log pi(label), without the bonus
    accuracy: float  # share of labels that are the likeliest action
    entropy: float  # mean over labels, in nats
    num_labels: int


@dataclass(frozen=True)
class ClonedPolicy:
    """A policy network: call it with observations for probabilities."""

    parameters: Mapping[str, NDArray[np.float32]] = field(repr=False)  # by Stable-Baselines3's names
    training: Fit
    held_out: Fit | None  # None where nothing was held out

    @property
    def num_actions(self) -> int:
        return len(self.parameters["action_net.bias"])

    def __call__(self, observations: NDArray[np.uint8], /) -> NDArray[np.float64]:
        """Probabilities [B, A] of observations [B, H, W, C] or [B, D]."""
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in self.parameters.items()}
        with _one_thread_each() as pool:
            return _probabilities(tensors, _Seen(observations), np.arange(len(observations)), pool)

    def save(self, path: str | Path) -> Path:
        """Write the parameters as a .npz, which `efhorizon train --initial` takes."""
        return save_parameters(Path(path), self.parameters)


def cloned(
    observations: NDArray[np.uint8] | ImageStacks,  # [N, H, W, C], [N, D] or stacks [N, K]
    label_counts: NDArray[Any],  # [N, A], how often each action was taken there
    *,
    held_out_counts: NDArray[Any] | None = None,  # [N, A], of labels that are not learnt from
    settings: CloneSettings | None = None,
    on_batch: Callable[[int, float], None] | None = None,
) -> ClonedPolicy:
    """Clone whoever chose these actions. `on_batch` receives the number of batches so far and the last one's loss."""
    settings = settings or CloneSettings()
    seen = _Seen(observations)
    counts = _checked(label_counts, len(seen))
    row, first = seen.distinct_rows()
    merged = np.zeros((len(first), counts.shape[1]))
    np.add.at(merged, row, counts)
    rng, share = np.random.default_rng(settings.seed), merged.sum(axis=1) / merged.sum()
    parameters = fresh_parameters(network_of(seen, counts.shape[1]), settings.seed)
    trained = [tensor.requires_grad_() for name, tensor in parameters.items() if not name.startswith(_CRITIC)]
    adam = torch.optim.Adam(trained, lr=settings.rate, fused=True)
    with _one_thread_each() as pool:
        for batch in range(settings.batches):
            drawn = rng.multinomial(settings.batch_size, share)
            loss = _gradients(parameters, trained, seen, first, merged, drawn, settings, pool)
            adam.step()
            if on_batch is not None:
                on_batch(batch + 1, loss)
        final = {name: tensor.detach() for name, tensor in parameters.items()}
        chances = _probabilities(final, seen, first, pool)[row]
    return ClonedPolicy(
        parameters={name: np.ascontiguousarray(tensor.numpy()) for name, tensor in final.items()},
        training=_fit(chances, counts),
        held_out=_held_out_fit(chances, held_out_counts),
    )


def network_of(seen: _Seen, num_actions: int) -> Network:
    """The network that Stable-Baselines3 would make for these observations."""
    if seen.width is not None:
        every = np.arange(seen.width, dtype=np.int32)
        columns = FlatColumns(np.zeros((0, seen.width), np.float32), np.ones(seen.width, np.float32), every)
        return Network("actor_critic", num_actions, columns, None)
    return Network("actor_critic", num_actions, None, seen.image_shape)


def fresh_parameters(network: Network, seed: int) -> Parameters:
    """Stable-Baselines3's initialisation: orthogonal weights, biases of 0."""
    generator = torch.Generator().manual_seed(seed)
    parameters = {}
    for name, shape in network.torch_shapes.items():
        layer, part = name.rsplit(".", 1)
        tensor = torch.zeros(shape)
        if part == "weight":
            torch.nn.init.orthogonal_(tensor, _GAINS.get(layer, HIDDEN_GAIN), generator)
        if tensor.ndim == 4:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        parameters[name] = tensor
    return parameters


class _Seen:
    """Observations of any kind, as networks take them."""

    def __init__(self, observations: NDArray[np.uint8] | ImageStacks) -> None:
        if isinstance(observations, ImageStacks):
            frames, stacks = observations.frames, observations.stacks
        else:
            if observations.ndim not in (2, 4) or observations.dtype != np.uint8 or not len(observations):
                raise InvalidSamplesError(
                    "observations must be uint8 [N, H, W, C] or [N, D], N at least 1; "
                    f"got {observations.dtype} {list(observations.shape)}"
                )
            frames, stacks = observations, np.arange(len(observations), dtype=np.int32)[:, None]
        self._is_flat = frames.ndim == 2
        self._frames = torch.from_numpy(np.ascontiguousarray(frames if self._is_flat else np.moveaxis(frames, 3, 1)))
        self._stacks = torch.from_numpy(stacks.astype(np.int64))  # [N, K]
        self.part_size = _ROWS_A_PART if self._is_flat else _IMAGES_A_PART

    def __len__(self) -> int:
        return len(self._stacks)

    @property
    def width(self) -> int | None:
        """Numbers of a flat observation; None for images."""
        return int(self._frames.shape[1]) if self._is_flat else None

    @property
    def image_shape(self) -> tuple[int, int, int]:
        _, channels, height, width = self._frames.shape
        return height, width, channels * self._stacks.shape[1]

    def shown(self, rows: NDArray[np.int64]) -> torch.Tensor:
        """Observations [B, ...] as uint8."""
        chosen = self._frames[self._stacks[torch.from_numpy(rows)]]  # [B, K, C, H, W] or [B, 1, D]
        return chosen.flatten(1, 2)

    def distinct_rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which distinct observation each row is [N], and a row of each distinct one."""
        numbers: dict[bytes, int] = {}
        frame = np.array([numbers.setdefault(each.numpy().tobytes(), len(numbers)) for each in self._frames])
        _, first, row = np.unique(frame[self._stacks.numpy()], axis=0, return_index=True, return_inverse=True)
        return row.reshape(-1), first


def _gradients(
    parameters: Parameters,
    trained: Sequence[torch.Tensor],
    seen: _Seen,
    first: NDArray[np.int64],
    counts: NDArray[np.float64],
    drawn: NDArray[np.int64],
    settings: CloneSettings,
    pool: ThreadPoolExecutor,
) -> float:
    """Set the gradients of the loss of a batch, in which each distinct observation was drawn so often; the loss."""
    rows = np.flatnonzero(drawn)
    target = (counts[rows] / counts[rows].sum(axis=1, keepdims=True)).astype(np.float32)
    weight = (drawn[rows] / settings.batch_size).astype(np.float32)

    def part(begun: int) -> tuple[float, tuple[torch.Tensor, ...]]:
        chosen = slice(begun, begun + seen.part_size)
        log_chances = torch.log_softmax(logits(parameters, seen.shown(first[rows[chosen]])), dim=1)
        wanted = torch.from_numpy(target[chosen]) - settings.entropy * log_chances.exp()
        loss = -((wanted * log_chances).sum(dim=1) @ torch.from_numpy(weight[chosen]))
        return loss.item(), torch.autograd.grad(loss, trained)

    total, found = 0.0, list(pool.map(part, range(0, len(rows), seen.part_size)))
    for number, (loss, gradients) in enumerate(found):
        total += loss
        for tensor, gradient in zip(trained, gradients, strict=True):
            tensor.grad = gradient if number == 0 or tensor.grad is None else tensor.grad + gradient
    return total


def _probabilities(
    parameters: Parameters, seen: _Seen, rows: NDArray[np.int64], pool: ThreadPoolExecutor
) -> NDArray[np.float64]:
    """pi(. | s) of some rows [B, A]."""

    def part(begun: int) -> NDArray[np.float64]:
        with torch.no_grad():
            outputs = logits(parameters, seen.shown(rows[begun : begun + seen.part_size]))
            return np.asarray(torch.softmax(outputs.double(), dim=1).numpy())

    return np.concatenate(list(pool.map(part, range(0, len(rows), seen.part_size))))


@contextmanager
def _one_thread_each() -> Iterator[ThreadPoolExecutor]:
    """Threads that each compute a whole part: torch's own would round sums in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(num_cores(), initializer=lambda: torch.set_flush_denormal(True)) as pool:
            yield pool
    finally:
        torch.set_num_threads(before)


def _fit(chances: NDArray[np.float64], counts: NDArray[np.float64]) -> Fit:
    total = counts.sum()
    logs = np.log(np.maximum(chances, np.finfo(np.float64).tiny))
    likeliest = counts[np.arange(len(counts)), chances.argmax(axis=1)]
    return Fit(
        loss=abs(float((counts * logs).sum() / total)),  # no logarithm is above 0
        accuracy=float(likeliest.sum() / total),
        entropy=abs(float((counts.sum(axis=1) * (chances * logs).sum(axis=1)).sum() / total)),
        num_labels=int(total),
    )


def _held_out_fit(chances: NDArray[np.float64], counts: NDArray[Any] | None) -> Fit | None:
    if counts is None or not counts.any():
        return None
    return _fit(chances, _checked(counts, len(chances)))


def _checked(counts: NDArray[Any], num_observations: int) -> NDArray[np.float64]:
    """Label counts, if they are such."""
    counts = np.asarray(counts, np.float64)
    if counts.ndim != 2 or len(counts) != num_observations or counts.shape[1] < 1:
        raise InvalidSamplesError(
            f"label counts must be [N, A] with N = {num_observations}, a row per observation; got {list(counts.shape)}"
        )
    if not np.isfinite(counts).all() or counts.min() < 0 or not counts.any():
        raise InvalidSamplesError("label counts must be numbers from 0, at least one of them above 0")
    return counts
