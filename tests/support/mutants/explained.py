"""The mutants that docs/mutants.md explains: rows of its table that begin with an id."""

from __future__ import annotations

import re
from pathlib import Path

EXPLAINED = Path(__file__).parents[3] / "docs" / "mutants.md"


def explanations(page: str) -> dict[str, str]:
    """The reason of each mutant that no test can kill, by its id."""
    rows = re.findall(r"^\| `([0-9a-f]{8})` \|.*\| ([^|]+) \|$", page, flags=re.MULTILINE)
    return dict(rows)
