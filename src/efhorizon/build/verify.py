"""A table against a fresh environment in fresh processes, and how much of the table was compared.

1. Episodes from reset: random ones, some through the deepest states, and optimal ones.
2. Every pair of a state and an action within the horizon (build/every_pair.py), if there are at most a million. The
   snapshots that this takes are restored many times. So the states are also reached from reset (build/from_reset.py),
   in processes that never restore anything: all of them, unless that takes much longer than the pairs.
3. Of larger tables, pairs drawn at random: so many that if one pair in a thousand were wrong, the chance to have missed
   them all is below 1%. Each is reached from reset without restoring anything. Its next state is recognised by its raw
   state; where states were merged it may be another one of the same class, and is followed by one random episode only.

A table is called exact if every pair was compared, from snapshots all of which were reached again from reset.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from efhorizon.build.difference import Difference
from efhorizon.build.episodes import episode_difference, episodes_through_pairs, mixed_episodes, scope_of
from efhorizon.build.every_pair import compare_every_pair
from efhorizon.build.from_reset import walk_from_reset
from efhorizon.build.player import Episode, Played, Player
from efhorizon.build.raw_states import RawStates, TooManyStatesError
from efhorizon.build.table_screens import TableScreens
from efhorizon.engines.engine import Engine
from efhorizon.engines.local import engine
from efhorizon.mdp import TabularMDP
from efhorizon.suites.simulator import Simulator

NumPairs = int | Literal["all"] | None  # None: all of a million at most, else a sample

MOST_PAIRS = 1_000_000  # of a table whose every pair is compared
WRONG_SHARE, MISS_CHANCE = 1 / 1000, 0.01
SAMPLE = math.ceil(math.log(MISS_CHANCE) / math.log(1 - WRONG_SHARE))  # pairs: 4,603
MOST_RAW_PAIRS = 4 * MOST_PAIRS  # of the raw states that a table's states stand for
_LEAST_RESET_STEPS = 100_000
_RESET_STEPS_A_PAIR = 2  # beyond that, not every state is reached again from reset
_PAIRS_A_WORKER = 10_000  # worth the start of another process
_EPISODES_A_TASK = 8


@dataclass(frozen=True)
class VerificationReport:
    """What was replayed, and the first difference if there was one."""

    num_episodes: int  # from reset, besides those through pairs that were drawn
    num_steps: int  # of these episodes
    screens_compared: bool
    optimal_return: float | None  # None where the table is unfinished
    num_pairs: int  # of the table: actions that can be taken within the horizon
    num_states: int
    seconds: float = 0.0
    num_pairs_replayed: int = 0
    num_states_replayed: int = 0
    num_pairs_drawn: int | None = None  # at random; None if every pair was compared
    num_next_states: int | None = None  # of the pairs drawn, less those that ended the episode or came last
    num_next_states_recognised: int | None = None
    num_raw_states: int | None = None  # in which every action was taken
    num_raw_states_from_reset: int | None = None  # of these
    difference: Difference | None = None

    @property
    def agrees(self) -> bool:
        """Whether there was no difference."""
        return self.difference is None

    @property
    def is_complete(self) -> bool:
        """Whether every pair was compared, in every raw state that its state stands for."""
        return self.agrees and self.num_raw_states is not None

    @property
    def is_exact(self) -> bool:
        return self.is_complete and self.num_raw_states_from_reset == self.num_raw_states

    def as_json(self) -> dict[str, Any]:
        difference = self.difference
        return {
            "verified": self.agrees,
            "exact": self.is_exact,
            "complete": self.is_complete,
            "pairs": self.num_pairs,
            "pairs_replayed": self.num_pairs_replayed,
            "pairs_drawn": self.num_pairs_drawn,
            "next_states": self.num_next_states,
            "next_states_recognised": self.num_next_states_recognised,
            "states": self.num_states,
            "states_replayed": self.num_states_replayed,
            "raw_states": self.num_raw_states,
            "raw_states_from_reset": self.num_raw_states_from_reset,
            "episodes": self.num_episodes,
            "steps": self.num_steps,
            "screens_compared": self.screens_compared,
            "optimal_return": self.optimal_return,
            "seconds": round(self.seconds, 3),
            "difference": None if difference is None else {**asdict(difference), "actions": list(difference.actions)},
        }


def verify(
    mdp: TabularMDP,
    make_simulator: Callable[[], Simulator],
    *,
    num_episodes: int = 30,
    num_pairs: NumPairs = None,
    seed: int = 0,
    num_workers: int = 1,
    on_progress: Callable[[str], None] = lambda line: None,
) -> VerificationReport:
    """Compare the table with the environment. `num_pairs`: how many pairs at least, or "all" at any cost."""
    started = time.monotonic()
    run = _Verifier(mdp, make_simulator, num_workers, np.random.default_rng(seed), on_progress)
    try:
        report = run.report(max(3, num_episodes), num_pairs)
    finally:
        run.close()
    return replace(report, seconds=time.monotonic() - started)


class _Verifier:
    """One verification."""

    def __init__(
        self,
        mdp: TabularMDP,
        make_simulator: Callable[[], Simulator],
        num_workers: int,
        rng: np.random.Generator,
        on_progress: Callable[[str], None],
    ) -> None:
        self._mdp, self._rng, self._on_progress = mdp, rng, on_progress
        self._scope, self._screens = scope_of(mdp), TableScreens(mdp)
        self._make_player = partial(Player, make_simulator, mdp.num_actions, self._screens.shape)
        self._num_workers = max(1, min(num_workers, self._scope.num_pairs // _PAIRS_A_WORKER))
        self._in_process = getattr(make_simulator, "in_process", False)
        self._engine = self._new_engine()  # never restores anything
        self._replayed: NDArray[np.bool_] = np.zeros(mdp.transitions.shape, bool)

    def _new_engine(self) -> Engine[Player]:
        return engine(self._make_player, self._num_workers, in_process=self._in_process)

    def close(self) -> None:
        self._engine.close()

    def report(self, num_episodes: int, num_pairs: NumPairs) -> VerificationReport:
        best, episodes = mixed_episodes(self._mdp, num_episodes, self._rng)
        played, difference = self._compared(episodes)
        scope = self._scope
        report = VerificationReport(
            len(played),
            sum(len(one.rewards) for one in played),
            screens_compared=self._screens.shape is not None,
            optimal_return=best if self._mdp.is_complete else None,
            num_pairs=scope.num_pairs,
            num_states=len(scope.states),
            difference=difference,
        )
        if difference is None:
            report = self._with_pairs(report, num_pairs)
        return replace(
            report,
            num_pairs_replayed=int(self._replayed.sum()),
            num_states_replayed=int(self._replayed.any(axis=1).sum()),
        )

    def _with_pairs(self, report: VerificationReport, wanted: NumPairs) -> VerificationReport:
        total = self._scope.num_pairs
        if wanted == "all" or (wanted is not None and wanted >= total):
            return self._with_every_pair(report, bounded=False)
        if wanted is not None:
            return self._with_drawn_pairs(report, wanted)
        raw_pairs = (self._mdp.metadata.get("num_states_raw") or 0) * self._mdp.num_actions
        if total <= MOST_PAIRS and raw_pairs <= MOST_RAW_PAIRS:
            try:
                return self._with_every_pair(report, bounded=True)
            except TooManyStatesError:
                self._on_progress("more raw states than can be visited: drawing pairs instead")
        return self._with_drawn_pairs(report, SAMPLE)

    def _with_every_pair(self, report: VerificationReport, *, bounded: bool) -> VerificationReport:
        restoring = self._new_engine()
        try:
            environment = RawStates(restoring, self._mdp.num_actions, self._screens)
            comparison = compare_every_pair(
                self._mdp,
                environment,
                self._screens,
                max_steps=MOST_RAW_PAIRS if bounded else None,
                on_progress=lambda: self._on_progress(f"{environment.num_steps:,} pairs of raw states replayed"),
            )
        finally:
            restoring.close()
        self._replayed[comparison.table_states] = True
        if comparison.difference is not None:
            return replace(report, difference=comparison.difference)
        restored = comparison.raw_states
        most = max(_LEAST_RESET_STEPS, _RESET_STEPS_A_PAIR * len(restored) * self._mdp.num_actions)
        walks = walk_from_reset(
            environment,
            restored,
            self._screens,
            self._engine,
            self._rng,
            max_steps=most if bounded else None,
            on_progress=lambda num: self._on_progress(f"{num:,} of {len(restored):,} raw states reached from reset"),
        )
        return replace(
            report,
            num_raw_states=len(restored),
            num_raw_states_from_reset=walks.num_states,
            difference=walks.difference,
        )

    def _with_drawn_pairs(self, report: VerificationReport, count: int) -> VerificationReport:
        episodes = episodes_through_pairs(self._mdp, self._scope, count, self._rng)
        played, difference = self._compared(episodes, f"of {len(episodes):,} pairs that were drawn are replayed")
        return replace(
            report,
            num_pairs_drawn=len(played),
            num_next_states=sum(len(one.actions) > one.goal_time for one in episodes[: len(played)]),
            num_next_states_recognised=sum(one.met_goal for one in played),
            difference=difference,
        )

    def _compared(self, episodes: list[Episode], text: str | None = None) -> tuple[list[Played], Difference | None]:
        """Play episodes up to the first that differs from the table."""
        played: list[Played] = []
        for batch, results in self._results(episodes):
            for episode, one in zip(batch, results, strict=True):
                played.append(one)
                difference = episode_difference(self._mdp, self._screens, episode, one, self._replayed)
                if difference is not None:
                    return played, difference
            if text is not None:
                self._on_progress(f"{len(played):,} {text}")
        return played, None

    def _results(self, episodes: list[Episode]) -> Iterator[tuple[list[Episode], list[Played]]]:
        batches = [episodes[i : i + _EPISODES_A_TASK] for i in range(0, len(episodes), _EPISODES_A_TASK)]
        num_sent = 0
        for number, batch in enumerate(batches):
            while num_sent < len(batches) and self._engine.has_room:
                self._engine.submit(partial(Player.played, episodes=batches[num_sent]))
                num_sent += 1
            assert num_sent > number
            yield batch, self._engine.next_result()
