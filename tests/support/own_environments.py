"""Small environments as users write them: a Dict of numbers, an image, text drawings, drawings that fail."""

from __future__ import annotations

import enum
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class KeyGrid(gymnasium.Env[Any, Any]):
    """Fetch the key in the upper right corner, then reach the lower right one, which pays 1."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    class Actions(enum.IntEnum):
        down = 0
        right = 1
        pick = 2

    def __init__(self, size: int = 2, render_mode: str | None = None) -> None:
        self.size, self.render_mode = size, render_mode
        self.action_space = spaces.Discrete(3)
        self.observation_space: Any = spaces.Dict(
            {"agent": spaces.Box(0, size - 1, (2,), np.int64), "has_key": spaces.Discrete(2)}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.row, self.column, self.has_key = 0, 0, False
        return self.observed(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        last = self.size - 1
        if action == 0:
            self.row = min(self.row + 1, last)
        elif action == 1:
            self.column = min(self.column + 1, last)
        elif (self.row, self.column) == (0, last):
            self.has_key = True
        won = self.has_key and (self.row, self.column) == (last, last)
        return self.observed(), float(won), won, False, {}

    def observed(self) -> Any:
        return {"agent": np.array([self.row, self.column]), "has_key": int(self.has_key)}

    def render(self) -> Any:
        self.surface = (lambda: None, object())  # like pygame's: what has drawn can be neither copied nor compared
        image = np.full((20 * self.size, 20 * self.size, 3), 200, np.uint8)
        image[20 * self.row : 20 * self.row + 20, 20 * self.column : 20 * self.column + 20] = (0, 0, 255 * self.has_key)
        return image


class Pictures(KeyGrid):
    """Observed as an image, which is all there is to see."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, size: int = 2) -> None:
        super().__init__(size)
        self.observation_space = spaces.Box(0, 255, (20 * size, 20 * size, 3), np.uint8)

    def observed(self) -> Any:
        return self.drawn()

    def drawn(self) -> Any:
        image = np.full((20 * self.size, 20 * self.size, 3), 200, np.uint8)
        image[20 * self.row : 20 * self.row + 20, 20 * self.column : 20 * self.column + 20] = (0, 0, 255 * self.has_key)
        return image


class Texts(KeyGrid):
    """Its pictures fail, for a package is missing; its text has colours."""

    metadata = {"render_modes": ["rgb_array", "ansi"]}  # noqa: RUF012

    def render(self) -> Any:
        if self.render_mode == "rgb_array":
            raise ImportError("no module named 'painting'")
        print("drawing")  # must not reach the command's own output
        cells = [["." for _ in range(self.size)] for _ in range(self.size)]
        cells[self.row][self.column] = "\x1b[41m@\x1b[0m"
        return "\n".join(map("".join, cells)) + "\n"


class Unseen(KeyGrid):
    """Draws nothing at all."""

    metadata = {"render_modes": ["human"]}  # noqa: RUF012


for name, kind in (("KeyGrid", KeyGrid), ("Pictures", Pictures), ("Texts", Texts), ("Unseen", Unseen)):
    if f"{name}-v0" not in gymnasium.registry:
        gymnasium.register(f"{name}-v0", f"own_environments:{kind.__name__}", max_episode_steps=6)
