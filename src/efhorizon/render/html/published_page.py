"""The page that shows what the paper's authors published beside what was found here."""

from __future__ import annotations

from typing import Any

from efhorizon.evaluation.beside import ALGORITHMS, Beside
from efhorizon.render.beside import cells
from efhorizon.render.html.names import page_link

LINK, TITLE = "published.html", "Published"


def published_page(found: Beside) -> dict[str, Any]:
    """What the template needs."""
    return {
        "found": found,
        "num_same": sum(row.same_table is True for row in found.rows),
        "num_known": sum(row.same_table is not None for row in found.rows),
        "titles": ["table", "states", "k", "EPW", "H", *(name.upper() for name in ALGORITHMS)],
        "lines": [(row.name, page_link(row.name), cells(row)) for row in found.rows],
    }
