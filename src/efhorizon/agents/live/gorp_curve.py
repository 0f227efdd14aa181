"""GORP on a live environment with a learning curve that can be compared with PPO's and DQN's (Figure 4).

As `gorp.py`, but episodes are shared out among processes (`rollouts`), and there is a curve:

    timesteps   every step of every episode from its start, the actions chosen so far included, as the paper's authors
                count them. These are not emulated again: `steps_played` is what was.
    return      of the policy at that time, the actions chosen so far and then random ones: the mean over the next
                iteration's A^k m episodes. Their first k actions are all equally frequent and the choice among them
                comes afterwards, so the mean is an unbiased estimate; that of the best sequence alone would not be.
    best        the best return of any episode so far.

A point is kept for the first iteration at or after each multiple of `interval` timesteps. A run that was stopped, even
by a kill, goes on from its checkpoint and ends as it would have. The number of timesteps is not part of its settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from efhorizon.agents.live.gorp import _MAX_SEQUENCES as MAX_SEQUENCES
from efhorizon.agents.live.live_run import Settings, bad_checkpoint, exact_decimal
from efhorizon.agents.live.rollouts import EnvironmentName, Played, Players
from efhorizon.agents.tabular.runs import InvalidSettingError, check_positive
from efhorizon.errors import StoreError
from efhorizon.io.decode import Count, Finite, Positive, Record, Text, read_object, record_of, write_record

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

FORMAT = "efhorizon-gorp-curve-1"
INTERVAL = 10_000  # timesteps between points, those of PPO's and DQN's evaluations
_SECONDS_A_CHECKPOINT = 10.0


class CurveRun(Record, frozen=True, tag_field="format", tag=FORMAT):
    """A run, finished or not."""

    settings: Settings
    num_actions: Positive
    interval: Positive
    actions: tuple[Count, ...]  # chosen so far
    rewards: tuple[Finite, ...]  # that they got
    ended: bool  # whether the environment ended the episode before the horizon
    timesteps: Count  # as the authors count
    steps_played: Count  # really emulated
    best_return: Finite | None  # of any episode
    curve: tuple[tuple[Count, Finite, Finite], ...]  # timesteps, return, best

    @property
    def is_complete(self) -> bool:
        return self.ended or len(self.actions) == self.settings.horizon

    @property
    def total_reward(self) -> float:
        """The return of the actions so far."""
        return float(sum(map(exact_decimal, self.rewards)))


class _State:
    """A run while it goes on: lists grow, where a record would be copied at every step."""

    def __init__(self, run: CurveRun) -> None:
        self.settings, self.num_actions, self.interval = run.settings, run.num_actions, run.interval
        self.actions, self.rewards, self.curve = list(run.actions), list(run.rewards), list(run.curve)
        self.ended, self.timesteps, self.steps_played = run.ended, run.timesteps, run.steps_played
        self.best = None if run.best_return is None else exact_decimal(run.best_return)
        self.collected = sum(map(exact_decimal, run.rewards), Fraction())

    def add(self, played: list[Played], m: int) -> int:
        """Count an iteration's episodes; the action that it chooses."""
        sums: dict[int, Fraction] = {}
        for part in played:
            sums[part.sequence] = sums.get(part.sequence, Fraction()) + part.total
        best = self.collected + max(part.best for part in played)
        self.best = best if self.best is None else max(self.best, best)
        mean = self.collected + sum(sums.values(), Fraction()) / (len(sums) * m)
        if not self.curve or self.timesteps // self.interval > self.curve[-1][0] // self.interval:
            self.curve.append((self.timesteps, float(mean), float(self.best)))
        steps = sum(part.steps for part in played)
        self.steps_played += steps
        self.timesteps += steps + len(sums) * m * len(self.actions)
        highest = max(sums.values())
        ties = [sequence for sequence in sorted(sums) if sums[sequence] == highest]
        length = min(self.settings.k, self.settings.horizon - len(self.actions))
        return int(ties[self._drawn_tie(len(ties))] // self.num_actions ** (length - 1))

    def record(self) -> CurveRun:
        return CurveRun(
            settings=self.settings,
            num_actions=self.num_actions,
            interval=self.interval,
            actions=tuple(self.actions),
            rewards=tuple(self.rewards),
            ended=self.ended,
            timesteps=self.timesteps,
            steps_played=self.steps_played,
            best_return=None if self.best is None else float(self.best),
            curve=tuple(self.curve),
        )

    @property
    def is_complete(self) -> bool:
        return self.ended or len(self.actions) == self.settings.horizon

    def _drawn_tie(self, count: int) -> int:
        import random

        return random.Random(f"{self.settings.seed} {len(self.actions)} tie").randrange(count)


def gorp_curve(
    name: EnvironmentName,
    *,
    k: int,
    m: int,
    seed: int,
    max_steps: int,
    interval: int = INTERVAL,
    workers: int = 1,
    checkpoint: Path | None = None,
    on_progress: Callable[[CurveRun], None] | None = None,
) -> CurveRun:
    """Run GORP(k, m) until `max_steps` timesteps, or go on from the checkpoint."""
    check_positive(k=k, m=m, max_steps=max_steps, interval=interval, workers=workers)
    if seed < 0:
        raise InvalidSettingError(f"the seed must not be negative, got {seed}")
    players = Players(name, k=k, seed=seed, workers=workers)
    try:
        environment = players.own.environment
        if k > environment.horizon or environment.num_actions**k > MAX_SEQUENCES:
            raise InvalidSettingError(
                f"k = {k}: {environment.num_actions}^{k} action sequences within {environment.horizon} steps"
            )
        settings = Settings(environment.id, environment.horizon, k, m, seed)
        run = CurveRun(settings, environment.num_actions, interval, (), (), False, 0, 0, None, ())
        if checkpoint is not None and checkpoint.exists():
            run = _resumed(run, players, checkpoint)
        return _played(run, players, max_steps, checkpoint, on_progress)
    finally:
        players.close()


def _played(
    run: CurveRun,
    players: Players,
    max_steps: int,
    checkpoint: Path | None,
    on_progress: Callable[[CurveRun], None] | None,
) -> CurveRun:
    state, settings = _State(run), run.settings
    saved = shown = time.monotonic()
    try:
        while not state.is_complete and state.timesteps < max_steps:
            length = min(settings.k, settings.horizon - len(state.actions))
            chosen = state.add(players.play(run.num_actions**length, settings.m), settings.m)
            reward, state.ended = players.advance(chosen)
            state.actions.append(chosen)
            state.rewards.append(reward)
            state.collected += exact_decimal(reward)
            state.steps_played += 1
            now = time.monotonic()
            if on_progress is not None and now - shown > 1:
                on_progress(state.record())
                shown = now
            if checkpoint is not None and now - saved > _SECONDS_A_CHECKPOINT:
                write_record(checkpoint, state.record())
                saved = now
    finally:
        if checkpoint is not None and len(state.actions) == len(state.rewards) > len(run.actions):
            write_record(checkpoint, state.record())
    return state.record()


def _resumed(fresh: CurveRun, players: Players, checkpoint: Path) -> CurveRun:
    """Take the players to where a checkpoint ended; the environment must say again what it said then."""
    try:
        run = record_of(read_object(checkpoint, "a checkpoint of GORP"), CurveRun, str(checkpoint))
    except StoreError as error:
        raise bad_checkpoint(checkpoint, str(error).removeprefix(f"{checkpoint}: ")) from None
    if (run.settings, run.num_actions, run.interval) != (fresh.settings, fresh.num_actions, fresh.interval):
        raise StoreError(f"{checkpoint}: a checkpoint of another run ({run.settings}, not {fresh.settings})")
    last = len(run.actions) - 1
    for step, (action, reward) in enumerate(zip(run.actions, run.rewards, strict=True)):
        if players.advance(action) != (reward, run.ended and step == last):
            raise bad_checkpoint(checkpoint, f"step {step + 1} has another reward or end when it is replayed")
    return run


__all__ = ["CurveRun", "EnvironmentName", "Text", "gorp_curve"]
