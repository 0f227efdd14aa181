"""docs/study/reasons.md says what the committed rows say, and the reasons hold as often as they should."""

from __future__ import annotations

from pathlib import Path

from benchmarks.reasons import page, read

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_from_the_rows() -> None:
    assert (ROOT / "docs/study/reasons.md").read_text() == page(read())


def test_the_places_named_lie_on_the_way() -> None:
    rows = read()
    assert len({(row.name, row.by) for row in rows}) == len(rows)
    assert all(row.on_the_way and row.detour == 0 for row in rows)


def test_right_play_at_the_places_named_raises_success_by_what_was_claimed() -> None:
    """Two claims with 95% intervals each: one row in ten may be outside, and a few more by chance."""
    rows = read()
    assert sum(not row.agrees for row in rows) <= 0.1 * len(rows) + 2 * (0.1 * 0.9 * len(rows)) ** 0.5
