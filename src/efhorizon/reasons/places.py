"""Places: pairs (time, state) that are one reason, because GORP goes wrong there for the same cause.

Three ways to merge, from fine to coarse:

    state   one state at all its times
    look    states that show the same screen and where, at the time that costs most, the same actions are right
    stage   states at the same stage of the way: the same return still to be earned, by optimal play, and the same
            number of steps to the next reward, by the shortest such play

The first of them is taken with which the three largest places carry at least half of all first mistakes, and `stage` if
none does: in a room with many equal paths a mistake can be made in hundreds of states, none of which says much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from efhorizon.bounds.why import Merged
from efhorizon.planning.problem import Problem
from efhorizon.reasons.losses import Losses

SHOWN = 3  # places
ENOUGH = 0.5  # of all first mistakes, for the places shown


@dataclass(frozen=True)
class Places:
    """Which place each of O pairs belongs to."""

    labels: NDArray[np.int64]  # [O], from 0
    merged: Merged
    steps: NDArray[np.int64] | None = None  # [O], to the next reward, where stages are merged

    def shares(self, first: NDArray[np.float64]) -> NDArray[np.float64]:
        """The part of all first mistakes that is made at each place; they sum to 1."""
        shares: NDArray[np.float64] = np.bincount(self.labels, first).astype(np.float64) / first.sum()
        return shares


def places(problem: Problem, losses: Losses) -> Places:
    """The finest of the three ways to merge with which the largest places carry enough."""
    found = _states(losses)
    if _carries_enough(found, losses):
        return found
    if problem.mdp.screen_mapping is not None:
        found = _looks(problem, losses)
        if _carries_enough(found, losses):
            return found
    return _stages(problem, losses)


def _carries_enough(found: Places, losses: Losses) -> bool:
    return float(np.sort(found.shares(losses.first))[-SHOWN:].sum()) >= ENOUGH


def _states(losses: Losses) -> Places:
    return Places(_numbered(losses.states[:, None]), "state")


def _looks(problem: Problem, losses: Losses) -> Places:
    distinct, number = np.unique(losses.states, return_inverse=True)
    order = np.lexsort((losses.first, number))  # the costliest pair of each state comes last
    last = np.searchsorted(number[order], np.arange(len(distinct)), side="right") - 1
    right = np.packbits(problem.optimal.actions[losses.pairs[order[last]]], axis=1)
    signatures = np.column_stack([problem.mdp.shown[distinct].astype(np.int64), right.astype(np.int64)])
    return Places(_numbered(signatures)[number], "look")


def _stages(problem: Problem, losses: Losses) -> Places:
    steps = steps_to_reward(problem)[losses.pairs]
    values = problem.optimal.values.numbers[losses.pairs]
    _, value = np.unique(values, return_inverse=True)
    return Places(_numbered(np.column_stack([value.reshape(-1), steps])), "stage", steps)


def steps_to_reward(problem: Problem) -> NDArray[np.int64]:
    """The fewest steps [P] of optimal play to a reward that is not 0, or to the end if there is none."""
    line, mdp = problem.timeline, problem.mdp
    pays = mdp.reward_values != 0
    steps = np.zeros(line.num_pairs + 1, np.int64)  # the last entry is for episodes that are over
    for time in reversed(range(mdp.horizon)):
        layer = line.layer(time)
        if layer.stop == layer.start:
            continue
        ahead = np.where(pays[mdp.reward_codes[line.states[layer]]], 0, steps[line.successors[layer]])
        steps[layer] = 1 + np.where(problem.optimal.actions[layer], ahead, mdp.horizon).min(axis=1)
    return steps[:-1]


def _numbered(signatures: NDArray[np.generic]) -> NDArray[np.int64]:
    """A number for each row, the same for equal rows."""
    _, number = np.unique(signatures, axis=0, return_inverse=True)
    return number.reshape(-1).astype(np.int64)
