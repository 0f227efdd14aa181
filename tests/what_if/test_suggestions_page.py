"""docs/study/suggestions.md says what the committed rows say."""

from __future__ import annotations

from pathlib import Path

from benchmarks.suggestions import ROWS, page, planned_in, read

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_from_the_rows() -> None:
    folder = ROOT / "data/suggestions"
    assert (ROOT / "docs/study/suggestions.md").read_text() == page(read(folder / ROWS), planned_in(folder))


def test_what_was_planned_first_was_trained() -> None:
    """At least 30 changes of at least 15 MDPs, each as it was written down before training."""
    rows = read(ROOT / "data/suggestions" / ROWS)
    planned = (ROOT / "data/suggestions/plan.jsonl").read_text()
    for algorithm in ("ppo", "dqn"):
        own = [row.prediction.mdp for row in rows if row.prediction.algorithm == algorithm]
        assert len(own) >= 30
        assert len(set(own)) >= 15
    assert all(f'"title": "{row.prediction.title}"' in planned for row in rows)
    assert len({(row.prediction.mdp, row.prediction.title, row.prediction.algorithm) for row in rows}) == len(rows)
