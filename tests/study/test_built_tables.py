"""Which tables a study has built, and whether each was verified: from the store's headers, and through an export."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evaluation_data import analysis, results_directory

from efhorizon import TabularMDP
from efhorizon.errors import StoreError
from efhorizon.evaluation.source import study_data
from efhorizon.io import store
from efhorizon.study.built_tables import BuiltTable, encoded_tables, read_tables, tables_in

VERIFIED = {"verified": True, "episodes": 20, "steps": 57, "screens_compared": True}
DIFFERENT = {"verified": False, "episodes": 3, "steps": 8, "screens_compared": True, "difference": {"what": "reward"}}


def write_table(folder: Path, name: str, **metadata: object) -> None:
    mdp = TabularMDP(
        transitions=np.array([[1, -1], [-1, -1]], np.int32),
        rewards=np.array([[0.0, 1.0], [2.0, 0.0]]),
        horizon=2,
        metadata={"id": name, **metadata},
    )
    store.write(mdp, folder / name)


def test_headers_say_what_was_verified(tmp_path: Path) -> None:
    write_table(tmp_path, "b", num_states_raw=5, degenerate=True, verification=DIFFERENT)
    write_table(tmp_path, "a", num_states_raw=4, degenerate=False, verification=VERIFIED)
    write_table(tmp_path, "c")
    (tmp_path / "searches").mkdir()
    assert tables_in(tmp_path) == (
        BuiltTable("a", 2, 2, 4, is_degenerate=False, is_verified=True, episodes=20, steps=57),
        BuiltTable("b", 2, 2, 5, is_degenerate=True, is_verified=False, episodes=3, steps=8),
        BuiltTable("c", 2, 2, None, is_degenerate=False, is_verified=False, episodes=None, steps=None),
    )
    assert tables_in(tmp_path / "nowhere") == ()


def test_coverage_and_files_of_older_versions(tmp_path: Path) -> None:
    """Two of four pairs were replayed; a tables.csv without these columns is still read."""
    write_table(tmp_path, "a", verification={**VERIFIED, "pairs": 4, "pairs_replayed": 2})
    (table,) = tables_in(tmp_path)
    assert (table.pairs, table.pairs_replayed, table.coverage) == (4, 2, 0.5)
    path = tmp_path / "tables.csv"
    path.write_bytes(encoded_tables([table]))
    assert read_tables(path) == (table,)
    older = replace(table, pairs=None, pairs_replayed=None)
    path.write_text(path.read_text().replace(",pairs,pairs_replayed", "").replace(",4,2", ""))
    assert read_tables(path) == (older,)
    assert older.coverage is None


def test_an_export_keeps_them_and_the_lists_show_those_not_analyzed(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", exc_type=ImportError)
    pytest.importorskip("jinja2")
    from efhorizon.evaluation.source import write_export
    from efhorizon.evaluation.tables import all_tables
    from efhorizon.render.markdown.lists_page import lists_page

    results = results_directory(tmp_path / "results", [analysis("a")], [])
    write_table(results / "tables", "a", verification=VERIFIED)
    write_table(results / "tables", "b", num_states_raw=1234, degenerate=True, verification=VERIFIED)
    write_table(results / "tables", "c", verification=DIFFERENT)
    data = study_data(results)
    assert [file.name for file in write_export(tmp_path / "export", data)][-2:] == ["tables.csv", "checksums.txt"]
    again = study_data(tmp_path / "export")
    assert again.tables == data.tables
    assert len(data.tables) == 3
    page = lists_page(again, all_tables(again, num_resamples=10))
    section = page.split("## Tables that were built but not analyzed")[1]
    assert "3 tables were built in all. 2 of them were verified" in section
    assert "| b | 2 | 2 | 1,234 | 20 | 57 | yes |" in section
    assert "| c | 2 | 2 | " in section
    assert section.count("not verified") == 1  # the footnote of its dashes
    assert "| a |" not in section
    fewer = replace(again, tables=again.tables[:1])
    assert "not analyzed" not in lists_page(fewer, all_tables(again, num_resamples=10))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("name,horizon", "name,length"), "the columns must be name, horizon"),
        ((",yes,", ",maybe,"), "line 2: is_verified must be yes or no, got 'maybe'"),
        ((",57", ",-57"), "line 2: steps must be a whole number, got '-57'"),
        (("a,2,", "a,,"), "line 2: name, horizon and num_states must not be empty"),
    ],
)
def test_a_file_that_is_not_one_is_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "tables.csv"
    table = BuiltTable("a", 2, 2, None, is_degenerate=False, is_verified=True, episodes=20, steps=57)
    path.write_bytes(encoded_tables([table]))
    assert len(read_tables(path)) == 1
    path.write_text(path.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    with pytest.raises(StoreError, match=message):
        read_tables(path)
