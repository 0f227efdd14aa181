"""Layered search on many machines: owner computes.

    owners      hold the keys of their states and their part of the search on disk
    expanders   keep one simulator each; they take batches of states from owners and send parcels back to owners
    driver      this process: hands out references, waits at the barrier after each layer, writes one manifest last

Data goes from actor to actor. If an actor, a node or a result is lost, all actors are ended and begin again with what
the manifest says; only the layer that was being expanded is repeated.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import psutil

from efhorizon.build.divided import collect, divided
from efhorizon.build.explore import Budget, Outcome, Progress
from efhorizon.build.owner import Committed, Owner
from efhorizon.build.parcels import Expanded, LayerExpander
from efhorizon.build.parts import Manifest, read_manifest, write_manifest
from efhorizon.build.search import Search
from efhorizon.engines.actors import Actor, ActorLostError, Actors, Reference
from efhorizon.engines.worker_process import WorkerError
from efhorizon.suites.simulator import Simulator

_BATCHES_AN_EXPANDER = 2  # one at work, one waiting
_SECONDS_A_BATCH = 0.2
_LARGEST_BATCH = 1024
_SECONDS_A_LOOK = 1.0
_MOST_LOSSES = 5  # in a row, without a layer in between
_SECONDS_AFTER_A_LOSS = 1.0
_KEPT = "what was committed is kept; run the same command to continue"


def explore_divided(
    search: Search,
    horizon: int,
    make_simulator: Callable[[], Simulator],
    actors: Actors,
    *,
    num_workers: int = 1,
    num_owners: int | None = None,
    budget: Budget | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_message: Callable[[str], None] = lambda message: None,
) -> Outcome:
    """Expand every state at depth below the horizon on a cluster; continues where the search stopped."""
    run = _Run(search, horizon, make_simulator, actors, num_workers, num_owners, budget or Budget())
    try:
        stopped_by = run.to_end(on_progress, on_message)
        run.end()
    finally:
        run.end()
    collect(search, on_message)
    return Outcome(run.progress(), stopped_by)


@dataclass
class _Crew:
    """The actors of a search, and how many rows each owner has to expand."""

    owners: list[Actor]
    expanders: list[Actor]
    memory: dict[int, int] = field(default_factory=dict)  # bytes, by place; expanders after owners


@dataclass
class _Sent:
    """A batch that is on its way."""

    owner: int
    expander: int
    num_states: int
    acknowledgements: set[Reference] = field(default_factory=set)


class _SpentError(Exception):
    """A budget is spent: stop at the last manifest."""


class _Run:
    """One call to `explore_divided`."""

    def __init__(
        self,
        search: Search,
        horizon: int,
        make_simulator: Callable[[], Simulator],
        actors: Actors,
        num_workers: int,
        num_owners: int | None,
        budget: Budget,
    ) -> None:  # fmt: skip
        self._search, self._horizon, self._make_simulator = search, horizon, make_simulator
        self._actors, self._num_workers, self._budget = actors, num_workers, budget
        self._num_owners = num_owners or actors.num_nodes
        self._dictionaries = search.state_codec.dictionary, search.screen_codec.dictionary
        self._began, self._seconds_before = time.monotonic(), search.seconds
        self._expanded_before = search.num_expanded
        self._num_expanded = 0  # of the present layer
        self._layer_starts: list[int] = list(search.layer_starts)
        self._is_closed = search.is_closed
        self._rate = 0.0  # states a second and expander
        self._crew: _Crew | None = None

    @property
    def _is_done(self) -> bool:
        return self._is_closed or len(self._layer_starts) - 2 >= self._horizon

    def to_end(self, on_progress: Callable[[Progress], None], on_message: Callable[[str], None]) -> str | None:
        """Layer by layer; the budget that stopped it, or None."""
        manifest = read_manifest(self._search.folder)
        if manifest is None and self._is_done:
            return None
        losses = 0
        while True:
            try:
                if manifest is None:
                    manifest = self._divided_search()
                self._layer_starts, self._is_closed = list(manifest.layer_starts), manifest.is_closed
                if self._is_done:
                    return None
                if self._crew is None:
                    self._crew = self._started(manifest)
                manifest = self._layer(self._crew, manifest, on_progress)
                losses = 0
                on_progress(self.progress())
                self._check_budget()
            except _SpentError as spent:
                return str(spent)
            except ActorLostError as lost:
                losses += 1
                self.end()
                if losses == _MOST_LOSSES:
                    raise WorkerError(
                        f"the cluster lost workers {losses} times in one layer ({lost}); {_KEPT}"
                    ) from None
                on_message(f"lost a worker or a node ({lost}); going back to layer {len(self._layer_starts) - 1}")
                time.sleep(_SECONDS_AFTER_A_LOSS)

    def progress(self) -> Progress:
        starts = self._layer_starts
        whole = starts[-1] if self._is_closed else starts[-2]
        num_expanded = whole + self._num_expanded
        memory = 0 if self._crew is None else sum(self._crew.memory.values())
        return Progress(
            num_actions=self._search.num_actions,
            depth=max(0, len(starts) - 2),
            num_states=starts[-1],
            num_expanded=num_expanded,
            num_pairs=max(0, num_expanded - self._expanded_before) * self._search.num_actions,
            seconds=time.monotonic() - self._began,
            memory=psutil.Process().memory_info().rss + memory,
            layer_starts=tuple(starts),
        )

    def end(self) -> None:
        """End all actors; what they have not committed is gone."""
        if self._crew is not None:
            self._actors.end([*self._crew.owners, *self._crew.expanders])
        self._crew, self._num_expanded = None, 0

    # --- beginning

    def _divided_search(self) -> Manifest:
        """Divide the search, whose last whole layer is to be expanded, among owners."""
        starts = self._search.layer_starts
        owners = [self._owner(place, self._num_owners, None) for place in range(self._num_owners)]
        try:
            for place, states in divided(self._search, self._num_owners):
                self._actors.get(self._actors.call(owners[place], Owner.adopt, states))
            bases = [self._actors.call(owner, Owner.close_base, starts[-2]) for owner in owners]
            committed: list[Committed] = [self._actors.get(base) for base in bases]
        finally:
            self._actors.end(owners)
        manifest = Manifest(
            self._num_owners, list(starts), len(starts), False, self._search.seconds, [one.record for one in committed]
        )
        write_manifest(self._search.folder, manifest)
        return manifest

    def _owner(self, place: int, num_owners: int, manifest: Manifest | None) -> Actor:
        record = None if manifest is None else manifest.parts[place]
        make = partial(
            Owner, self._search.folder.absolute(), place, self._dictionaries, self._search.num_actions, record
        )
        return self._actors.make(make)

    def _started(self, manifest: Manifest) -> _Crew:
        owners = [self._owner(place, manifest.num_owners, manifest) for place in range(manifest.num_owners)]
        make = partial(LayerExpander, self._make_simulator, self._dictionaries, manifest.num_owners, self._actors.put)
        cores = self._actors.cores_for(self._num_workers)
        crew = _Crew(owners, [self._actors.make(make, cores) for _ in range(self._num_workers)])
        try:
            self._actors.check_alive([*crew.owners, *crew.expanders])
        except BaseException:
            self._actors.end([*crew.owners, *crew.expanders])
            raise
        return crew

    # --- a layer

    def _layer(self, crew: _Crew, manifest: Manifest, on_progress: Callable[[Progress], None]) -> Manifest:
        """Expand the states of the last layer; the manifest with what was found, which is on disk."""
        actors = self._actors
        _Expansion(self, crew, [tuple(record.state_rows[-2:]) for record in manifest.parts]).to_end(on_progress)
        firsts = [actors.call(owner, Owner.first_pairs) for owner in crew.owners]
        commits = [actors.call(owner, Owner.commit, manifest.num_states, *firsts) for owner in crew.owners]
        committed: list[Committed] = [actors.get(commit) for commit in commits]
        crew.memory.update((place, one.memory) for place, one in enumerate(committed))
        num_states = sum(one.record.state_rows[-1] - one.record.state_rows[0] for one in committed)
        num_states += sum(one.record.state_rows[0] for one in committed)
        is_closed = num_states == manifest.num_states
        following = Manifest(
            manifest.num_owners,
            manifest.layer_starts if is_closed else [*manifest.layer_starts, num_states],
            manifest.base_layers,
            is_closed,
            self._seconds_before + time.monotonic() - self._began,
            [one.record for one in committed],
        )
        write_manifest(self._search.folder, following)
        self._num_expanded = 0
        self._layer_starts, self._is_closed = list(following.layer_starts), is_closed
        return following

    def batch_size(self, left: int) -> int:
        """States that keep an expander busy for a while; less near the end, so that all end together."""
        share = -(-left // (2 * self._num_workers))
        return int(np.clip(min(self._rate * _SECONDS_A_BATCH, share), 1, _LARGEST_BATCH))

    def note_expanded(self, crew: _Crew, sent: _Sent, expanded: Expanded, seconds: float) -> None:
        self._num_expanded += expanded.num_states
        crew.memory[len(crew.owners) + sent.expander] = expanded.memory
        self._rate = self._num_expanded / max(seconds, 1e-3) / self._num_workers
        self._check_budget()

    def _check_budget(self) -> None:
        budget, progress = self._budget, self.progress()
        if budget.max_states is not None and progress.num_states >= budget.max_states and not self._is_done:
            raise _SpentError(f"--max-states {budget.max_states:,}")
        if budget.max_minutes is not None and progress.seconds >= 60 * budget.max_minutes:
            raise _SpentError(f"--max-minutes {budget.max_minutes:g}")
        if budget.max_memory is not None and progress.memory >= budget.max_memory:
            raise _SpentError(f"--max-memory {budget.max_memory / 2**20:,.0f} MB")

    @property
    def actors(self) -> Actors:
        return self._actors


class _Expansion:
    """The batches of one layer: taken from the owners in turn, never more at once than expanders can soon do."""

    def __init__(self, run: _Run, crew: _Crew, rows: list[tuple[Any, ...]]) -> None:
        self._run, self._crew, self._actors = run, crew, run.actors
        self._rows: deque[tuple[int, int, int]] = deque(
            (owner, first, stop) for owner, (first, stop) in enumerate(rows)
        )
        self._left = sum(stop - first for _, first, stop in self._rows)
        self._busy = [0] * len(crew.expanders)
        self._expanding: dict[Reference, _Sent] = {}
        self._delivering: dict[Reference, _Sent] = {}  # by acknowledgement

    def to_end(self, on_progress: Callable[[Progress], None]) -> None:
        began = time.monotonic()
        while True:
            self._send()
            waiting = [*self._expanding, *self._delivering]
            if not waiting:
                return
            for reference in self._actors.wait(waiting, _SECONDS_A_LOOK):
                if reference in self._delivering:
                    self._actors.get(reference)
                    del self._delivering[reference]
                    continue
                sent = self._expanding.pop(reference)
                expanded: Expanded = self._actors.get(reference)
                self._busy[sent.expander] -= 1
                self._deliver(sent, expanded)
                self._run.note_expanded(self._crew, sent, expanded, time.monotonic() - began)
            on_progress(self._run.progress())

    def _send(self) -> None:
        """Hand out batches while an expander has room and deliveries keep up."""
        most_deliveries = 2 * (len(self._crew.owners) + 1) * len(self._crew.expanders)
        while self._rows and min(self._busy) < _BATCHES_AN_EXPANDER and len(self._delivering) <= most_deliveries:
            owner, first, stop = self._rows.popleft()
            if first == stop:
                continue
            size = min(self._run.batch_size(self._left), stop - first)
            expander = min(range(len(self._busy)), key=self._busy.__getitem__)
            batch = self._actors.call(self._crew.owners[owner], Owner.batch, first, first + size)
            reference = self._actors.call(self._crew.expanders[expander], LayerExpander.expand, batch)
            self._expanding[reference] = _Sent(owner, expander, size)
            self._busy[expander] += 1
            self._left -= size
            self._rows.append((owner, first + size, stop))

    def _deliver(self, sent: _Sent, expanded: Expanded) -> None:
        owners = self._crew.owners
        acknowledged = [self._actors.call(owners[sent.owner], Owner.earn, expanded.rewards)]
        for owner, parcel in zip(owners, expanded.parcels, strict=True):
            acknowledged.append(self._actors.call(owner, Owner.receive, parcel))
        self._delivering.update((reference, sent) for reference in acknowledged)
