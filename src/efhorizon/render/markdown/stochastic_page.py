"""stochastic.md: tables with chance, made of the rows of a study."""

from __future__ import annotations

from efhorizon.evaluation.stochastic import StochasticTables
from efhorizon.render.learning_curves import ALGORITHM_TITLES
from efhorizon.render.markdown.bound_sections import bound_section
from efhorizon.render.markdown.text import blocks, escaped, table
from efhorizon.render.numbers import percent
from efhorizon.render.stochastic_words import ABOUT, COUNT_HEADINGS, HEADINGS, NOTE, cells, count_cells, verdict

FILE = "stochastic.md"


def stochastic_files(tables: StochasticTables | None) -> dict[str, str]:
    """The page by its name; nothing where there are no tables with chance."""
    return {} if tables is None else {FILE: _page(tables)}


def _page(tables: StochasticTables) -> str:
    counts = [[escaped(ALGORITHM_TITLES[each.algorithm]), *count_cells(each)] for each in tables.counts]
    predicted = [each for each in tables.bounds if each.num_mdps]
    return (
        blocks(
            "# With chance: SQIRL, PPO and DQN on tables with sticky actions",
            "How hard MDPs are with sticky actions, who solves them, and what predicts it, beside the same MDPs "
            "without chance. What the figures mean: [environments with chance](../stochastic.md); how they are "
            "counted: [evaluation](../evaluation.md#with-chance). Made by `efhorizon sticky`.",
            escaped(verdict(tables.counts, len(tables.lines))),
            escaped(ABOUT),
            "## Who solves them",
            table(["", *COUNT_HEADINGS], counts),
            "Shaped MDPs do not count here. The factor is the median of timesteps with chance / without, over the MDPs "
            "solved both ways.",
            "## What predicts it",
            f"Intervals: {percent(tables.level)}, {tables.num_resamples:,} bootstrap resamples of families, seed "
            f"{tables.seed}. The paper's metrics, for deterministic MDPs in [tables.md](tables.md)."
            if predicted
            else "Nothing was run yet.",
            *(bound_section(each, title=ALGORITHM_TITLES[each.algorithm], with_paper=False) for each in predicted),
            "## MDP by MDP",
            table(
                ["", *HEADINGS],
                [
                    [escaped(line.record.made_from or line.record.id), *map(escaped, cells(line))]
                    for line in tables.lines
                ],
            ),
            escaped(NOTE),
            "## Notes" if tables.notes else "",
            "\n".join(f"- {escaped(note)}" for note in tables.notes),
        )
        + "\n"
    )
