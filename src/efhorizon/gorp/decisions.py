"""The choices that GORP faces: at each pair that optimal play reaches, its k-action sequences (Algorithm 1).

From a pair, GORP tries all A^k action sequences, m episodes each. Only two things about a sequence matter: the pair
where it ends with the rewards collected on the way, which give the distribution of its return, and its first action.
Sequences that agree in the first are kept as one *group*; a group's sequences with the same first action are one *arm*.
An episode that ends before the k-th action leaves the rest of the sequence without effect, so all its continuations
count, and share one group; within k of the horizon this gives each shorter sequence equally many copies, which
changes no chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Floats, Integers
from efhorizon.planning.problem import Problem
from efhorizon.planning.rewards import RewardScale
from efhorizon.planning.timeline import Timeline

MAX_ARMS = 1 << 24  # about 3 GB, and 8 GB with the moments for Appendix C
_PAIRS_A_BLOCK = 1 << 14


class Arms(NamedTuple):
    """The groups and arms of all choices as kernels take them; see `Choices`."""

    group_starts: Integers  # [O + 1]
    starts: Integers  # [O + 1]
    groups: Integers  # [N]
    actions: Integers  # [N]
    counts: Floats  # [N]


@dataclass(frozen=True)
class Choices:
    """O pairs that optimal play reaches, their G groups and N arms, in the order of time.

    Groups of choice i are group_starts[i] .. group_starts[i + 1] - 1; so are arms. Prefixes are in reward units.
    """

    timeline: Timeline
    scale: RewardScale
    num_steps: int  # k
    pairs: NDArray[np.int64]  # [O]
    following: NDArray[np.int32]  # [O, A], the next choice; -1: the episode ends, -2: the action is not optimal
    group_starts: NDArray[np.int64]  # [O + 1]
    group_ends: NDArray[np.int32]  # [G], a pair; -1 where the episode ended
    group_prefixes: NDArray[Any]  # [G], rewards of the k actions, in the type of the scale
    arm_starts: NDArray[np.int64]  # [O + 1]
    arm_groups: NDArray[np.int64]  # [N]
    arm_actions: NDArray[np.int32]  # [N]
    arm_counts: NDArray[np.float64]  # [N], the number of sequences

    @property
    def num_choices(self) -> int:
        return len(self.pairs)

    @property
    def arms(self) -> Arms:
        return Arms(self.group_starts, self.arm_starts, self.arm_groups, self.arm_actions, self.arm_counts)

    @property
    def times(self) -> NDArray[np.int64]:
        """[O], ascending."""
        return np.searchsorted(self.timeline.starts, self.pairs, side="right") - 1

    def place(self, choice: int) -> tuple[int, int]:
        """The time and the state of a choice."""
        pair = int(self.pairs[choice])
        return self.timeline.time_of(pair), int(self.timeline.states[pair])


class TooManySequencesError(ValueError):
    """More distinct action sequences than fit in memory."""


_last_asked: WeakKeyDictionary[Problem, Choices] = WeakKeyDictionary()


def choices(problem: Problem, k: int) -> Choices:
    """All choices of GORP with k-action sequences as long as its earlier actions were optimal.

    They can take gigabytes, so a problem keeps those of the k last asked for only.
    """
    kept = _last_asked.pop(problem, None)
    if kept is None or kept.num_steps != k:
        del kept
        kept = _all_choices(problem, k)
    _last_asked[problem] = kept
    return kept


def _all_choices(problem: Problem, k: int) -> Choices:
    reached = problem.optimal.reached
    found = choices_at(problem, np.flatnonzero(reached), k)
    number = np.cumsum(reached, dtype=np.int32) - 1
    following = np.where(found.following >= 0, number[np.maximum(found.following, 0)], found.following)
    return replace(found, following=following)


def choices_at(problem: Problem, pairs: NDArray[np.int64], k: int) -> Choices:
    """The choices at some pairs, given in ascending order; `following` then holds pairs, not choices."""
    timeline, optimal = problem.timeline, problem.optimal
    scale = optimal.values.scale
    following = np.where(optimal.actions[pairs], timeline.successors[pairs], np.int32(-2))
    blocks = [_sequences(timeline, scale, pairs, begin, k) for begin in range(0, len(pairs), _PAIRS_A_BLOCK)]
    owners, ends, prefixes, actions, counts = (np.concatenate(column) for column in zip(*blocks, strict=True))
    is_new = np.ones(len(owners), np.bool_)  # a group begins here
    is_new[1:] = (owners[1:] != owners[:-1]) | (ends[1:] != ends[:-1]) | (prefixes[1:] != prefixes[:-1])
    every = np.arange(len(pairs) + 1)
    return Choices(
        timeline=timeline,
        scale=scale,
        num_steps=k,
        pairs=pairs,
        following=following,
        group_starts=np.searchsorted(owners[is_new], every).astype(np.int64),
        group_ends=ends[is_new],
        group_prefixes=prefixes[is_new],
        arm_starts=np.searchsorted(owners, every).astype(np.int64),
        arm_groups=np.cumsum(is_new) - 1,
        arm_actions=actions,
        arm_counts=counts,
    )


def merged(options: Choices, kinds: NDArray[np.int64]) -> tuple[Choices, NDArray[np.int64]]:
    """Groups of the same kind [G] made one; also one old group for each new one. Arms are merged likewise."""
    choice_of = np.repeat(np.arange(options.num_choices), np.diff(options.group_starts))
    keys = choice_of * (int(kinds.max()) + 1) + kinds
    _, first, group_of = np.unique(keys, return_index=True, return_inverse=True)
    starts = np.searchsorted(choice_of[first], np.arange(options.num_choices + 1))
    num_actions = options.following.shape[1]
    arm_keys = group_of[options.arm_groups] * num_actions + options.arm_actions
    arms, arm_of = np.unique(arm_keys, return_inverse=True)
    changed = replace(
        options,
        group_starts=starts.astype(np.int64),
        group_ends=options.group_ends[first],
        group_prefixes=options.group_prefixes[first],
        arm_starts=np.searchsorted(arms // num_actions, starts).astype(np.int64),
        arm_groups=arms // num_actions,
        arm_actions=(arms % num_actions).astype(np.int32),
        arm_counts=np.bincount(arm_of, options.arm_counts, len(arms)).astype(np.float64),
    )
    return changed, first


def equal_rows(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """A number for each row, the same for equal ones."""
    order = np.lexsort(tuple(columns))
    is_new = np.zeros(len(order), np.bool_)
    for column in columns:
        is_new[1:] |= np.diff(column[order]) != 0
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(is_new)
    return numbers


_Columns = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any], NDArray[np.int32], NDArray[np.float64]]


def _sequences(timeline: Timeline, scale: RewardScale, pairs: NDArray[np.int64], begin: int, k: int) -> _Columns:
    """Arms of some choices by (choice, end, prefix, first action): one action more at a time, equal ones merged."""
    mdp, units = timeline.mdp, scale.sum_units
    _check_arms(len(pairs) * mdp.num_actions, k)
    own = pairs[begin : begin + _PAIRS_A_BLOCK]
    actions = np.tile(np.arange(mdp.num_actions, dtype=np.int32), len(own))
    owners = np.repeat(np.arange(begin, begin + len(own)), mdp.num_actions)
    ends = timeline.successors[own].ravel()
    prefixes = units[mdp.reward_codes[timeline.states[own]]].ravel()
    arms = _united(owners, ends, prefixes, actions, np.ones(len(owners)))
    for step in range(1, k):
        owners, ends, prefixes, actions, counts = arms
        _check_arms(len(owners) * mdp.num_actions * (len(pairs) // len(own)), k)
        live, over = np.flatnonzero(ends >= 0), np.flatnonzero(ends < 0)
        parents = np.repeat(live, mdp.num_actions)
        choice = np.tile(np.arange(mdp.num_actions), len(live))
        rewards = units[mdp.reward_codes[timeline.states[ends[parents]], choice]]
        if scale.discount != 1.0:
            rewards = scale.discount**step * rewards
        arms = _united(
            np.concatenate([owners[over], owners[parents]]),
            np.concatenate([ends[over], timeline.successors[ends[parents], choice]]),
            np.concatenate([prefixes[over], prefixes[parents] + rewards]),
            np.concatenate([actions[over], actions[parents]]),
            np.concatenate([counts[over] * mdp.num_actions, counts[parents]]),
        )
    return arms


def _check_arms(number: int, k: int) -> None:
    if number > MAX_ARMS:
        raise TooManySequencesError(f"the distinct action sequences of length {k} do not fit in memory")


def _united(
    owners: NDArray[np.int64],
    ends: NDArray[np.int32],
    prefixes: NDArray[Any],
    actions: NDArray[np.int32],
    counts: NDArray[np.float64],
) -> _Columns:
    order = np.lexsort((actions, prefixes, ends, owners))
    owners, ends, prefixes, actions = owners[order], ends[order], prefixes[order], actions[order]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (owners[1:] != owners[:-1]) | (ends[1:] != ends[:-1])
    is_new[1:] |= (prefixes[1:] != prefixes[:-1]) | (actions[1:] != actions[:-1])
    first = np.flatnonzero(is_new)
    return owners[first], ends[first], prefixes[first], actions[first], np.add.reduceat(counts[order], first)
