"""Replaying a table against a fresh environment in a fresh process, from reset.

Random episodes, episodes through the deepest states, and optimal episodes. Reward, end and screen are compared at
each step.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from efhorizon import graph
from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import optimal_plan
from efhorizon.suites.simulator import Simulator


class _Step(NamedTuple):
    """What a step showed: in the environment, or according to the table."""

    reward: float
    terminated: bool
    screen: bytes | None  # digest; None after the end, or where the table has no screens


@dataclass(frozen=True)
class Difference:
    """The first step at which table and environment differ."""

    actions: tuple[int, ...]  # from reset, the last one being the step that differs; empty: the start screen
    what: str  # "reward", "end" or "screen"
    expected: str  # by the table
    found: str  # in the environment

    def __str__(self) -> str:
        where = f"after actions {list(self.actions)}" if self.actions else "at the start"
        return f"{where} the {self.what} is {self.found}, but {self.expected} in the table"


@dataclass(frozen=True)
class VerificationReport:
    """What was replayed, and the first difference if there was one."""

    num_episodes: int
    num_steps: int
    screens_compared: bool
    optimal_return: float | None  # None where the table is unfinished
    seconds: float
    difference: Difference | None

    @property
    def is_exact(self) -> bool:
        return self.difference is None

    def as_json(self) -> dict[str, Any]:
        difference = self.difference
        return {
            "verified": self.is_exact,
            "episodes": self.num_episodes,
            "steps": self.num_steps,
            "screens_compared": self.screens_compared,
            "optimal_return": self.optimal_return,
            "seconds": round(self.seconds, 3),
            "difference": None
            if difference is None
            else {
                "actions": list(difference.actions),
                "what": difference.what,
                "expected": difference.expected,
                "found": difference.found,
            },
        }


def verify(
    mdp: TabularMDP, make_simulator: Callable[[], Simulator], *, num_episodes: int = 30, seed: int = 0
) -> VerificationReport:
    """Compare the table with the environment on `num_episodes` episodes: half random, a quarter deep, a quarter
    optimal."""
    started = time.monotonic()
    rng = np.random.default_rng(seed)
    best, episodes = _episodes(mdp, max(3, num_episodes), rng)
    has_screens = mdp.screens is not None and not (mdp.metadata.get("inputs") or {}).get("ignore_screens")
    screen_shape = tuple(mdp.screens.shape[1:]) if mdp.screens is not None and has_screens else None
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_replay, args=(theirs, make_simulator, episodes, screen_shape), daemon=True)
    process.start()
    theirs.close()
    difference: Difference | None = None
    num_steps = replayed = 0
    try:
        for actions in episodes:
            try:
                played = ours.recv()
            except EOFError:
                process.join(timeout=5)
                raise EfhorizonError(f"the verifying process ended with exit code {process.exitcode}") from None
            if isinstance(played, str):
                raise EfhorizonError(played)
            replayed += 1
            num_steps += len(played[1])
            difference = _first_difference(mdp, actions, *played)
            if difference is not None:
                break
    finally:
        process.terminate()
        process.join(timeout=5)
    seconds = time.monotonic() - started
    optimal_return = best if mdp.is_complete else None
    return VerificationReport(replayed, num_steps, screen_shape is not None, optimal_return, seconds, difference)


def _episodes(mdp: TabularMDP, count: int, rng: np.random.Generator) -> tuple[float, list[list[int]]]:
    num_optimal = max(1, count // 4)
    num_deep = max(1, count // 4)
    episodes: list[list[int]] = []
    plan = optimal_plan(mdp)
    for i in range(num_optimal):
        if i:
            plan = optimal_plan(mdp, rng)
        episodes.append(_walk(mdp, plan.action))
    for path in graph.shortest_paths(mdp.transitions, _deepest_states(mdp, num_deep, rng)):
        episodes.append(_walk(mdp, _path_then_random(path, mdp.num_actions, rng)))
    while len(episodes) < count:
        episodes.append(_walk(mdp, _path_then_random([], mdp.num_actions, rng)))
    return plan.optimal_return, episodes


def _path_then_random(path: list[int], num_actions: int, rng: np.random.Generator) -> Callable[[int, int], int]:
    return lambda t, state: path[t] if t < len(path) else int(rng.integers(num_actions))


def _walk(mdp: TabularMDP, choose: Callable[[int, int], int]) -> list[int]:
    """The actions of one episode in the table."""
    state, actions = 0, []
    for t in range(mdp.horizon):
        action = choose(t, state)
        actions.append(action)
        state = int(mdp.transitions[state, action])
        if state < 0:
            break
    return actions


def _deepest_states(mdp: TabularMDP, count: int, rng: np.random.Generator) -> NDArray[Any]:
    order, depths = graph.breadth_first_order(mdp.transitions)
    within = order[depths[order] < mdp.horizon]
    deepest = within[-max(count, int(np.sum(depths[within] == depths[within[-1]]))) :]
    return rng.choice(deepest, size=min(count, len(deepest)), replace=False)


def _replay(
    connection: Any,
    make_simulator: Callable[[], Simulator],
    episodes: Sequence[Sequence[int]],
    screen_shape: tuple[int, ...] | None,
) -> None:
    """Play episodes from reset, without ever restoring a state, and send what was seen."""
    try:
        simulator = make_simulator()
        for actions in episodes:
            simulator.reset()
            start = _shown(simulator, screen_shape)
            steps: list[_Step] = []
            for action in actions:
                reward, terminated = simulator.step(action)
                steps.append(_Step(reward, terminated, None if terminated else _shown(simulator, screen_shape)))
                if terminated:
                    break
            connection.send((start, steps))
    except EfhorizonError as error:
        connection.send(str(error))
    except BrokenPipeError:
        return
    except Exception as error:
        connection.send(f"the environment failed: {type(error).__name__}: {error}")


def _shown(simulator: Simulator, shape: tuple[int, ...] | None) -> bytes | None:
    if shape is None:
        return None
    screen = simulator.screen()
    if screen.shape != shape:  # published files hold pictures where ours hold something more compact
        screen = simulator.picture()
    return _digest(screen)


def _digest(screen: NDArray[np.uint8]) -> bytes:
    return xxhash.xxh3_128_digest(np.ascontiguousarray(screen).tobytes() + str(screen.shape).encode())


def _first_difference(
    mdp: TabularMDP, actions: Sequence[int], start: bytes | None, steps: Sequence[_Step]
) -> Difference | None:
    state = 0
    if start is not None and start != _digest(mdp.screen(0)):
        return Difference((), "screen", "another one", f"one with digest {start.hex()[:8]}")
    for t, (action, step) in enumerate(zip(actions, steps, strict=False)):
        done_so_far = tuple(actions[: t + 1])
        expected_reward = float(mdp.reward_values[mdp.reward_codes[state, action]])
        if not _same_reward(expected_reward, step.reward):
            return Difference(done_so_far, "reward", f"{expected_reward:g}", f"{step.reward:g}")
        state = int(mdp.transitions[state, action])
        if t + 1 == mdp.horizon:
            return None  # beyond the last action a table says nothing
        if step.terminated != (state < 0):
            texts = ("an end", "no end")
            return Difference(done_so_far, "end", texts[state >= 0], texts[not step.terminated])
        if state < 0:
            return None
        if step.screen is not None and step.screen != _digest(mdp.screen(state)):
            return Difference(
                done_so_far, "screen", f"that of state {state}", f"one with digest {step.screen.hex()[:8]}"
            )
        if mdp.unexplored is not None and mdp.unexplored[state]:
            return None  # what follows is not known
    return None


def _same_reward(expected: float, found: float) -> bool:
    """Equal, or equal in float32: published files round."""
    return expected == found or np.float32(expected) == np.float32(found)
