"""Tables with chance in the terminal: who solves them, what predicts that, and each beside the MDP without chance."""

from __future__ import annotations

from efhorizon.evaluation.stochastic import StochasticTables
from efhorizon.render.learning_curves import ALGORITHM_TITLES
from efhorizon.render.stochastic_words import ABOUT, COUNT_HEADINGS, HEADINGS, NOTE, cells, count_cells, verdict
from efhorizon.render.terminal.evaluation import bound_parts
from efhorizon.render.terminal.layout import Parts, heading, literal, table

_MAX_LISTED = 60  # MDPs; longer lists are for programs


def stochastic_evaluation(tables: StochasticTables | None) -> Parts:
    """Nothing where there are no tables with chance."""
    if tables is None:
        return
    yield from heading("With chance")
    yield literal(verdict(tables.counts, len(tables.lines)))
    yield literal(ABOUT)
    if any(count.num_run for count in tables.counts):
        counts = table("", *COUNT_HEADINGS)
        for count in tables.counts:
            counts.add_row(literal(ALGORITHM_TITLES[count.algorithm]), *count_cells(count))
        yield counts
    for bounds in tables.bounds:
        if bounds.num_mdps:
            yield from bound_parts(bounds, "With chance, ")
    if len(tables.lines) <= _MAX_LISTED:
        yield from heading("With chance, MDP by MDP")
        shown = table("", *HEADINGS)
        for line in tables.lines:
            shown.add_row(literal(line.record.made_from or line.record.id), *cells(line))
        yield shown
        yield f"  {NOTE}"
    if tables.notes:
        yield from heading("With chance, notes")
        yield from (f"- {literal(note)}" for note in tables.notes)
