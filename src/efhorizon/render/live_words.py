"""What is said of Figure 4, the same in the terminal, in Markdown and in the report."""

from __future__ import annotations

from collections.abc import Sequence

from efhorizon.evaluation.live_curves import PAPER_BUDGET, PAPER_SEEDS, PAPER_SENTENCE, LiveCurve, LiveFigure
from efhorizon.render.learning_curves import ALGORITHM_TITLES
from efhorizon.render.numbers import MISSING, TIMES, short_steps, significant

HEADINGS = [
    *(f"{ALGORITHM_TITLES[name]} {what}" for name in ("gorp", "ppo", "dqn") for what in ("timesteps", "return")),
    "GORP best",
]
PAPER = (
    f"The paper ({PAPER_SEEDS} seeds, {short_steps(PAPER_BUDGET)} timesteps): “{PAPER_SENTENCE}” Its returns are in "
    "the figure only, without numbers to quote."
)


def title(figure: LiveFigure) -> str:
    """What people call it: Space Invaders rather than space_invaders_27000_fs4."""
    if not figure.is_full_length:
        return figure.id
    game = figure.id.split("_27000")[0]
    return {"qbert": "Q*bert"}.get(game, game.replace("_", " ").title())


def verdict(figures: Sequence[LiveFigure]) -> str:
    """In how many of the games GORP's median is higher, as far as the runs go."""
    shown = [figure for figure in figures if figure.is_full_length] or list(figures)
    compared = [figure for figure in shown if figure.common_budget is not None]
    if not compared:
        return "No environment has runs of both GORP and a deep RL algorithm yet."
    both = [f for f in compared if len(f.curves) == 3 and len(f.beaten_by_gorp()) == 2]
    one = [f for f in compared if f not in both and f.beaten_by_gorp()]
    none = [f for f in compared if not f.beaten_by_gorp()]
    budgets = [figure.common_budget or 0 for figure in compared]
    return (
        "After the timesteps that all algorithms of an environment have "
        f"({_span(min(budgets), max(budgets))}), GORP's median is better than both PPO and "
        f"DQN in {_listed(both)}; better than one of those that were run in {_listed(one)}; not better than any in "
        f"{_listed(none)}. These are medians of few seeds after small budgets, not a test."
    )


def cells(figure: LiveFigure) -> list[str]:
    """Timesteps and return of each algorithm, and GORP's best episode."""
    found = [cell for name in ("gorp", "ppo", "dqn") for cell in _of(figure.curve(name))]
    gorp = figure.curve("gorp")
    return [*found, MISSING if gorp is None else significant(gorp.best_return, 4)]


def _span(low: int, high: int) -> str:
    return short_steps(low) if low == high else f"{short_steps(low)} to {short_steps(high)}"


def _of(curve: LiveCurve | None) -> list[str]:
    if curve is None:
        return [MISSING, MISSING]
    middle, low, high = curve.at(curve.budget)
    budget = f"{short_steps(curve.budget)} {TIMES} {curve.num_seeds}"
    return [budget, f"{significant(middle, 4)} [{significant(low, 4)}, {significant(high, 4)}]"]


def _listed(figures: Sequence[LiveFigure]) -> str:
    return f"{len(figures)} ({', '.join(map(title, figures))})" if figures else "none"
