"""forecast.md: how good forecasts are, on MDPs whose family was left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from efhorizon.evaluation.forecast_check import FORECAST, AtBudget, Coverage, ForecastCheck
from efhorizon.evaluation.forecast_rows import RULE
from efhorizon.evaluation.rules import RULE_TITLES
from efhorizon.forecast.columns import USED
from efhorizon.forecast.model import Model
from efhorizon.render.charts.marks import suite_title
from efhorizon.render.markdown.text import blocks, escaped, from_log10, table
from efhorizon.render.numbers import MISSING

FILE = "forecast.md"


def forecast_page(model: Model, checks: Sequence[ForecastCheck], titles: Mapping[str, str]) -> str:
    """The whole page."""
    level = f"{checks[0].level:.0%}"
    return (
        blocks(
            "# How good are the forecasts?",
            "Written by `make forecast`, together with the model: the same rows give the same bytes. What a "
            "forecast is and how it is made: [forecast.md](../forecast.md).",
            f"Model: `{model.version}`, from {model.content.num_runs:,} runs. What counts as solved: "
            f"{escaped(RULE_TITLES[RULE])}. Each family of MDPs (a game over its levels and horizons, a gridworld over "
            "its sizes and shapings) is left out in turn, a model is fitted on the others, and its forecasts are "
            "compared with what PPO and DQN needed.",
            "## Timesteps",
            "The median over solved MDPs of the factor between a prediction and what was needed. A bound counts as it "
            "is, in timesteps; it is infinite where it promises nothing.",
            _factors(checks, titles),
            f"## Coverage of the {level} intervals",
            "An MDP that was not solved contradicts its interval only if it had more timesteps than the interval's "
            "upper end. Among MDPs that were solved the share is given as well.",
            _coverage(checks),
            "## Solved within the budget",
            "The Brier score (smaller is better) and the AUROC (larger is better) of the chance to be solved. A bound "
            "has no chances: it gets the threshold that classifies best, and on each side of it the share that was "
            "solved there. Both are fitted on the very MDPs that they are tested on, so the bounds have the advantage.",
            *(block for check in checks for block in _classified(check, titles)),
            "## Calibration",
            "MDPs by the chance that they got, and the share that was solved.",
            _calibration(checks),
            "## The numbers of the model",
            "Powers of ten of timesteps, for each unit of the column. Those marked with + cannot be negative.",
            _coefficients(model),
            "## Every MDP",
            f"Timesteps with the {level} interval, the chance within the budget, and what came out.",
            *(block for check in checks for block in (f"### {check.algorithm.upper()}", _every(check))),
        )
        + "\n"
    )


def _factors(checks: Sequence[ForecastCheck], titles: Mapping[str, str]) -> str:
    names = list(dict.fromkeys(name for check in checks for name in check.factors))
    names.sort(key=lambda name: (name != FORECAST, min(check.factors.get(name, math.inf) for check in checks)))
    rows = [[_title(name, titles), *(_factor(check.factors.get(name)) for check in checks)] for name in names]
    head = [f"{check.algorithm.upper()}, {check.coverage.num_solved} solved" for check in checks]
    return table(["predictor", *head], rows)


def _coverage(checks: Sequence[ForecastCheck]) -> str:
    rows = []
    for check in checks:
        name = check.algorithm.upper()
        rows.append([name, "all", str(check.num_families), *_covered(check.coverage)])
        for suite, found in check.by_suite.items():
            families = {each.outcome.family for each in check.tested if each.suite == suite}
            rows.append([name, escaped(suite_title(suite)), str(len(families)), *_covered(found)])
    return table(["", "suite", "families", "MDPs", "covered", "solved", "of these covered"], rows, num_left=2)


def _covered(coverage: Coverage) -> list[str]:
    solved = coverage.num_solved
    return [
        str(coverage.num_mdps),
        f"{coverage.share:.0%}",
        str(solved),
        f"{coverage.num_solved_covered / solved:.0%}" if solved else MISSING,
    ]


def _classified(check: ForecastCheck, titles: Mapping[str, str]) -> Iterator[str]:
    for at in check.budgets:
        yield (
            f"{check.algorithm.upper()}, {at.num_mdps} MDPs with {at.budget:,.0f} timesteps, {at.num_solved} of them "
            "solved:"
        )
        yield _at_budget(at, titles)


def _at_budget(at: AtBudget, titles: Mapping[str, str]) -> str:
    ordered = sorted(at.predictors, key=lambda each: (each.name != FORECAST, round(each.brier, 9), each.name))
    rows = [
        [_title(each.name, titles), f"{each.brier:.3f}", MISSING if each.auroc is None else f"{each.auroc:.3f}"]
        for each in ordered
    ]
    return table(["predictor", "Brier", "AUROC"], rows)


def _calibration(checks: Sequence[ForecastCheck]) -> str:
    rows = []
    for check in checks:
        for each in check.calibration:
            share = each.num_solved / each.num_mdps
            rows.append(
                [
                    check.algorithm.upper(),
                    f"{each.low:.0%} to {each.high:.0%}",
                    str(each.num_mdps),
                    f"{each.mean_chance:.0%}",
                    f"{share:.0%}",
                ]
            )
    return table(["", "chance", "MDPs", "mean chance", "solved"], rows, num_left=2)


def _coefficients(model: Model) -> str:
    fitted = model.content.algorithms
    rows = [["at zero", *(f"{each.intercept:.3f}" for each in fitted.values())]]
    for column in USED:
        sign = " (+)" if column.sign > 0 else ""
        rows.append([column.title + sign, *(f"{each.coefficients[column.name]:.3f}" for each in fitted.values())])
    return table(["column", *(name.upper() for name in fitted)], rows)


def _every(check: ForecastCheck) -> str:
    rows = []
    for each in sorted(check.tested, key=lambda tested: tested.outcome.name):
        outcome = each.outcome
        found = f"{outcome.timesteps:,.0f}" if outcome.is_solved else f"&gt; {outcome.budget:,.0f}"
        rows.append(
            [
                escaped(outcome.name),
                f"{each.median:,.0f}",
                f"{each.low:,.0f} to {each.high:,.0f}",
                f"{each.chance:.0%}",
                found,
                "" if each.is_covered else "outside",
            ]
        )
    return table(["MDP", "forecast", "interval", "chance", "needed", ""], rows)


def _title(name: str, titles: Mapping[str, str]) -> str:
    return "**forecast**" if name == FORECAST else escaped(titles.get(name, name))


def _factor(log10: float | None) -> str:
    if log10 is None or math.isnan(log10):
        return MISSING
    return "infinite" if math.isinf(log10) else from_log10(log10)
