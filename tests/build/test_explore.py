"""The search: counts, layers, cuts, resumption, budgets, worker counts, failures."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_mdps import FailingSimulator, WalkSimulator

from efhorizon import EfhorizonError, StoreError, TabularMDP
from efhorizon.build.explore import Budget, Outcome, explore, opened_search
from efhorizon.build.keys import KeyIndex
from efhorizon.build.search import Search
from efhorizon.build.table import table
from efhorizon.suites.simulator import Simulator

walk = functools.partial(WalkSimulator, 7, True)
timeless_walk = functools.partial(WalkSimulator, 7, False)


def searched(folder: Path, make: Callable[[], Simulator], horizon: int, **options: Any) -> tuple[Search, Outcome]:
    search = opened_search(folder, make(), {})
    return search, explore(search, horizon, make, **options)


def built(folder: Path, make: Callable[[], Simulator], horizon: int, **options: Any) -> TabularMDP:
    search, _ = searched(folder, make, horizon, **options)
    mdp = table(search, horizon, rule="none")
    search.close()
    return mdp


def test_the_walk_is_found_whole(tmp_path: Path) -> None:
    search, outcome = searched(tmp_path, walk, 5)
    # at time t the walker stands on one of 0 .. t, and only one of them can be at the end
    assert np.diff(search.layer_starts).tolist() == [1, 2, 3, 4, 5, 6]
    assert outcome.stopped_by is None
    assert outcome.progress.num_pairs == 3 * (1 + 2 + 3 + 4 + 5)
    assert search.num_screens == 6
    mdp = table(search, 5, rule="none")
    assert mdp.num_states == 15
    assert mdp.num_screens == 5
    expected = WalkSimulator()
    assert mdp.states is not None
    for state in range(15):
        expected.set_state(mdp.states[state])
        assert (mdp.screen(state) == expected.screen()).all()
        for action in range(3):
            expected.set_state(mdp.states[state])
            reward, ended = expected.step(action)
            following = int(mdp.transitions[state, action])
            assert mdp.rewards[state, action] == reward
            if following >= 0:
                assert mdp.states[following] == expected.get_state()
            else:
                assert ended or mdp.depths()[state] == 4
    search.close()


def test_numbers_are_breadth_first_whatever_the_number_of_workers(tmp_path: Path) -> None:
    one = built(tmp_path / "one", walk, 12, num_workers=1)
    three = built(tmp_path / "three", walk, 12, num_workers=3)
    assert (one.transitions == three.transitions).all()
    assert one.canonical_order().tolist() == list(range(one.num_states))


def test_a_search_contains_every_shorter_horizon(tmp_path: Path) -> None:
    built(tmp_path / "long", walk, 10)
    search = Search(tmp_path / "long")
    for horizon in range(1, 10):
        cut = table(search, horizon, rule="none")
        assert cut.fingerprint() == built(tmp_path / str(horizon), walk, horizon).fingerprint()
    search.close()


def test_a_longer_horizon_goes_on_from_the_frontier(tmp_path: Path) -> None:
    built(tmp_path / "steps", walk, 4)
    search, outcome = searched(tmp_path / "steps", walk, 9)
    assert outcome.progress.num_pairs == 3 * (search.layer_starts[9] - search.layer_starts[4])
    resumed = table(search, 9, rule="none").fingerprint()
    search.close()
    assert resumed == built(tmp_path / "whole", walk, 9).fingerprint()
    search, outcome = searched(tmp_path / "steps", walk, 6)
    assert outcome.progress.num_pairs == 0
    search.close()


def test_a_closed_graph_is_complete_for_every_horizon(tmp_path: Path) -> None:
    search, outcome = searched(tmp_path, timeless_walk, 100)
    assert search.is_closed
    assert outcome.stopped_by is None
    assert search.num_states == 6
    assert table(search, 100, rule="none").num_states == 6
    assert table(search, 3, rule="none").num_states == 3  # 0, 1 and 2 are where an action can be taken
    search.close()


@pytest.mark.parametrize("budget", [Budget(max_states=20), Budget(max_minutes=1e-9), Budget(max_memory=1)])
def test_budgets_stop_and_a_later_call_goes_on(tmp_path: Path, budget: Budget) -> None:
    search, outcome = searched(tmp_path / "budget", walk, 200, budget=budget)
    assert outcome.stopped_by is not None
    assert search.complete_horizon < 200
    expanded = search.num_expanded
    search.close()
    search, outcome = searched(tmp_path / "budget", walk, 200)
    assert outcome.stopped_by is None
    assert outcome.progress.num_pairs == 3 * (search.layer_starts[200] - expanded)
    assert table(search, 200, rule="none").fingerprint() == built(tmp_path / "whole", walk, 200).fingerprint()
    search.close()


def test_what_was_not_committed_is_cut_off(tmp_path: Path) -> None:
    whole = built(tmp_path / "whole", walk, 9).fingerprint()
    built(tmp_path / "cut", walk, 5)
    for name in ("transitions", "states", "state_keys", "screens"):
        with (tmp_path / "cut" / name).open("ab") as file:
            file.write(b"half a record")
    assert built(tmp_path / "cut", walk, 9).fingerprint() == whole


@pytest.mark.parametrize("name", ["transitions", "rewards", "state_keys", "state_screens", "screen_keys"])
def test_a_damaged_search_is_noticed(tmp_path: Path, name: str) -> None:
    built(tmp_path, walk, 5)
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StoreError, match="not what was written"):
        built(tmp_path, walk, 5)
    (tmp_path / name).write_bytes(content[:-1])
    with pytest.raises(StoreError, match="were committed"):
        built(tmp_path, walk, 5)


def test_a_damaged_commit_is_noticed(tmp_path: Path) -> None:
    built(tmp_path, walk, 5)
    (tmp_path / "commit.json").write_text("{")
    with pytest.raises(StoreError, match="not the record of a search"):
        Search(tmp_path)


def test_two_builds_do_not_share_a_search(tmp_path: Path) -> None:
    search, _ = searched(tmp_path, walk, 3)
    with pytest.raises(StoreError, match="another build"):
        Search(tmp_path)
    search.close()
    Search(tmp_path).close()


def test_an_environment_that_fails_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EfhorizonError, match="two is out of bounds") as error:
        searched(tmp_path, FailingSimulator, 5)
    assert "\n" not in str(error.value)


def test_commit_file_is_small(tmp_path: Path) -> None:
    built(tmp_path, walk, 50)
    assert set(json.loads((tmp_path / "commit.json").read_text())) == {
        "layer_starts",
        "num_expanded",
        "seconds",
        "files",
        "checksum",
    }


def test_key_index_numbers_keys_as_they_come(rng: np.random.Generator) -> None:
    keys = rng.integers(2**64, size=(50_000, 2), dtype=np.uint64)
    keys[1::2, 0] = keys[::2, 0]  # half of each key is not enough
    index = KeyIndex(keys[:10])
    for start in range(0, 50_000, 777):
        block = keys[start : start + 777]
        assert index.numbers(block).tolist() == list(range(start, start + len(block)))
    assert len(index) == 50_000
    order = rng.permutation(50_000)
    assert (index.numbers(keys[order]) == order).all()
    assert len(index) == 50_000
