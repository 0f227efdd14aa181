"""Recordings of a policy at play, in the form that `recordings` reads.

    optimal   an optimal policy of the environment's table, one that does not dawdle (`prompt_plan`); with probability
              `noise` a step takes a random action instead
    network   a policy network: each action is drawn from its probabilities, or is its likeliest
    person    at the keyboard: see `keyboard`

Labels are the actions that were taken, noise included. Atari is recorded with every frame of the emulator, each with
ALE's number of the action; elsewhere a step is one frame, with the environment's own number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import numpy as np

from efhorizon.agents.live.live_run import exact_decimal
from efhorizon.mdp import TERMINAL, TabularMDP
from efhorizon.policies.live import LiveGame, PlayedStep, RecordingError
from efhorizon.policies.networks import PolicyNetwork
from efhorizon.policies.prompt_plan import prompt_plan
from efhorizon.policies.recordings import Label, Recording, read_recording, written_recording
from efhorizon.suites.entry import Entry


class Player(Protocol):
    """Who chooses the actions."""

    def begin(self, game: LiveGame) -> None:
        """An episode begins."""
        ...

    def action(self, game: LiveGame) -> int | None:
        """What to do now; None to stop playing."""
        ...

    def took(self, action: int, step: PlayedStep) -> None:
        """What came of it."""
        ...


@dataclass(frozen=True)
class Episode:
    """What an episode earned."""

    total_reward: float
    steps: int
    frames: int


class OptimalPlayer:
    """An optimal policy of a table, with noise: follows the table while the environment is played."""

    def __init__(self, mdp: TabularMDP, noise: float, rng: np.random.Generator) -> None:
        if not 0 <= noise <= 1:
            raise RecordingError(f"the noise must be between 0 and 1, got {noise}")
        self._mdp, self._noise, self._rng = mdp, noise, rng
        self._plan = prompt_plan(mdp)
        self._time = self._state = 0

    @property
    def optimal_return(self) -> float:
        return self._plan.optimal_return

    def begin(self, game: LiveGame) -> None:
        if (game.entry.num_actions, game.entry.horizon) != (self._mdp.num_actions, self._mdp.horizon):
            raise RecordingError(
                f"the table has {self._mdp.num_actions} actions and horizon {self._mdp.horizon}, but {game.entry.name} "
                f"has {game.entry.num_actions} and {game.entry.horizon}"
            )
        self._time = self._state = 0

    def action(self, game: LiveGame) -> int:
        if self._noise and self._rng.random() < self._noise:
            return int(self._rng.integers(self._mdp.num_actions))
        return self._plan.action(self._time, self._state)

    def took(self, action: int, step: PlayedStep) -> None:
        expected = float(self._mdp.rewards[self._state, action])
        self._state = int(self._mdp.transitions[self._state, action])
        self._time += 1
        is_over = self._state == TERMINAL or self._time == self._mdp.horizon
        if np.float32(step.reward) != np.float32(expected) or step.ended != is_over:
            raise RecordingError(
                f"step {self._time}: the environment paid {step.reward:g}, the table says {expected:g}; "
                "is it a table of this environment?"
            )


class NetworkPlayer:
    """A policy network."""

    def __init__(self, network: PolicyNetwork, rng: np.random.Generator, *, greedy: bool = False) -> None:
        self._network, self._rng, self._greedy = network, rng, greedy

    def begin(self, game: LiveGame) -> None:
        if self._network.num_actions != game.entry.num_actions:
            raise RecordingError(
                f"the network has {self._network.num_actions} actions, {game.entry.name} {game.entry.num_actions}"
            )

    def action(self, game: LiveGame) -> int:
        (chances,) = self._network(game.observation[None])
        if self._greedy:
            return int(chances.argmax())
        return int(self._rng.choice(len(chances), p=chances / chances.sum()))

    def took(self, action: int, step: PlayedStep) -> None:
        """Nothing to remember: the next observation says it all."""


def played(
    game: LiveGame, player: Player, episodes: int, add: Callable[[int, int, PlayedStep], None] | None = None
) -> Iterator[Episode]:
    """Play some episodes. `add` receives each step: the number of its episode, the action, what it showed and paid.

    A player who stops ends the episode there.
    """
    for number in range(episodes):
        game.reset()
        player.begin(game)
        total, steps, frames, ended = Fraction(0), 0, 0, False
        while not ended:
            action = player.action(game)
            if action is None:
                break
            step = game.step(action)
            player.took(action, step)
            if add is not None:
                add(number, action, step)
            total, steps, frames = total + exact_decimal(step.reward), steps + 1, frames + len(step.pictures)
            ended = step.ended
        if steps:
            yield Episode(float(total), steps, frames)
        if not ended:
            return


def record(
    entry: Entry,
    player: Player,
    folder: Path,
    stem: str,
    *,
    episodes: int,
    on_episode: Callable[[Episode], None] | None = None,
) -> tuple[Recording, list[Episode]]:
    """Play some episodes and write them to STEM.txt and STEM.tar.bz2 in a folder."""
    game, found = LiveGame(entry), list[Episode]()
    try:
        with written_recording(folder, stem) as write:
            frames, scores = 0, dict[int, float]()

            def add(episode: int, action: int, step: PlayedStep) -> None:
                nonlocal frames
                for picture, reward in zip(step.pictures, step.rewards, strict=True):
                    frames += 1
                    score = scores.get(episode, 0.0)
                    scores[episode] = score + reward
                    number = game.action_numbers[action]
                    write(Label(f"{stem}_{frames}", number, episode, score, None, reward), picture)

            for episode in played(game, player, episodes, add):
                found.append(episode)
                if on_episode is not None:
                    on_episode(episode)
    finally:
        game.close()
    return read_recording(folder / f"{stem}.txt"), found
