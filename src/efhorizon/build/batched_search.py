"""A search with a batched simulator: the same states, numbers and transitions as any other, without Python per state.

    config.json      what is searched
    commit.json      how much of each file counts
    rows             uint8 [S, n], the states
    look_rows        uint8 [L, m], what tells screens apart, where that is less than a state
    look_states      int64 [L], the first state that shows each screen
    state_looks      int32 or int64 [S]
    transitions      int32 or int64 [expanded, A]
    reward_codes     uint8 [expanded, A], places among the rewards of commit.json

While one thread numbers the successors of a batch, another expands the next one. What is not needed at random stays on
disk: the states and the index take memory, transitions, rewards and screens do not.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
from msgspec import Meta
from numpy.typing import NDArray

from efhorizon.build.append_file import AppendFile
from efhorizon.build.explore import Budget, Outcome, Progress
from efhorizon.build.search_folder import SearchFolder
from efhorizon.build.search_records import COMMIT, CONFIG, Entry, Seconds, damaged
from efhorizon.build.state_rows import MOST_NARROW, RowFile, RowIndex
from efhorizon.compiled import compiled_with
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.decode import Count, Finite, Positive, Record, encoded_record, read_object, record_of
from efhorizon.suites.batched import BatchedSimulator, Successors, joined_snapshots

_MOST_REWARDS = 256
_BATCH_BYTES = 1 << 23  # of successors
_SECONDS_A_COMMIT = 20.0
_SECONDS_A_REPORT = 0.5
_BLOCK = 1 << 24  # bytes
_NUMBERS, _WIDE = ("transitions", "state_looks"), "-wide"
_WHAT = "the record of a search"


class BatchedConfig(Record, frozen=True):
    """What is searched."""

    provenance: dict[str, Any]
    num_actions: Positive
    state_bytes: Positive
    look_bytes: Count  # 0: every state has a screen of its own


class BatchedCommit(Record, frozen=True):
    """How far a search has come."""

    layer_starts: Annotated[list[Count], Meta(min_length=2)]
    num_states: Positive
    num_looks: Count
    num_expanded: Count
    number_bytes: Positive  # of a state's number in `transitions` and `state_looks`
    rewards: list[Finite]
    seconds: Seconds
    files: dict[str, Entry]


class BatchedSearch:
    """An open search; it is read like `Search`."""

    def __init__(
        self,
        folder: Path,
        simulator: BatchedSimulator,
        provenance: dict[str, Any],
        *,
        most_narrow: int = MOST_NARROW,
    ) -> None:
        self.folder, self.simulator, self.num_actions = folder, simulator, simulator.num_actions
        looks = simulator.looks(simulator.start[None])
        self.config = BatchedConfig(
            provenance, simulator.num_actions, len(simulator.start), 0 if looks is None else looks.shape[1]
        )
        self._most_narrow = most_narrow
        with ExitStack() as stack:
            self._folder = SearchFolder(folder)
            stack.callback(self._folder.close)
            commit = self._read_commit()
            if commit is None:
                self._folder.replace(CONFIG, encoded_record(self.config))
            self._open(commit, stack)
            self._close = stack.pop_all().close
        if commit is None:
            self._add(simulator.start[None])
            self.commit()

    def _read_commit(self) -> BatchedCommit | None:
        if not (self.folder / COMMIT).exists():
            return None
        try:
            config = record_of(read_object(self.folder / CONFIG, _WHAT), BatchedConfig, CONFIG)
            commit = record_of(read_object(self.folder / COMMIT, _WHAT), BatchedCommit, COMMIT)
        except StoreError as error:
            raise damaged(self.folder / COMMIT, str(error)) from None
        if encoded_record(config) != encoded_record(self.config):
            raise damaged(self.folder / CONFIG, "of another simulator")
        return commit

    def _open(self, commit: BatchedCommit | None, stack: ExitStack) -> None:
        self.layer_starts = [0, 1] if commit is None else list(commit.layer_starts)
        self.num_expanded = 0 if commit is None else commit.num_expanded
        self.seconds = 0.0 if commit is None else commit.seconds
        self.reward_values = [] if commit is None else [float(value) for value in commit.rewards]
        self.number_bytes = 4 if commit is None else commit.number_bytes
        self._stack = stack.enter_context(ExitStack())
        self._files = {}
        for name in (*_NUMBERS, "reward_codes", "look_states"):
            entry = (0, 0) if commit is None else commit.files[name]
            wide = _WIDE if name in _NUMBERS and self.number_bytes == 8 else ""
            self._files[name] = self._file(name + wide, *entry)
        self._rows = RowFile(self.folder / "rows", self.config.state_bytes, 0 if commit is None else commit.num_states)
        stack.callback(self._rows.close)
        self._rows_checked, self._rows_checksum = self._rows.rows, 0
        if commit is not None:
            self._rows_checksum = zlib.crc32(self._rows.array[: self._rows.rows].data)
            if (self._rows.rows * self._rows.width, self._rows_checksum) != tuple(commit.files["rows"]):
                raise damaged(self._rows.path, "not what was written")
        self._index = RowIndex(self._rows, most_narrow=self._most_narrow)
        self._look_rows: RowFile | None = None
        if self.config.look_bytes:
            self._look_rows = RowFile(
                self.folder / "look_rows", self.config.look_bytes, 0 if commit is None else commit.num_looks
            )
            stack.callback(self._look_rows.close)
            self._look_index = RowIndex(self._look_rows, most_narrow=self._most_narrow)

    def _file(self, name: str, size: int = 0, checksum: int = 0, *, flags: int = 0) -> AppendFile:
        file = self._stack.enter_context(self._folder.open(name, os.O_CREAT | flags))
        return AppendFile(self.folder / name, file, size, checksum)

    def close(self) -> None:
        self._close()

    @property
    def num_states(self) -> int:
        return self._rows.rows

    @property
    def num_looks(self) -> int:
        """Screens, where there are any."""
        return self.num_states if self._look_rows is None else self._look_rows.rows

    @property
    def is_closed(self) -> bool:
        return self.num_expanded == self.num_states

    @property
    def complete_horizon(self) -> int:
        return len(self.layer_starts) - 2

    @property
    def index_bytes(self) -> int:
        return self._index.nbytes + (self._look_index.nbytes if self._look_rows is not None else 0)

    def num_states_within(self, horizon: int) -> int:
        return self.layer_starts[horizon] if horizon < len(self.layer_starts) else self.num_states

    @property
    def number_type(self) -> np.dtype[Any]:
        return np.dtype(np.int32 if self.number_bytes == 4 else np.int64)

    def rows(self, start: int, stop: int) -> NDArray[np.uint8]:
        return self._rows.array[start:stop]

    def state(self, number: int) -> bytes:
        return self.simulator.snapshot(self._rows.array[number])

    def joined_states(self, numbers: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Some states as snapshots one after the other, and the length of each."""
        return joined_snapshots(self.simulator, self._rows.array[numbers])

    def screens(self, looks: NDArray[Any]) -> NDArray[np.uint8]:
        """Screens [n, H, W, C] by their numbers."""
        if self._look_rows is not None and len(looks):
            file = self._files["look_states"]
            firsts = [int(np.frombuffer(file.read(8 * int(i), 8 * int(i) + 8), np.int64)[0]) for i in looks]
            looks = np.array(firsts)
        return self.simulator.screens(self._rows.array[looks])

    def mapped(self, name: str) -> NDArray[Any]:
        """A file of this search, mapped into memory: `transitions` [n, A], `reward_codes` [n, A], `state_looks` [n]."""
        file = self._files[name]
        file.flush()
        dtype = np.dtype(np.uint8) if name == "reward_codes" else self.number_type
        count = file.size // dtype.itemsize
        if count == 0:
            return np.empty((0, self.num_actions) if name != "state_looks" else 0, dtype)
        array: NDArray[Any] = np.memmap(file.path, dtype, "r", shape=(count,))
        return array if name == "state_looks" else array.reshape(-1, self.num_actions)

    def check_files(self) -> None:
        """Compare what was committed with its checksums."""
        for file in self._files.values():
            if file.size:
                file.read(0, 1)

    def add(self, successors: Successors, numbers: NDArray[np.int64], codes: NDArray[np.uint8]) -> None:
        """Append the rows of the next states; they must come in the order of their numbers."""
        batch = len(successors.rewards)
        self._code(successors.rewards, codes)
        flat = successors.states.reshape(-1, self.config.state_bytes)
        before = self.num_states
        self._index.numbers(flat, successors.ended.reshape(-1), numbers)
        self._widen_if_needed()
        self._files["transitions"].append(numbers.astype(self.number_type))
        self._files["reward_codes"].append(codes)
        self._note_looks(before)
        self.num_expanded += batch
        if self.num_expanded == self.layer_starts[-1] and self.num_states > self.layer_starts[-1]:
            self.layer_starts.append(self.num_states)

    def commit(self) -> None:
        """Make everything so far count."""
        for file in self._files.values():
            file.flush()
        self._rows.flush()
        if self._look_rows is not None:
            self._look_rows.flush()
        files = {name: (file.size, file.checksum) for name, file in self._files.items()}
        new = self._rows.array[self._rows_checked : self._rows.rows]
        self._rows_checksum = zlib.crc32(new.data, self._rows_checksum)
        self._rows_checked = self._rows.rows
        files["rows"] = (self._rows.rows * self._rows.width, self._rows_checksum)
        num_looks = 0 if self._look_rows is None else self._look_rows.rows
        commit = BatchedCommit(
            self.layer_starts, self.num_states, num_looks, self.num_expanded, self.number_bytes,
            self.reward_values, self.seconds, files,
        )  # fmt: skip
        self._folder.replace(COMMIT, encoded_record(commit))
        if self.number_bytes == 8:
            for name in _NUMBERS:
                (self.folder / name).unlink(missing_ok=True)

    def _add(self, states: NDArray[np.uint8]) -> None:
        before = self.num_states
        numbers = np.empty(len(states), np.int64)
        self._index.numbers(states, np.zeros(len(states), bool), numbers)
        self._note_looks(before)

    def _note_looks(self, before: int) -> None:
        """Number the screens of the states that are new."""
        if self._look_rows is None or before == self.num_states:
            return
        states = self._rows.array[before : self.num_states]
        looks = self.simulator.looks(states)
        assert looks is not None
        known, numbers = self._look_rows.rows, np.empty(len(states), np.int64)
        self._look_index.numbers(looks, np.zeros(len(looks), bool), numbers)
        if self._look_rows.rows > known:
            new, firsts = np.unique(numbers, return_index=True)
            self._files["look_states"].append(before + firsts[new >= known].astype(np.int64))
        self._files["state_looks"].append(numbers.astype(self.number_type))

    def _code(self, rewards: NDArray[np.float64], codes: NDArray[np.uint8]) -> None:
        values = np.zeros(_MOST_REWARDS)
        values[: len(self.reward_values)] = self.reward_values
        count = _encode(rewards.reshape(-1), values, len(self.reward_values), codes)
        if count < 0:
            raise EfhorizonError(f"more than {_MOST_REWARDS} different rewards, too many for a batched search")
        self.reward_values = values[:count].tolist()

    def _widen_if_needed(self) -> None:
        """Rewrite what is on disk with 64-bit numbers once 32 bits are too few."""
        if self.number_bytes == 8 or self.num_states <= self._most_narrow:
            return
        for name in _NUMBERS:
            narrow = self._files[name]
            wide = self._file(f"{name}{_WIDE}", flags=os.O_TRUNC)
            for start in range(0, narrow.size, _BLOCK):
                block = np.frombuffer(narrow.read(start, min(start + _BLOCK, narrow.size)), np.int32)
                wide.append(block.astype(np.int64))
            self._files[name] = wide
        self.number_bytes = 8


@compiled_with(nogil=True)
def _encode(rewards: Any, values: Any, count: int, codes: Any) -> int:
    last = 0
    for i in range(len(rewards)):
        reward = rewards[i] + 0.0  # -0.0 becomes 0.0
        if last >= count or values[last] != reward:
            last = 0
            while last < count and values[last] != reward:
                last += 1
            if last == count:
                if count == len(values):
                    return -1
                values[count] = reward
                count += 1
        codes[i] = last
    return count


def explore_batched(
    search: BatchedSearch,
    horizon: int,
    *,
    budget: Budget | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Expand every state at depth below the horizon; continues where the search stopped."""
    limits = budget or Budget()
    began, expanded_before, seconds_before = time.monotonic(), search.num_expanded, search.seconds
    process = psutil.Process()

    def progress() -> Progress:
        return Progress(
            search.num_actions, max(0, len(search.layer_starts) - 2), search.num_states, search.num_expanded,
            (search.num_expanded - expanded_before) * search.num_actions, time.monotonic() - began,
            process.memory_info().rss, tuple(search.layer_starts),
        )  # fmt: skip

    stopped_by: str | None = None
    last_commit = last_report = began
    for _ in _batches(search, horizon):
        now = time.monotonic()
        if now - last_report > _SECONDS_A_REPORT:
            last_report = now
            found = progress()
            on_progress(found)
            stopped_by = _spent(limits, found)
            if stopped_by is not None:
                break
        if now - last_commit > _SECONDS_A_COMMIT:
            search.seconds = seconds_before + now - began
            search.commit()
            last_commit = time.monotonic()
    search.seconds = seconds_before + time.monotonic() - began
    search.commit()
    on_progress(progress())
    return Outcome(progress(), stopped_by)


def _batches(search: BatchedSearch, horizon: int) -> Iterator[None]:
    """Expand batch after batch; the next one is expanded while this one is numbered."""
    size = max(1, _BATCH_BYTES // (search.num_actions * search.config.state_bytes))
    actions, width = search.num_actions, search.config.state_bytes
    rooms = [Successors.empty(size, actions, width) for _ in range(2)]
    numbers, codes = np.empty(size * actions, np.int64), np.empty(size * actions, np.uint8)

    def expanded(start: int, stop: int, room: Successors) -> Successors:
        size = stop - start
        out = Successors(room.states[:size], room.rewards[:size], room.ended[:size])
        search.simulator.expand(search.rows(start, stop), out)
        return out

    with ThreadPoolExecutor(1) as other:
        sent = search.num_expanded
        waiting: Future[Successors] | None = None
        turn = 0
        while True:
            following: Future[Successors] | None = None
            stop = min(sent + size, _reachable(search, sent, horizon))
            if stop > sent:
                following = other.submit(expanded, sent, stop, rooms[turn])
                sent, turn = stop, 1 - turn
            if waiting is not None:
                out = waiting.result()
                pairs = out.rewards.size
                search.add(out, numbers[:pairs], codes[:pairs])
                yield
            elif following is None:
                return
            waiting = following


def _reachable(search: BatchedSearch, sent: int, horizon: int) -> int:
    """States that may be expanded now: neither beyond the horizon nor across the end of a layer."""
    stop = search.num_states_within(horizon)
    return min(stop, search.layer_starts[-1]) if sent < search.layer_starts[-1] else stop


def _spent(budget: Budget, progress: Progress) -> str | None:
    if budget.max_states is not None and progress.num_states >= budget.max_states:
        return f"--max-states {budget.max_states:,}"
    if budget.max_minutes is not None and progress.seconds >= 60 * budget.max_minutes:
        return f"--max-minutes {budget.max_minutes:g}"
    if budget.max_memory is not None and progress.memory >= budget.max_memory:
        return f"--max-memory {budget.max_memory / 2**20:,.0f} MB"
    return None
