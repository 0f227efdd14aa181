"""The scale of rewards: a running standard deviation of discounted returns, as Cobbe et al. (and VecNormalize) keep it.

After each step, G <- gamma G + r in each environment; mean and variance of all G so far are merged as by Chan et al.
The reward of that step is divided by the deviation, and G is 0 after the end of an episode.

Legend: N environments, T steps of a rollout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.policies.pretraining_settings import PretrainingSettings

_FIRST_COUNT = 1e-4  # of observations that were not made: the variance starts at 1
_EPSILON = 1e-8

Floats = NDArray[np.float32]


class ReturnScale:
    """What rewards are divided by."""

    def __init__(self, settings: PretrainingSettings) -> None:
        self._gamma, self._clip = settings.gamma, settings.reward_clip
        self._discounted = np.zeros(settings.num_envs)  # [N]
        self._mean, self._variance, self._count = 0.0, 1.0, _FIRST_COUNT

    @property
    def deviation(self) -> float:
        return math.sqrt(self._variance + _EPSILON)

    def scaled(self, reward: Floats, is_done: NDArray[np.bool_]) -> Floats:
        """Rewards [T, N] of a rollout, each divided by the deviation at its time; `is_done` [T, N]."""
        found = np.empty_like(reward)
        for step in range(len(reward)):
            self._discounted = self._discounted * self._gamma + reward[step]
            self._merge(self._discounted)
            found[step] = (reward[step] / self.deviation).clip(-self._clip, self._clip)
            self._discounted[is_done[step]] = 0
        return found

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            "discounted": self._discounted.copy(),
            "return_moments": np.array([self._mean, self._variance, self._count]),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self._discounted = state["discounted"].copy()
        self._mean, self._variance, self._count = state["return_moments"].tolist()

    def _merge(self, values: NDArray[np.float64]) -> None:
        """Mean and variance of what was seen so far and of values [N] together."""
        count, more = self._count, len(values)
        total, shift = count + more, float(values.mean()) - self._mean
        squares = self._variance * count + float(values.var()) * more + shift**2 * count * more / total
        self._mean, self._variance, self._count = self._mean + shift * more / total, squares / total, total
