"""Many copies of a table as one vectorised Gymnasium environment: millions of steps a second on one core."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from efhorizon.compiled import Flags, Floats, Integers, compiled
from efhorizon.envs.hindsight import Hindsight
from efhorizon.envs.seen import InvalidEnvironmentError, Observations, seen_table
from efhorizon.mdp import TabularMDP

_MODES: Any = getattr(gymnasium.vector, "AutoresetMode", None)  # Gymnasium 1.0 knows one mode only, this one
_NEXT_STEP = "NextStep" if _MODES is None else _MODES.NEXT_STEP


class TableVectorEnv(VectorEnv[Any, Any, Any]):
    """`num_envs` copies of `TableEnv` that are stepped together, with the same arguments and the same episodes.

    An environment whose episode is over is reset at the next step, whatever its action: it then shows its start, with
    reward 0 (Gymnasium's "next step" autoreset). With `info=True` infos hold arrays, one entry per environment.

    With `copy=False`, observations, rewards and flags are written into the same arrays at every step: quicker, but copy
    what you want to keep.
    """

    metadata = {"autoreset_mode": _NEXT_STEP}  # noqa: RUF012 - Gymnasium declares it so

    def __init__(
        self,
        mdp: TabularMDP,
        num_envs: int = 1,
        *,
        observations: Observations = "auto",
        info: bool = False,
        copy: bool = True,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int | np.integer) or num_envs < 1:
            raise InvalidEnvironmentError(f"the number of environments must be a positive integer, got {num_envs!r}")
        self.mdp, self.num_envs = mdp, int(num_envs)
        self._table = seen_table(mdp, observations)
        self._hindsight = Hindsight(mdp, self.num_envs) if info else None
        self.single_action_space = spaces.Discrete(mdp.num_actions)
        self.single_observation_space = self._table.view.space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._nodes = np.zeros(self.num_envs, np.int64)
        self._times = np.zeros(self.num_envs, np.int64)
        self._over = np.zeros(self.num_envs, np.bool_)
        self._outcomes = None if copy else _Outcomes(self.num_envs)
        self._seen = None if copy else self._table.view.many(self._nodes, None)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Every environment begins again."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        self._nodes[:], self._times[:], self._over[:] = 0, 0, False
        if self._hindsight is not None:
            self._hindsight.restart()
        return self._table.view.many(self._nodes, self._seen), self._infos()

    def step(self, actions: Any) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take an action in each environment; those that are over are reset instead."""
        taken = np.ascontiguousarray(actions)
        if taken.shape != (self.num_envs,) or taken.dtype.kind not in "iu":
            raise InvalidEnvironmentError(
                f"actions must be {self.num_envs} integers, got shape {taken.shape} of {taken.dtype}"
            )
        was_over = None if self._hindsight is None else self._over.copy()
        outcomes = self._outcomes or _Outcomes(self.num_envs)
        bad = _step(
            taken,
            self._table.transitions,
            self._table.rewards,
            self.mdp.horizon,
            self._nodes,
            self._times,
            self._over,
            outcomes.rewards,
            outcomes.terminated,
            outcomes.truncated,
        )
        if bad >= 0:
            raise InvalidEnvironmentError(
                f"actions are numbers from 0 to {self.mdp.num_actions - 1}, got {taken[bad]} for environment {bad}"
            )
        if self._hindsight is not None and was_over is not None:
            self._hindsight.follow(np.where(was_over, 0, taken))
            self._hindsight.restart(was_over)
        seen = self._table.view.many(self._nodes, self._seen)
        return seen, outcomes.rewards, outcomes.terminated, outcomes.truncated, self._infos()

    def _infos(self) -> dict[str, Any]:
        """One array per name, and under _NAME which entries count: all of them."""
        if self._hindsight is None:
            return {}
        found = {
            "state": self._table.states[self._nodes],
            "time": self._times.copy(),
            "optimal_value": self._hindsight.optimal_values,
            "optimal_q_values": self._hindsight.optimal_q_values,
            "regret": self._hindsight.regrets,
        }
        return found | {f"_{name}": np.ones(self.num_envs, np.bool_) for name in found}


class _Outcomes:
    """What a step gives back besides observations."""

    def __init__(self, num_envs: int) -> None:
        self.rewards = np.empty(num_envs)
        self.terminated = np.empty(num_envs, np.bool_)
        self.truncated = np.empty(num_envs, np.bool_)


@compiled
def _step(
    actions: Integers,
    transitions: Integers,
    rewards: Floats,
    horizon: int,
    nodes: Integers,
    times: Integers,
    over: Flags,
    gained: Floats,
    terminated: Flags,
    truncated: Flags,
) -> int:
    """One step of every environment. Returns -1, or the first environment with a bad action, and does nothing then."""
    num_nodes, num_actions = transitions.shape
    for i in range(len(actions)):
        if actions[i] < 0 or actions[i] >= num_actions:
            return i
    for i in range(len(actions)):
        if over[i]:
            nodes[i], times[i], gained[i] = 0, 0, 0.0
            over[i] = terminated[i] = truncated[i] = False
            continue
        node, action = nodes[i], actions[i]
        following = transitions[node, action]
        gained[i] = rewards[node, action]
        times[i] += 1
        terminated[i] = following < 0
        truncated[i] = following >= 0 and times[i] >= horizon
        over[i] = following < 0 or times[i] >= horizon
        nodes[i] = following if following >= 0 else num_nodes
    return -1
