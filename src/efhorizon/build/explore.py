"""Layered breadth-first search for every state that can be reached within a horizon (Appendix E.2)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from efhorizon.build.expand import Codec, Expander, Expansion
from efhorizon.build.search import Search
from efhorizon.build.search_records import CONFIG, Config, damaged
from efhorizon.engines.engine import Engine
from efhorizon.engines.local import engine
from efhorizon.suites.simulator import Simulator

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py

_SECONDS_A_COMMIT = 2.0
_SECONDS_A_BATCH = 0.1
_SECONDS_A_REPORT = 0.1
_LARGEST_BATCH = 1024
_IF_KILLED = "; what was committed is kept; run the same command to continue"


@dataclass(frozen=True)
class Budget:
    """When to stop a search that is not done; None: never."""

    max_states: int | None = None
    max_minutes: float | None = None
    max_memory: int | None = None  # bytes, of this process and its workers


@dataclass(frozen=True)
class Progress:
    """Where a search stands."""

    num_actions: int
    depth: int  # of the states being expanded
    num_states: int
    num_expanded: int
    num_pairs: int  # state-action pairs emulated by this call
    seconds: float  # of this call
    memory: int  # bytes
    layer_starts: tuple[int, ...]

    @property
    def pairs_per_second(self) -> float:
        return self.num_pairs / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Outcome:
    """How a call to `explore` ended."""

    progress: Progress
    stopped_by: str | None  # the budget that ended it, or None where the horizon was reached


def opened_search(folder: Path, simulator: Simulator, provenance: dict[str, Any]) -> Search:
    """The search of a simulator in a folder: the one that is there, or a new one with the start state."""

    def start() -> tuple[Config, Expansion]:
        simulator.reset()
        snapshot, screen = simulator.get_state(), simulator.screen()
        height, width, channels = screen.shape
        config = Config(provenance, simulator.num_actions, (height, width, channels), snapshot, screen.tobytes())
        expander = Expander(simulator, Codec(config.state_dictionary), Codec(config.screen_dictionary))
        return config, expander.start()

    search = Search(folder, start)
    found = (search.config.provenance, search.num_actions)
    if found != (json.loads(json.dumps(provenance)), simulator.num_actions):
        search.close()
        raise damaged(folder / CONFIG, "of another simulator")
    return search


def explore(
    search: Search,
    horizon: int,
    make_simulator: Callable[[], Simulator],
    *,
    num_workers: int = 1,
    budget: Budget | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Expand every state at depth below the horizon, or until a budget is spent; continues where the search stopped."""
    run = _Run(search, horizon, budget or Budget(), on_progress)
    if run.is_done:
        return Outcome(run.progress(0), None)
    dictionaries = search.state_codec.dictionary, search.screen_codec.dictionary
    in_process = getattr(make_simulator, "in_process", False)
    num_workers = 1 if in_process else num_workers
    make_expander = partial(_expander, make_simulator, *dictionaries)
    workers = engine(make_expander, num_workers, advice=_IF_KILLED, in_process=in_process)
    try:
        return run.to_end(workers, num_workers)
    finally:
        workers.close()


def _expander(make_simulator: Callable[[], Simulator], state_dictionary: bytes, screen_dictionary: bytes) -> Expander:
    return Expander(make_simulator(), Codec(state_dictionary), Codec(screen_dictionary))


class _Run:
    """One call to `explore`."""

    def __init__(self, search: Search, horizon: int, budget: Budget, on_progress: Callable[[Progress], None]) -> None:
        self._search, self._horizon, self._budget, self._on_progress = search, horizon, budget, on_progress
        self._started = time.monotonic()
        self._seconds_before = search.seconds
        self._expanded_before = search.num_expanded
        self._process = psutil.Process()

    @property
    def is_done(self) -> bool:
        return self._search.is_closed or self._search.complete_horizon >= self._horizon

    def to_end(self, engine: Engine[Expander], num_workers: int) -> Outcome:
        search = self._search
        sent = search.num_expanded
        batch_size = 1
        last_commit = last_report = time.monotonic()
        stopped_by: str | None = None
        while not self.is_done and stopped_by is None:
            while engine.has_room:
                available = search.batch_stop(sent, _LARGEST_BATCH, self._horizon) - sent
                stop = sent + min(batch_size, -(-available // num_workers))  # a share for every worker
                if stop == sent:
                    break
                engine.submit(partial(Expander.expand, packed_states=search.packed_states(sent, stop)))
                sent = stop
            expansion: Expansion = engine.next_result()
            search.add(expansion)
            search.close_layer()
            now = time.monotonic()
            batch_size = self._batch_size(now - self._started, num_workers)
            if now - last_report > _SECONDS_A_REPORT or self.is_done or self._has_all_states():
                last_report = now
                progress = self.progress(engine.memory())
                self._on_progress(progress)
                stopped_by = self._spent(progress)
            if now - last_commit > _SECONDS_A_COMMIT:
                self._commit()
                last_commit = time.monotonic()
        self._commit()
        return Outcome(self.progress(engine.memory()), None if self.is_done else stopped_by)

    def progress(self, worker_memory: int) -> Progress:
        search = self._search
        return Progress(
            num_actions=search.num_actions,
            depth=max(0, len(search.layer_starts) - 2),
            num_states=search.num_states,
            num_expanded=search.num_expanded,
            num_pairs=(search.num_expanded - self._expanded_before) * search.num_actions,
            seconds=time.monotonic() - self._started,
            memory=self._process.memory_info().rss + worker_memory,
            layer_starts=tuple(search.layer_starts),
        )

    def _batch_size(self, seconds: float, num_workers: int) -> int:
        """As many states as keep a worker busy for a tenth of a second."""
        rate = (self._search.num_expanded - self._expanded_before) / seconds / num_workers
        return int(np.clip(rate * _SECONDS_A_BATCH, 1, _LARGEST_BATCH))

    def _commit(self) -> None:
        self._search.seconds = self._seconds_before + time.monotonic() - self._started
        self._search.commit()

    def _has_all_states(self) -> bool:
        return self._budget.max_states is not None and self._search.num_states >= self._budget.max_states

    def _spent(self, progress: Progress) -> str | None:
        budget = self._budget
        if self._has_all_states():
            return f"--max-states {budget.max_states:,}"
        if budget.max_minutes is not None and progress.seconds >= 60 * budget.max_minutes:
            return f"--max-minutes {budget.max_minutes:g}"
        if budget.max_memory is not None and progress.memory >= budget.max_memory:
            return f"--max-memory {budget.max_memory / 2**20:,.0f} MB"
        return None
