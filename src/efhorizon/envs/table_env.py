"""A table as a Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from efhorizon.envs.hindsight import Hindsight
from efhorizon.envs.seen import InvalidEnvironmentError, Observations, seen_table
from efhorizon.mdp import TabularMDP
from efhorizon.suites.drawing import picture


class TableEnv(gymnasium.Env[Any, Any]):
    """A table as a Gymnasium environment, deterministic: the seed changes nothing.

    `observations` is what an agent sees: "state" (the state's number; S stands for the end), "flat" or "image" as in
    the live environment, or "auto", which takes one of these where the table has screens and else the state.

    An episode is `terminated` where the table says that it ends (-1). It is `truncated` after the last of T steps, if
    the table knows a state that follows. A table that was searched only up to its horizon knows none there: then the
    last step terminates, and there is nothing to bootstrap from.

    With `info=True` every info holds "state", "time", "optimal_value" (V* of where you are now), "optimal_q_values"
    (Q*, one per action) and "regret": what the actions of this episode have cost so far. At its end that is the optimal
    return less yours.

    It renders as "ansi", one line of text, and where the table has screens as "rgb_array" too.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 - Gymnasium declares it so

    def __init__(
        self,
        mdp: TabularMDP,
        *,
        observations: Observations = "auto",
        info: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if mdp.screens is None:
            self.metadata = {**self.metadata, "render_modes": ["ansi"]}
        if render_mode not in (None, *self.metadata["render_modes"]):
            there = " or ".join(map(repr, self.metadata["render_modes"]))
            raise InvalidEnvironmentError(f"render_mode must be None or {there} for this table, got {render_mode!r}")
        self.mdp, self.render_mode = mdp, render_mode
        self._table = seen_table(mdp, observations)
        self._hindsight = Hindsight(mdp, 1) if info else None
        self._end = len(self._table.transitions)
        self._node, self._time, self._is_over = 0, 0, True
        self.action_space = spaces.Discrete(mdp.num_actions)
        self.observation_space = self._table.view.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Go to the start state."""
        super().reset(seed=seed)
        self._node, self._time, self._is_over = 0, 0, False
        if self._hindsight is not None:
            self._hindsight.restart()
        return self._table.view.one(0), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        if self._is_over:
            raise InvalidEnvironmentError("the episode is over or has not begun: call reset()")
        if not 0 <= action < self.mdp.num_actions:
            raise InvalidEnvironmentError(f"actions are numbers from 0 to {self.mdp.num_actions - 1}, got {action!r}")
        reward = float(self._table.rewards[self._node, action])
        following = int(self._table.transitions[self._node, action])
        terminated = following < 0
        self._node = self._end if terminated else following
        self._time += 1
        truncated = not terminated and self._time >= self.mdp.horizon
        self._is_over = terminated or truncated
        if self._hindsight is not None:
            self._hindsight.follow(np.array([action]))
        return self._table.view.one(self._node), reward, terminated, truncated, self._info()

    def render(self) -> Any:
        """The current state as a line of text or a picture; the picture of the end is black."""
        if self.render_mode is None:
            return None
        state = int(self._table.states[self._node])
        is_end = state == self.mdp.num_states
        if self.render_mode == "ansi":
            return f"time {self._time}, {'the end' if is_end else f'state {state}'}\n"
        return np.zeros_like(picture(self.mdp, 0)) if is_end else picture(self.mdp, state)

    def _info(self) -> dict[str, Any]:
        if self._hindsight is None:
            return {}
        return {
            "state": int(self._table.states[self._node]),
            "time": self._time,
            "optimal_value": float(self._hindsight.optimal_values[0]),
            "optimal_q_values": self._hindsight.optimal_q_values[0],
            "regret": float(self._hindsight.regrets[0]),
        }
