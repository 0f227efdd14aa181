"""CSV files: a spreadsheet takes no text for a formula, and every text comes back as it was."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from evaluation_data import summary

from efhorizon.evaluation.summary_csv import encoded_summaries, read_summaries
from efhorizon.study.built_tables import BuiltTable, encoded_tables, read_tables
from efhorizon.study.csv_text import encoded_csv, text_of_cell

NAMES = (
    *("=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://x","y")', "\t=1", "\r=1", "\n=1", "'=1", "''=1", "'"),
    *(" a", "a ", " ", "' a", "a\rb", "a\nb", 'a"b', "a,b", "a\0b", "\x1b[31m"),
    *("plain", "it's", "'plain'", "é\N{SNOWMAN}"),
)


@pytest.mark.parametrize("name", NAMES)
def test_any_text_comes_back(name: str) -> None:
    text = encoded_csv(["name", "value"], [{"name": name, "value": -1.5}]).decode()
    (line,) = csv.DictReader(io.StringIO(text, newline=""))
    assert not line["name"].startswith(("=", "+", "-", "@", "\t", "\r"))
    assert text_of_cell(line["name"]) == name
    assert line["value"] == "-1.5"  # numbers stay numbers


def test_files_are_those_of_the_standard_library() -> None:
    """As far as nothing in them is a formula."""
    lines = [{"a": 'x, "y"', "b": 0.1 + 0.2}, {"a": "two\nlines", "b": float("inf")}, {"b": None}, {"a": "", "b": 7}]
    expected = io.StringIO(newline="")
    writer = csv.DictWriter(expected, ["a", "b"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    assert encoded_csv(["a", "b"], lines).decode() == expected.getvalue()


def test_names_in_a_summary_come_back(tmp_path: Path) -> None:
    given = [
        summary(name, family=name, origin=name, type="shaped", unshaped=name, bounds={f"a{name}": 1.0})
        for name in NAMES
        if name.strip()
    ]
    (tmp_path / "summary.csv").write_bytes(encoded_summaries(given))
    assert read_summaries(tmp_path / "summary.csv") == given


def test_names_in_a_list_of_tables_come_back(tmp_path: Path) -> None:
    table = BuiltTable("a", 2, 2, None, is_degenerate=False, is_verified=True, episodes=20, steps=57)
    given = tuple(replace(table, name=name) for name in NAMES)
    (tmp_path / "tables.csv").write_bytes(encoded_tables(given))
    assert read_tables(tmp_path / "tables.csv") == given
