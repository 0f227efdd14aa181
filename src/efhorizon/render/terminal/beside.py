"""What the paper's authors published beside what we found."""

from __future__ import annotations

from rich.table import Table

from efhorizon.evaluation.beside import ALGORITHMS, Beside
from efhorizon.render import numbers
from efhorizon.render.beside import cells
from efhorizon.render.numbers import MISSING, counted
from efhorizon.render.terminal.layout import Parts, heading, literal

_MAX_LISTED = 60


def published_beside(found: Beside) -> Parts:
    """Agreement first, then MDP by MDP: theirs / ours."""
    yield from heading(f"Beside the published data set: {counted(len(found.rows), 'MDP')} in both")
    table = Table(box=None, pad_edge=False)
    for title in ("figure", "in both", "equal", "rank correlation"):
        table.add_column(title, justify="left" if title == "figure" else "right")
    for each in found.agreements:
        correlation = MISSING if each.rank_correlation is None else numbers.decimal(each.rank_correlation)
        table.add_row(each.figure, str(each.num_mdps), str(each.num_equal), correlation)
    yield table
    same = sum(row.same_table is True for row in found.rows)
    known = sum(row.same_table is not None for row in found.rows)
    yield f"The same table, state by state: {same} of {known} where both are known."
    yield (
        "Their effective horizon is the upper bound of Appendix C. Ours, where exact, is above it on "
        f"{found.num_violations or 'none'} of the MDPs with the same table."
    )
    table = Table(box=None, pad_edge=False)
    for title in ("theirs / ours", "table", "states", "k", "EPW", "H", *(name.upper() for name in ALGORITHMS)):
        table.add_column(title, justify="left" if title in ("theirs / ours", "table") else "right")
    for row in found.rows[:_MAX_LISTED]:
        table.add_row(literal(row.name), *cells(row))
    yield table
    if len(found.rows) > _MAX_LISTED:
        yield f"and {len(found.rows) - _MAX_LISTED} more (--json has them all)"
    yield f"Only published: {len(found.only_theirs)}; only ours: {found.num_only_ours}."
