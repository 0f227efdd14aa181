"""Searches with batched simulators: closed forms, the same tables as other searches, limits."""

from __future__ import annotations

import itertools
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from efhorizon.build.batched_search import BatchedSearch, explore_batched
from efhorizon.build.consolidate import Rule
from efhorizon.build.explore import Budget
from efhorizon.build.large_table import large_table
from efhorizon.build.pipeline import Options, build
from efhorizon.build.state_rows import RowFile, RowIndex
from efhorizon.build.target import catalogue_target
from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.io.tables import load, save
from efhorizon.suites.batched import joined_snapshots
from efhorizon.suites.lattice import is_cliff, numbers, shape_of
from efhorizon.suites.lattice_batched import BatchedLattice
from efhorizon.suites.minigrid import MINIGRID

GAME, SIZE = "lattice-3x6", 6**3 - 1
ALL = 10**6


def searched(folder: Path, game: str = GAME, horizon: int = ALL, **options: Any) -> BatchedSearch:
    simulator = BatchedLattice(*shape_of(game), is_cliff=is_cliff(game))
    search = BatchedSearch(folder, simulator, {}, **options)
    explore_batched(search, horizon)
    return search


def check_closed_form(search: BatchedSearch, game: str) -> None:
    """Every state, number and transition of a lattice."""
    counters, size = shape_of(game)
    states = search.rows(0, search.num_states)
    assert search.num_states == size**counters - 1
    assert np.array_equal(numbers(game, states), np.arange(len(states)))
    transitions, codes = search.mapped("transitions"), search.mapped("reward_codes")
    for action in range(counters):
        following = states.astype(int)
        following[:, action] = np.minimum(following[:, action] + 1, size - 1)
        falls = is_cliff(game) & (states[:, action] == size - 1)
        ends = (following.sum(axis=1) == counters * (size - 1)) & ~falls
        expected = np.where(ends | falls, -1, numbers(game, following))
        assert np.array_equal(transitions[:, action], expected)
        assert np.array_equal(np.array(search.reward_values)[codes[:, action]], ends.astype(float))


@pytest.mark.parametrize(
    "game", ["lattice-1x2", "lattice-1x256", "lattice-3x6", "lattice-5x4", "lattice-9x2", "cliff-3x6"]
)
def test_lattices_are_what_their_closed_form_says(game: str, tmp_path: Path) -> None:
    search = searched(tmp_path, game)
    check_closed_form(search, game)
    assert search.is_closed
    search.close()


def test_a_search_that_was_stopped_continues(tmp_path: Path) -> None:
    first = BatchedSearch(tmp_path, BatchedLattice(*shape_of(GAME)), {})
    explore_batched(first, 5)
    known = first.num_states
    assert first.complete_horizon == 5
    first.close()
    search = searched(tmp_path)
    assert search.num_states == SIZE > known
    check_closed_form(search, GAME)
    search.close()


def test_numbers_widen_when_32_bits_are_too_few(tmp_path: Path) -> None:
    """The limit is set low here: what changes at 2^31 states changes at 100."""
    first = BatchedSearch(tmp_path, BatchedLattice(*shape_of(GAME)), {}, most_narrow=100)
    explore_batched(first, 3)
    assert first.number_bytes == 4
    first.close()
    search = searched(tmp_path, most_narrow=100)
    assert search.number_bytes == 8
    assert search.mapped("transitions").dtype == np.int64
    check_closed_form(search, GAME)
    search.close()
    again = BatchedSearch(tmp_path, BatchedLattice(*shape_of(GAME)), {}, most_narrow=100)
    check_closed_form(again, GAME)
    assert not (tmp_path / "transitions").exists()
    narrow = searched(tmp_path / "narrow")
    for horizon in (4, ALL):
        one, other = large_table(again, min(horizon, 99)), large_table(narrow, min(horizon, 99))
        assert one.fingerprint() == other.fingerprint()


def test_rows_are_compared_not_their_hashes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, size=(5000, 9), dtype=np.uint8)
    rows = np.concatenate([rows, rows[rng.permutation(5000)]])
    file = RowFile(tmp_path / "rows", 9)
    index, found = RowIndex(file, most_narrow=2000), np.empty(len(rows), np.int64)
    for start in range(0, len(rows), 333):
        part = rows[start : start + 333]
        index.numbers(part, np.zeros(len(part), bool), found[start : start + 333])
    seen: dict[bytes, int] = {}
    assert found.tolist() == [seen.setdefault(row.tobytes(), len(seen)) for row in rows]


def test_tables_are_the_same_batched_or_not(tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    for name, horizon in (("MiniGrid-KeyCorridorS3R1-v0", 12), (GAME, 9)):
        made = [
            build(catalogue_target(name, horizon), Options(tmp_path / str(batched), verify_episodes=0, batched=batched))
            for batched in (True, False)
        ]
        tables = [one.mdp for one in made if one.mdp is not None]
        assert len({table.fingerprint() for table in tables}) == 1
        assert np.array_equal(tables[0].transitions, tables[1].transitions)
        assert tables[0].states is not None
        assert tables[1].states is not None
        assert [*map(bytes, tables[0].states)] == [*map(bytes, tables[1].states)]
        if name != GAME:
            assert tables[0].screens is not None
            assert np.array_equal(tables[0].screens[:], tables[1].screens[:])  # type: ignore[index]


def test_a_batched_table_is_verified_from_reset(tmp_path: Path) -> None:
    result = build(catalogue_target("lattice-2x5"), Options(tmp_path, batched=True))
    assert result.mdp is not None
    assert result.mdp.metadata["verification"]["exact"]
    assert result.mdp.num_states == 24


def test_a_cliff_is_the_same_batched_or_not(tmp_path: Path) -> None:
    made = [build(catalogue_target("cliff-2x5"), Options(tmp_path / str(b), batched=b)).mdp for b in (True, False)]
    assert made[0] is not None
    assert made[1] is not None
    assert made[0].fingerprint() == made[1].fingerprint()
    assert made[0].metadata["verification"]["exact"]
    assert made[0].metadata["returns"] == [0.0, 1.0]


def test_many_snapshots_are_those_of_each_state(tmp_path: Path) -> None:
    """Gridworlds have snapshots of different lengths: an object that is carried has no place."""
    pytest.importorskip("minigrid")
    result = build(catalogue_target("MiniGrid-DoorKey-5x5-v0"), Options(tmp_path, verify_episodes=0, batched=True))
    assert result.mdp is not None
    folder = next((tmp_path / "searches").iterdir())
    simulator = MINIGRID.batched({"env_id": "MiniGrid-DoorKey-5x5-v0", "shaping": None})
    assert simulator is not None
    rows = np.fromfile(folder / "rows", np.uint8)[: 200 * len(simulator.start)].reshape(200, -1)
    data, lengths = joined_snapshots(simulator, rows)
    each = [simulator.snapshot(row) for row in rows]
    assert data.tobytes() == b"".join(each)
    assert lengths.tolist() == [len(one) for one in each]
    assert len(set(lengths.tolist())) > 1


def test_rules_merge_the_same_states(tmp_path: Path) -> None:
    pytest.importorskip("minigrid")
    target = catalogue_target("MiniGrid-KeyCorridorS3R1-v0", 14)
    rules: tuple[Rule, ...] = ("paper", "coarsest", "none")
    for rule, ignore in itertools.product(rules, (True, False)):
        found = [
            build(
                target,
                Options(tmp_path / f"{batched}", verify_episodes=0, batched=batched, rule=rule, ignore_screens=ignore),
            ).mdp
            for batched in (True, False)
        ]
        assert found[0] is not None
        assert found[1] is not None
        assert found[0].fingerprint() == found[1].fingerprint()


def test_limits_are_one_clear_line(tmp_path: Path) -> None:
    search = searched(tmp_path / "s")
    with pytest.raises(
        EfhorizonError, match=r"^merging and verifying 215 states needs up to 0\.0 GB of memory, and 0\.0 GB may be"
    ):
        large_table(search, 50, max_memory=1000)
    with pytest.raises(StoreError, match="another build is working on this search"):
        BatchedSearch(tmp_path / "s", BatchedLattice(*shape_of(GAME)), {})
    search.close()
    stopped = BatchedSearch(tmp_path / "t", BatchedLattice(*shape_of("lattice-4x30")), {})
    assert explore_batched(stopped, ALL, budget=Budget(max_memory=1)).stopped_by in (None, "--max-memory 0 MB")
    with pytest.raises(EfhorizonError, match="there is no batched simulator of this environment"):
        build(catalogue_target("MiniGrid-MemoryS7-v0"), Options(tmp_path, batched=True))


def test_out_of_disk_is_one_clear_line(tmp_path: Path) -> None:
    search = BatchedSearch(tmp_path, BatchedLattice(*shape_of("lattice-4x16")), {})
    with full_disk(100_000):
        with pytest.raises(StoreError, match=r"cannot be written \(File too large\); what was committed is kept$"):
            explore_batched(search, ALL)
        search.close()
    again = searched(tmp_path, "lattice-4x16")
    check_closed_form(again, "lattice-4x16")
    again.close()


def full_disk(limit: int) -> AbstractContextManager[None]:
    """No file may become larger than this."""

    @contextmanager
    def limited() -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited()


def test_out_of_disk_while_merging_or_storing_keeps_the_search(tmp_path: Path) -> None:
    """A horizon below the search's makes merging write a file of its own; a full disk must not kill the process."""
    game, horizon = "lattice-4x16", 40
    searched(tmp_path / "s", game).close()
    search = BatchedSearch(tmp_path / "s", BatchedLattice(*shape_of(game)), {})
    with (
        full_disk(100_000),
        pytest.raises(StoreError, match=r"cannot be written \(File too large\); the search is kept$"),
    ):
        large_table(search, horizon)
    table = large_table(search, horizon)
    with full_disk(100_000), pytest.raises(StoreError, match=r"table: cannot be written \(File too large\)$"):
        save(table, tmp_path / "table")
    assert [each.name for each in tmp_path.iterdir()] == ["s"]
    save(table, tmp_path / "table")
    assert load(tmp_path / "table").fingerprint() == table.fingerprint()
    search.close()
    whole = searched(tmp_path / "s", game)
    check_closed_form(whole, game)
    whole.close()


KILLED = """
import os, signal, sys
from pathlib import Path
from efhorizon.build import batched_search as module
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target

module._SECONDS_A_COMMIT, module._BATCH_BYTES = 0.0, 1 << 14
commits = 0

def add(search, *arguments, original=module.BatchedSearch.add):
    original(search, *arguments)
    if search.num_expanded > int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

module.BatchedSearch.add = add
build(catalogue_target("lattice-4x12"), Options(Path(sys.argv[1]), batched=True, verify_episodes=0))
"""


def test_killed_with_9_it_continues_to_the_same_table(tmp_path: Path) -> None:
    target, options = catalogue_target("lattice-4x12"), {"batched": True, "verify_episodes": 0}
    expected = build(target, Options(tmp_path / "whole", **options)).mdp
    assert expected is not None
    for num_expanded in (5_000, 12_000):
        done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "killed"), str(num_expanded)], check=False)
        assert done.returncode == -signal.SIGKILL
        folder = next((tmp_path / "killed" / "searches").iterdir())
        assert json.loads((folder / "commit.json").read_text())["num_expanded"] > num_expanded // 2
    result = build(target, Options(tmp_path / "killed", **options))
    assert result.mdp is not None
    assert result.outcome.progress.num_pairs < 4 * (12**4 - 1 - 10_000)  # it did not begin again
    assert result.mdp.fingerprint() == expected.fingerprint()


def test_damage_is_found(tmp_path: Path) -> None:
    searched(tmp_path).close()
    content = bytearray((tmp_path / "rows").read_bytes())
    content[10] ^= 1
    (tmp_path / "rows").write_bytes(content)
    with pytest.raises(StoreError, match="not what was written; the search is damaged"):
        BatchedSearch(tmp_path, BatchedLattice(*shape_of(GAME)), {})
