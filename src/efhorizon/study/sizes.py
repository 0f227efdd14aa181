"""What is known about an environment's number of states without searching it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from efhorizon import catalog
from efhorizon.build.search_records import COMMIT, read_commit
from efhorizon.build.target import Target
from efhorizon.errors import StoreError
from efhorizon.study.subjects import StoredTable, Subject
from efhorizon.suites import registry

Source = Literal["search", "list", "survey", "table", "nothing"]


@dataclass(frozen=True)
class Size:
    """Raw states at which an action can be taken: at least `low`, at most `high` (None: unknown)."""

    low: int
    high: int | None
    source: Source  # a search on disk, the list of gridworlds, the survey of games, the table itself

    @property
    def is_known(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True)
class SearchState:
    """How far a search on disk has come."""

    num_states: int
    num_expanded: int
    layer_starts: tuple[int, ...]
    seconds: float

    def states_within(self, horizon: int) -> int | None:
        """States at depth below the horizon, if all of them have been found."""
        if horizon < len(self.layer_starts):
            return self.layer_starts[horizon]
        return self.num_states if self.num_expanded == self.num_states else None


def known_size(target: Subject, tables: Path) -> Size:
    """The number of states of a target, from its search if there is one, or from what was published."""
    if isinstance(target, StoredTable):
        return Size(target.num_states, target.num_states, "table")
    search = search_state(target, tables)
    if search is not None:
        exact = search.states_within(target.horizon)
        if exact is not None:
            return Size(exact, exact, "search")
    entry = catalog.find(str(target.metadata.get("catalogue_name")))
    survey = None if entry is None else registry.suite(entry.suite).survey(entry)
    found = 0 if search is None else search.num_states
    if survey is not None:
        num_states, horizon = survey
        if horizon is None:
            return Size(num_states, num_states, "list")
        if target.horizon <= horizon:
            return Size(max(found, min(target.horizon, num_states)), num_states, "survey")
        return Size(max(found, num_states), None, "survey")
    return Size(max(1, found), None, "search" if found else "nothing")


def search_state(target: Target, tables: Path) -> SearchState | None:
    """The last commit of the target's search; of the newest one, where the simulator or its code has changed."""
    pattern = re.compile(re.escape(target.search_name) + r"-[0-9a-f]+")
    folders = tables / "searches"
    commits = [
        folder / COMMIT
        for folder in (folders.iterdir() if folders.is_dir() else ())
        if pattern.fullmatch(folder.name) and (folder / COMMIT).is_file()
    ]
    if not commits:
        return None
    try:
        commit = read_commit(max(commits, key=lambda path: path.stat().st_mtime).parent)
    except (OSError, StoreError):
        return None  # a forecast need not know; the build will say what is wrong with it
    if commit is None:
        return None
    return SearchState(commit.num_states, commit.num_expanded, tuple(commit.layer_starts), commit.seconds)
