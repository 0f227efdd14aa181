"""What to change about an MDP, as its page says it: changes that `what-if` tried, and shapings that were trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import UNSET

from efhorizon.render import numbers
from efhorizon.render.html.entries import MdpEntry
from efhorizon.render.html.names import page_link
from efhorizon.render.html.policy_changes import is_variant
from efhorizon.study.analysis_record import AnyAnalysis
from efhorizon.study.answer_record import ChangeFigures

_NOT_RUN = "not run"
_VERDICTS = {"helps": "helps", "only on paper": "on paper only", "hurts": "makes it harder"}


@dataclass(frozen=True)
class SuggestionLine:
    """A change that was tried on the table."""

    title: str
    verdict: str
    horizon: str
    timesteps: str
    factor: str
    forecasts: tuple[str, ...]  # medians for PPO and DQN
    caveats: str


@dataclass(frozen=True)
class SuggestionsPart:
    """The third answer of a page."""

    headline: str
    lines: tuple[SuggestionLine, ...]


@dataclass(frozen=True)
class TriedShaping:
    """An MDP and its shaped versions, side by side."""

    name: str
    link: str
    horizon: str
    needed: tuple[str, ...]  # timesteps of PPO and DQN


def suggestions(analysis: AnyAnalysis | None) -> SuggestionsPart | None:
    """None where nobody has tried changes."""
    if analysis is None or analysis.changes is UNSET:
        return None
    return SuggestionsPart(_headline(analysis.changes), tuple(map(_line, analysis.changes)))


def _headline(changes: list[ChangeFigures]) -> str:
    best = next((change for change in changes if change.verdict == "helps"), None)
    if best is None:
        return "Nothing to try first: no change helps GORP, PPO and DQN alike without knowing the solution."
    least = "at most " if best.horizon_kind == "upper" else ""
    return f"Try first: {best.title}. GORP then needs {least}{numbers.steps(best.timesteps)} timesteps."


def _line(change: ChangeFigures) -> SuggestionLine:
    sign = "≤ " if change.horizon_kind == "upper" else ""
    medians = (change.forecast.get(algorithm) for algorithm in ("ppo", "dqn"))
    return SuggestionLine(
        title=change.title,
        verdict=_VERDICTS.get(change.verdict, change.verdict),
        horizon=sign + numbers.decimal(change.horizon),
        timesteps=numbers.steps(change.timesteps),
        factor=numbers.significant(change.factor, 2),
        forecasts=tuple(numbers.MISSING if median is None else numbers.short_steps(median) for median in medians),
        caveats="; ".join(change.caveats),
    )


def shapings_tried(entry: MdpEntry, entries: Mapping[str, MdpEntry]) -> list[TriedShaping]:
    """What the study tried on this MDP: its rewards shaped, with H and what PPO and DQN needed then."""
    shaped = [each for each in entries.values() if unshaped(each) == entry.name and not is_variant(each)]
    return (
        [
            TriedShaping(
                each.name,
                page_link(each.name).removeprefix("mdps/"),
                _horizon_of(each),
                tuple(needed(each, algorithm) for algorithm in ("ppo", "dqn")),
            )
            for each in [entry, *shaped]
        ]
        if shaped
        else []
    )


def _horizon_of(entry: MdpEntry) -> str:
    if entry.summary is None:
        return numbers.MISSING
    sign = "≤ " if entry.summary.effective_horizon_kind == "upper" else ""
    return sign + numbers.decimal(entry.summary.effective_horizon)


def needed(entry: MdpEntry, algorithm: str) -> str:
    complexity = entry.sample_complexity(algorithm)
    return _NOT_RUN if complexity is None else numbers.steps_needed(complexity, entry.budget(algorithm))


def unshaped(entry: MdpEntry) -> str | None:
    if entry.summary is not None:
        return entry.summary.unshaped
    return None if entry.analysis is None else entry.analysis.unshaped
