"""What `ppo` and `dqn` need from their learners, of which each has two: an MLP on flat observations, a CNN on images.

Legend: B seeds, N environments, T steps of a rollout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray


class Updates(NamedTuple):
    """What updates of PPO brought: [updates, B, ...], or without these axes for one update of one seed."""

    is_done: Any  # [T, N], whether the step ended an episode
    units: Any  # [T, N], return of the episode so far
    evaluation: Any  # [], return of the greedy episode in units, where one was due


class PPOLearners(Protocol):
    """PPO with several seeds: their state, and how they continue."""

    def updates(self, step: int) -> Updates:
        """The next updates of all seeds, after `step` timesteps: one or more."""

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        """Go on with these only, or with more of them where that is cheaper: those that are left."""


class DQNLearners(Protocol):
    """DQN with several seeds: their state, and how they continue."""

    def interval(self, step: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """From one evaluation to the next, after `step` timesteps.

        Whether each timestep ended an episode and the return until then [B, interval], and the greedy episodes' returns
        [B]. An evaluation comes before the gradient step that follows it, as in Stable-Baselines3.
        """

    def keep(self, places: Sequence[int]) -> Sequence[int]:
        """Go on with these only, or with more of them where that is cheaper: those that are left."""
