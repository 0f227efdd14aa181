"""Replaying from reset, and finding out whether restoring is exact."""

from __future__ import annotations

import numpy as np
import pytest

from efhorizon.suites.atari_simulator import AtariSimulator
from efhorizon.suites.replay import ReplaySimulator, RestoreReport, restore_is_exact
from efhorizon.suites.simulator import Screen, Simulator, SimulatorError, Transition


class Line:
    """Walk on a line from cell 50, left or right: right moves to an even cell pay 1, and cell 54 ends the episode.

    `leaks` names a part of the state that snapshots leave out: none of them shows in the cell itself.
    """

    def __init__(self, leaks: str = "") -> None:
        self.leaks = leaks
        self.num_resets = 0
        self.num_steps = 0
        self.reset()

    @property
    def num_actions(self) -> int:
        return 2

    def reset(self) -> None:
        self.num_resets += 1
        self.cell = 50
        self.hidden = 0  # how many moves went right

    def step(self, action: int) -> Transition:
        self.num_steps += 1
        self.cell += 1 if action else -1
        self.hidden += action
        reward = float(action and self.cell % 2 == 0)
        if self.leaks == "reward" and self.hidden == 2:
            reward += 1.0
        return Transition(reward, self.cell == (53 if self.leaks == "end" and self.hidden > 4 else 54))

    def get_state(self) -> bytes:
        return bytes([self.cell]) if self.leaks else bytes([self.cell, self.hidden])

    def set_state(self, state: bytes) -> None:
        if self.leaks == "refused":
            raise SimulatorError("not today")
        self.cell = state[0]
        if not self.leaks:
            self.hidden = state[1]

    def identity(self, state: bytes) -> bytes:
        return state[:1]

    def screen(self) -> Screen:
        value = self.cell + (self.hidden if self.leaks == "screen" else 0)
        return np.full((1, 1, 1), value, dtype=np.uint8)

    def picture(self) -> Screen:
        return self.screen()

    def close(self) -> None:
        self.cell = -1


class NaiveAtari(AtariSimulator):
    """ALE's snapshots taken at face value."""

    def reset(self) -> None:
        self._power_on()

    def set_state(self, state: bytes) -> None:
        self._ale.restoreState(self._state_type(state))


def test_an_exact_restore_is_reported_as_such() -> None:
    assert restore_is_exact(Line, 20, 10, np.random.default_rng(0)) == RestoreReport(exact=True)


@pytest.mark.parametrize("leak", ["reward", "screen", "end", "refused"])
def test_what_a_snapshot_leaves_out_is_found(leak: str) -> None:
    report = restore_is_exact(lambda: Line(leak), 50, 12, np.random.default_rng(0))
    assert not report.exact
    assert {"reward": "reward", "screen": "screen", "end": "terminated", "refused": "not today"}[
        leak
    ] in report.difference
    assert report.step == len(report.actions) > 0


def test_the_reported_actions_lead_to_the_difference() -> None:
    report = restore_is_exact(lambda: Line("reward"), 50, 12, np.random.default_rng(0))
    plain = Line("reward")
    rewards = [plain.step(action).reward for action in report.actions]
    assert report.difference.endswith(f"instead of {rewards[-1]}")


@pytest.mark.parametrize("leak", ["reward", "screen", "end", "refused"])
def test_replaying_is_exact_where_restoring_is_not(leak: str) -> None:
    report = restore_is_exact(lambda: ReplaySimulator(Line(leak)), 50, 12, np.random.default_rng(0))
    assert report == RestoreReport(exact=True)


def test_replay_state() -> None:
    simulator = ReplaySimulator(Line("reward"))
    assert isinstance(simulator, Simulator)
    for action in (1, 0, 0):
        simulator.step(action)
    state = simulator.get_state()
    assert state == b"\3\0" + b"\1\0\0\0\0\0" + bytes([49])
    assert simulator.identity(state) == bytes([49])
    simulator.reset()
    simulator.step(0)
    assert simulator.identity(simulator.get_state()) == bytes([49]), "two ways to the same state have one identity"
    simulator.set_state(state)
    assert simulator.get_state() == state
    assert simulator.screen() == simulator.picture() == 49


def test_a_state_that_lies_ahead_is_played_on_to() -> None:
    inner = Line()
    simulator = ReplaySimulator(inner)
    simulator.step(1)
    simulator.step(0)
    state = simulator.get_state()
    resets, steps = inner.num_resets, inner.num_steps
    simulator.set_state(state)
    assert (inner.num_resets, inner.num_steps) == (resets, steps), "already there"
    simulator.step(1)
    simulator.set_state(state)
    assert (inner.num_resets, inner.num_steps) == (resets + 1, steps + 3)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (b"", "cut off"),
        (b"\1", "cut off"),
        (b"\2\0\1\0\1", "cut off"),
        (b"\1\0\2\0\5", "an action above 1: 2"),
        (b"\1\0\1\0\7", "another state"),
        (b"\5\0" + b"\1\0" * 5 + b"\x0a", "ended while replaying 5 steps, at step 4"),
    ],
)
def test_malformed_states_are_refused(state: bytes, message: str) -> None:
    with pytest.raises(SimulatorError, match=message):
        ReplaySimulator(Line()).set_state(state)


def test_qbert_is_restored_wrongly_by_ale_and_rightly_by_replay() -> None:
    pytest.importorskip("ale_py")
    naive = restore_is_exact(lambda: NaiveAtari("qbert", 30), 1, 3, np.random.default_rng(0))
    assert not naive.exact
    assert (naive.step, naive.difference) == (1, "state"), "only the start state is restored wrongly"
    replayed = restore_is_exact(lambda: ReplaySimulator(NaiveAtari("qbert", 30)), 1, 3, np.random.default_rng(0))
    assert replayed == RestoreReport(exact=True)
