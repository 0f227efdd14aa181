"""What PPO and DQN on flat observations share: a table as arrays, an MLP of two hidden layers, and Adam.

    hidden_1 = relu(x W_0 + b_0),  hidden_2 = relu(hidden_1 W_1 + b_1)

Small matrices take BLAS a microsecond each, so the loops around them have to be compiled as well: Numba calls BLAS
directly. Parameters lie in one vector, in the order of `networks.Network`; layers are views of it.

Legend: D samples, G columns of an observation, H hidden units, A actions, P nodes of the table, U observations,
n parameters.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from efhorizon.agents.deep.networks import BETA_1, BETA_2, HIDDEN
from efhorizon.agents.deep.observations import FlatColumns, ObservedTable
from efhorizon.agents.streams import drawn_below
from efhorizon.compiled import Floats, Integers, Words, compiled, compiled_with
from efhorizon.planning.policies import ExplorationPolicy

FAST = {"contract", "nsz", "reassoc"}  # what vectors need; infinities and NaN stay what they are
ZERO, ONE = np.float32(0), np.float32(1)
_FLUSHED = np.float32(1e-30)  # moments below it become 0: arithmetic on denormal numbers is a hundred times slower
_DECAY_1, _DECAY_2 = np.float32(BETA_1), np.float32(BETA_2)
_SHARE_1, _SHARE_2 = np.float32(1 - BETA_1), np.float32(1 - BETA_2)
_BITS = 2**31
_CLIP_GUARD = np.float32(1e-6)  # torch's clip_grad_norm_


Singles = NDArray[np.float32]  # of single precision
Tower = tuple[Singles, Singles, Singles, Singles]  # weights and biases of two hidden layers, or gradients of them
Head = tuple[Singles, Singles]  # the same of a linear layer from the hidden ones to outputs


class GameArrays(NamedTuple):
    """What can happen, as arrays."""

    transitions: Integers  # int32 [P, A]
    rewards: Singles  # [P, A]
    reward_units: Integers  # int32 [P, A]
    state: Integers  # int32 [P]
    observation: Integers  # int32 [P]
    observations: Singles  # [U, G]
    probabilities: Floats  # of the exploration policy [T or 1, S, A]; [0, 0, 0] for the uniform one
    previous: Integers  # int32 [P], the action that led to each node; [0] without sticky actions
    stickiness: float  # the chance that it is repeated


class AdamRules(Protocol):
    """What Adam reads of the rules of PPO and DQN."""

    @property
    def rate(self) -> float: ...

    @property
    def adam_epsilon(self) -> np.float32: ...

    @property
    def max_gradient_norm(self) -> np.float32: ...


def game_of(table: ObservedTable, policy: ExplorationPolicy | None = None) -> GameArrays:
    assert isinstance(table.seen, FlatColumns)
    probabilities = None if policy is None else policy.probabilities
    return GameArrays(
        table.transitions,
        np.ascontiguousarray(table.rewards),
        np.ascontiguousarray(table.reward_units),
        table.state,
        table.observation,
        np.ascontiguousarray(table.seen.values),
        np.zeros((0, 0, 0)) if probabilities is None else probabilities,
        np.zeros(0, np.int32) if table.previous is None else table.previous,
        table.stickiness,
    )


@compiled
def executed(node: int, chosen: int, words: Words, game: GameArrays) -> int:
    """The action that the environment takes: the chosen one, or with sticky actions perhaps the previous one."""
    if not len(game.previous):
        return chosen
    previous = game.previous[node]
    if previous < 0 or drawn_below(words, _BITS) >= game.stickiness * _BITS:
        return chosen
    return int(previous)


@compiled
def tower_size(num_columns: int) -> int:
    """Parameters of two hidden layers."""
    return (num_columns + 1) * HIDDEN + (HIDDEN + 1) * HIDDEN


@compiled
def tower(theta: Singles, start: int, num_columns: int) -> Tower:
    """The two hidden layers that begin at `start`, as views."""
    end_0 = start + num_columns * HIDDEN
    end_1 = end_0 + HIDDEN + HIDDEN * HIDDEN
    return (
        theta[start:end_0].reshape(num_columns, HIDDEN),
        theta[end_0 : end_0 + HIDDEN],
        theta[end_0 + HIDDEN : end_1].reshape(HIDDEN, HIDDEN),
        theta[end_1 : end_1 + HIDDEN],
    )


@compiled
def head(theta: Singles, start: int, num_outputs: int) -> Head:
    """The linear layer that begins at `start`, as views."""
    middle = start + HIDDEN * num_outputs
    return theta[start:middle].reshape(HIDDEN, num_outputs), theta[middle : middle + num_outputs]


@compiled
def show(observation: Singles, row: Singles) -> None:
    """Copy one observation [G]: an assignment of arrays would take longer."""
    for column in range(len(row)):
        row[column] = observation[column]


@compiled_with(fastmath=FAST)
def pass_forward(layers: Tower, seen: Singles, below: Singles, above: Singles) -> None:
    """Fill both hidden layers [D, H] from observations [D, G]."""
    weights_0, bias_0, weights_1, bias_1 = layers
    np.dot(seen, weights_0, below)
    _add_and_rectify(below, bias_0)
    np.dot(below, weights_1, above)
    _add_and_rectify(above, bias_1)


@compiled_with(fastmath=FAST)
def _add_and_rectify(hidden: Singles, bias: Singles) -> None:
    for sample in range(len(hidden)):
        for unit in range(HIDDEN):
            hidden[sample, unit] = max(hidden[sample, unit] + bias[unit], ZERO)


@compiled_with(fastmath=FAST)
def pass_backward(
    layers: Tower, gradients: Tower, seen: Singles, below: Singles, to_below: Singles, to_above: Singles
) -> None:
    """Fill the gradients of both layers from that of the upper one's sums, `to_above` [D, H]; `to_below` is room."""
    _, _, weights_1, _ = layers
    for_weights_0, for_bias_0, for_weights_1, for_bias_1 = gradients
    np.dot(below.T, to_above, for_weights_1)
    np.dot(to_above, weights_1.T, to_below)
    for sample in range(len(below)):
        for unit in range(HIDDEN):
            to_below[sample, unit] = to_below[sample, unit] if below[sample, unit] > ZERO else ZERO
    np.dot(seen.T, to_below, for_weights_0)
    for_bias_0[:] = ZERO
    for_bias_1[:] = ZERO
    for sample in range(len(below)):
        for unit in range(HIDDEN):
            for_bias_0[unit] += to_below[sample, unit]
            for_bias_1[unit] += to_above[sample, unit]


@compiled_with(fastmath=FAST, error_model="numpy")
def adam_step(
    theta: Singles,
    gradient: Singles,
    first: Singles,
    second: Singles,
    multiplicity: Singles,
    count: int,
    rules: AdamRules,
) -> None:
    """torch's clip_grad_norm_ and Adam, in place; this is update number `count`, from 1.

    `gradient` is that of one of the parameters that each entry stands for, as many as its multiplicity says.
    """
    total = ZERO
    for number in range(len(theta)):
        total += multiplicity[number] * gradient[number] * gradient[number]
    scale = min(ONE, rules.max_gradient_norm / (np.float32(np.sqrt(total)) + _CLIP_GUARD))
    pace = np.float32(rules.rate / (1.0 - BETA_1**count))
    unbiased = np.float32(1.0 / np.sqrt(1.0 - BETA_2**count))
    for number in range(len(theta)):
        slope = scale * gradient[number]
        mean = _DECAY_1 * first[number] + _SHARE_1 * slope
        square = _DECAY_2 * second[number] + _SHARE_2 * slope * slope
        first[number] = mean if abs(mean) > _FLUSHED else ZERO
        second[number] = square if square > _FLUSHED else ZERO
        theta[number] -= multiplicity[number] * pace * mean / (np.sqrt(square) * unbiased + rules.adam_epsilon)
