"""Environments as stages: coming back exactly, fresh noise, and what cannot be copied."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from efhorizon.diagnose.gymnasium_stage import GymnasiumStage
from efhorizon.diagnose.subject import subject_of
from efhorizon.suites.environment_source import environment_source
from efhorizon.suites.simulator import SimulatorError


class Walk(gymnasium.Env[int, int]):
    """A line of cells; with slip, an action goes the other way with chance 0.3."""

    observation_space = gymnasium.spaces.Discrete(20)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, slip: bool = False, random_start: bool = False, copyable: bool = True) -> None:
        self.slip, self.random_start, self.copyable = slip, random_start, copyable
        self.cell = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(5)) if self.random_start else 2
        return self.cell, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self.slip and self.np_random.random() < 0.3:
            action = 1 - action
        self.cell = max(0, self.cell + (1 if action else -1))
        return self.cell, float(self.cell == 6), self.cell == 6, False, {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Walk:
        if not self.copyable:
            raise TypeError("not to be copied")
        other = Walk(self.slip, self.random_start)
        other.cell, other._np_random = self.cell, np.random.default_rng()
        other._np_random.bit_generator.state = self.np_random.bit_generator.state
        return other


def stage_of(**arguments: bool) -> GymnasiumStage:
    return GymnasiumStage(environment_source(lambda: Walk(**arguments)))


@pytest.mark.parametrize(
    ("arguments", "chance", "how"),
    [
        ({}, "none", "copies"),
        ({"copyable": False}, "none", "replay"),
        ({"random_start": True}, "start", "copies"),
        ({"random_start": True, "copyable": False}, "start", "replay"),
        ({"slip": True}, "steps", "copies"),
        ({"slip": True, "copyable": False}, "steps", "open-loop"),
    ],
)
def test_what_is_found_out(arguments: dict[str, bool], chance: str, how: str) -> None:
    stage = stage_of(**arguments)
    assert (stage.chance, stage.how) == (chance, how)


@pytest.mark.parametrize("copyable", [True, False])
def test_a_place_is_reached_again(copyable: bool) -> None:
    stage, rng = stage_of(random_start=True, copyable=copyable), np.random.default_rng(0)
    stage.begin(rng)
    stage.advance(1, rng)
    cells = set()
    for _ in range(5):
        stage.restore(rng)
        cells.add(stage._env.unwrapped.cell)
        stage.play([1, 0, 0])
    assert len(cells) == 1


def test_rollouts_meet_fresh_noise_that_the_generator_decides() -> None:
    def rollouts(seed: int) -> list[int]:
        stage, rng = stage_of(slip=True), np.random.default_rng(seed)
        stage.begin(rng)
        found = []
        for _ in range(12):
            stage.restore(rng)
            found.append(stage.play([1] * 10).steps)
        return found

    assert len(set(rollouts(0))) > 1
    assert rollouts(0) == rollouts(0)
    assert rollouts(0) != rollouts(1)


def test_play_counts_every_step() -> None:
    stage, rng = stage_of(copyable=False), np.random.default_rng(0)
    stage.begin(rng)
    played = stage.play([1, 1, 1, 1, 1])
    assert played == (1.0, 4, True, 4)
    stage.begin(rng)
    stage.advance(1, rng)
    stage.restore(rng)
    assert stage.steps_played == 4 + 1 + 1  # with the replay


def test_subjects() -> None:
    assert subject_of("MiniGrid-Empty-5x5-v0").spec.source is None
    by_gymnasium = subject_of("MiniGrid-Empty-Random-5x5-v0", by_gymnasium=True)
    assert by_gymnasium.spec().chance == "start"
    assert subject_of("FrozenLake-v1", arguments={"is_slippery": False}).spec().chance == "none"
    slippery = subject_of("FrozenLake-v1")
    assert (slippery.horizon, slippery.spec().chance) == (100, "steps")
    assert subject_of("CartPole-v1").spec().chance == "start"
    assert subject_of("CartPole-v1", fixed_start=3).spec().chance == "none"
    with pytest.raises(SimulatorError, match="no time limit"):
        subject_of(lambda: Walk())
    with pytest.raises(SimulatorError, match="Discrete"):
        subject_of("Pendulum-v1").spec()
