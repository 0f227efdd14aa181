"""The page of one MDP: how hard it is, why, what each bound says, and what the algorithms did."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from efhorizon.evaluation.formulas import EFFECTIVE_HORIZON, horizon_of
from efhorizon.evaluation.records import GORP
from efhorizon.render import numbers
from efhorizon.render.charts import marks
from efhorizon.render.charts.bars import layer_chart
from efhorizon.render.charts.histogram import HistogramScale, histogram_scale, return_axis, return_histogram
from efhorizon.render.charts.ladder import Rung, ladder
from efhorizon.render.html.analysis import Analysis, HorizonAtK, Interval
from efhorizon.render.html.entries import Entry
from efhorizon.render.html.explanations import figure, horizon_text, undecided, why_hard, witness
from efhorizon.render.html.learning import ALGORITHM_TITLES, ALGORITHMS, best_settings
from efhorizon.render.html.mdp_practice import commands, learning_curves, needed_by_runs, run_lines
from efhorizon.render.html.names import page_link
from efhorizon.render.html.paper_figures import paper_figures

_NOT_RUN = "not run"
_PROVENANCE_SHOWN = ("settings", "efhorizon", "code", "packages", "python", "machine")


@dataclass(frozen=True)
class Fact:
    """A number with its name, and the paper's where it has one."""

    title: str
    value: str
    note: str | None = None
    paper: str | None = None


@dataclass(frozen=True)
class BoundLine:
    title: str
    value: str
    witness: str
    is_own: bool  # the effective horizon's
    paper: str | None


@dataclass(frozen=True)
class HorizonLine:
    """H_k for one k: exact, by the best upper bound, by Theorem 5.4."""

    k: int
    exact: str
    exact_m: str
    upper: str
    upper_m: str
    theorem: str
    theorem_m: str
    note: str
    is_best: bool


@dataclass(frozen=True)
class LawLine:
    names: str
    q: str
    optimal_q: str
    is_optimal: bool
    histogram: Markup | None


def mdp_page(entry: Entry, titles: Mapping[str, str], pictures: Mapping[str, str]) -> dict[str, Any]:
    """What the template needs; `pictures` are links to those that were copied, by their name in the analysis."""
    analysis = entry.analysis
    paper = paper_figures(entry.name)
    shaped_from = _unshaped(entry)
    return {
        "entry": entry,
        "analysis": analysis,
        "title": entry.name,
        "suite": marks.suite_class(entry.suite),
        "suite_title": marks.suite_title(entry.suite),
        "shaped_from": shaped_from,
        "shaped_link": None if shaped_from is None else page_link(shaped_from).removeprefix("mdps/"),
        "facts": facts(entry, paper),
        "why": [] if analysis is None else why_hard(analysis),
        "bounds": bound_lines(entry, titles, paper),
        "bounds_chart": bounds_chart(entry, titles),
        "horizons": [] if analysis is None else horizon_lines(analysis),
        "laws": [] if analysis is None else law_lines(analysis),
        "law_axis": _law_axis(analysis),
        "undecided": "" if analysis is None else undecided(analysis),
        "learning_chart": learning_curves(entry),
        "runs": run_lines(entry.settings),
        "layers": layer_chart(analysis.layers) if analysis is not None and len(analysis.layers) > 1 else None,
        "start_picture": None if analysis is None else pictures.get(analysis.start_picture or ""),
        "deciding_picture": _deciding_picture(analysis, pictures),
        "episode": _episode(analysis, pictures),
        "build_lines": [] if analysis is None else build_lines(analysis),
        "commands": commands(entry),
    }


def facts(entry: Entry, paper: Mapping[str, str]) -> list[Fact]:
    """The numbers at the top of the page."""
    summary, analysis = entry.summary, entry.analysis
    if analysis is not None:
        known = dict(analysis.figures)
        raw = None if analysis.num_raw_states is None else f"merged from {numbers.count(analysis.num_raw_states)}"
        horizon = Fact(
            "effective horizon H", horizon_text(analysis), analysis.effective_kind, paper.get("effective_horizon")
        )
    else:
        assert summary is not None  # an entry has at least one of them
        raw = None
        sign = "" if summary.effective_horizon_kind == "exact" else "≤ "
        horizon = Fact(
            "effective horizon H", sign + numbers.decimal(summary.effective_horizon), summary.effective_horizon_kind
        )
        known = {
            "num_states": summary.num_states,
            "num_actions": summary.num_actions,
            "horizon": summary.horizon,
            "optimal_return": summary.reward_optimal,
            "exploration_return": summary.reward_exploration,
            "optimal_return_probability": summary.reward_optimal_probability,
            "min_k": summary.k_min,
            "epw": summary.epw,
        }
    return [
        horizon,
        Fact("least k, k-QVI-solvable", figure(known.get("min_k")), paper=paper.get("min_k")),
        Fact("effective planning window", figure(known.get("epw")), paper=paper.get("epw")),
        Fact("horizon T", figure(known.get("horizon"))),
        Fact("actions A", figure(known.get("num_actions"))),
        Fact("states", _states(known.get("num_states")), raw, paper.get("num_states")),
        Fact("optimal return", figure(known.get("optimal_return"))),
        Fact("return of random play", figure(known.get("exploration_return"))),
        Fact("chance that a random episode is optimal", figure(known.get("optimal_return_probability"))),
        *(_practice_fact(entry, algorithm, paper) for algorithm in ALGORITHMS),
    ]


def bound_lines(entry: Entry, titles: Mapping[str, str], paper: Mapping[str, str]) -> list[BoundLine]:
    """Every bound, the smallest first."""
    bounds = entry.bounds()
    return [
        BoundLine(
            title=_title(name, titles, entry),
            value=_bound_value(bounds[name]),
            witness="" if entry.analysis is None else witness(name, entry.analysis),
            is_own=name == EFFECTIVE_HORIZON,
            paper=paper.get(f"bound_{name}"),
        )
        for name in sorted(bounds, key=lambda name: _end(bounds[name]))
    ]


def bounds_chart(entry: Entry, titles: Mapping[str, str]) -> Markup | None:
    """Bounds and practice on one axis; not for unfinished tables, whose bounds are intervals."""
    bounds = {name: value for name, value in entry.bounds().items() if not isinstance(value, Interval)}
    if not bounds or entry.summary is None:
        return None
    reasons = {} if entry.analysis is None else entry.analysis.reasons
    rungs = [
        Rung(
            short_title(_title(name, titles, entry)),
            None if math.isinf(value) and name in reasons else value,
            "horizon" if name == EFFECTIVE_HORIZON else "bound",
        )
        for name, value in sorted(bounds.items(), key=lambda item: item[1])
    ]
    best = {setting.algorithm: setting for setting in best_settings(entry.settings)}
    for algorithm in ALGORITHMS:
        complexity = entry.sample_complexity(algorithm)
        if complexity is not None:
            runs = needed_by_runs(best[algorithm]) if algorithm in best and algorithm != GORP else ()
            log10 = math.log10(max(1.0, complexity)) if math.isfinite(complexity) else math.inf
            rungs.append(Rung(f"{ALGORITHM_TITLES[algorithm]}, needed", log10, "practice", runs))
    return ladder(rungs, name=entry.name)


def horizon_lines(analysis: Analysis) -> list[HorizonLine]:
    """H_k = k + log_A m for each k that was looked at."""

    def horizon(entry: HorizonAtK, m: int | None) -> str:
        return numbers.MISSING if m is None else numbers.decimal(horizon_of(analysis.num_actions, entry.k, m))

    return [
        HorizonLine(
            k=entry.k,
            exact=horizon(entry, entry.exact_m),
            exact_m=numbers.steps(entry.exact_m),
            upper=horizon(entry, entry.upper_m),
            upper_m=numbers.steps(entry.upper_m),
            theorem=horizon(entry, entry.theorem_m),
            theorem_m=numbers.steps(entry.theorem_m),
            note=_horizon_note(entry),
            is_best=entry.k == analysis.effective_k,
        )
        for entry in analysis.by_k
    ]


def law_lines(analysis: Analysis) -> list[LawLine]:
    """The actions of the deciding state, the one that looks best first."""
    if analysis.deciding is None:
        return []
    scale = _law_scale(analysis)
    lines = []
    for law in sorted(analysis.deciding.actions, key=lambda law: -law.q):
        names = ", ".join(law.names)
        histogram = None
        if law.histogram is not None and scale is not None:
            histogram = return_histogram(
                law.histogram.returns,
                law.histogram.probabilities,
                scale=scale,
                mean=law.q,
                name=names,
                is_optimal=law.is_optimal,
            )
        lines.append(
            LawLine(names, numbers.significant(law.q), numbers.significant(law.optimal_q), law.is_optimal, histogram)
        )
    return lines


def build_lines(analysis: Analysis) -> list[tuple[str, str]]:
    """Where the table comes from."""
    lines = [
        ("fingerprint", analysis.fingerprint),
        ("game", analysis.game),
        ("frameskip", None if analysis.frameskip is None else str(analysis.frameskip)),
        ("shaping", analysis.shaping),
        ("exploration policy", analysis.exploration),
        ("verified", _verified(analysis)),
        *((f"time to {stage}", numbers.seconds(seconds)) for stage, seconds in analysis.seconds.items()),
        *((name, _plain(value)) for name, value in analysis.provenance.items() if name in _PROVENANCE_SHOWN),
    ]
    return [(name, value) for name, value in lines if value]


def short_title(title: str) -> str:
    """A bound's title without its source."""
    return title.split(" (")[0].removesuffix(", GORP").removesuffix(", every pair visited")


def _title(name: str, titles: Mapping[str, str], entry: Entry) -> str:
    own = {} if entry.analysis is None else entry.analysis.titles
    return titles.get(name) or own.get(name) or name


def _unshaped(entry: Entry) -> str | None:
    if entry.summary is not None:
        return entry.summary.unshaped
    return None if entry.analysis is None else entry.analysis.unshaped


def _states(value: Any) -> str:
    return numbers.count(value) if isinstance(value, int) else figure(value)


def _practice_fact(entry: Entry, algorithm: str, paper: Mapping[str, str]) -> Fact:
    complexity = entry.sample_complexity(algorithm)
    shown = _NOT_RUN if complexity is None else numbers.steps_needed(complexity)
    return Fact(f"{ALGORITHM_TITLES[algorithm]}, timesteps", shown, paper=paper.get(algorithm))


def _bound_value(value: float | Interval) -> str:
    if isinstance(value, Interval):
        high = numbers.INFINITE if value.high is None else numbers.from_log10(value.high)
        return f"{numbers.from_log10(value.low)} to {high}"
    return numbers.from_log10(value)


def _end(value: float | Interval) -> float:
    return value.low if isinstance(value, Interval) else value


def _horizon_note(entry: HorizonAtK) -> str:
    if entry.method == "exact":
        return ""
    if entry.method is not None:
        return f"upper bound by {entry.method}" + (f"; not exact: {entry.exact_reason}" if entry.exact_reason else "")
    return entry.exact_reason or entry.upper_reason or entry.theorem_reason or ""


def _law_scale(analysis: Analysis) -> HistogramScale | None:
    laws = [law.histogram for law in analysis.deciding.actions] if analysis.deciding is not None else []
    known = [(law.returns, law.probabilities) for law in laws if law is not None]
    return histogram_scale(known) if known else None


def _law_axis(analysis: Analysis | None) -> Markup | None:
    scale = None if analysis is None else _law_scale(analysis)
    return None if scale is None else return_axis(scale)


def _deciding_picture(analysis: Analysis | None, pictures: Mapping[str, str]) -> str | None:
    if analysis is None or analysis.deciding is None:
        return None
    return pictures.get(analysis.deciding.picture or "")


def _episode(analysis: Analysis | None, pictures: Mapping[str, str]) -> dict[str, Any] | None:
    """What the player needs."""
    if analysis is None or analysis.episode is None or analysis.episode.picture not in pictures:
        return None
    episode = analysis.episode
    return {
        "picture": pictures[episode.picture],
        "data": {
            "frames": episode.frames,
            "columns": episode.columns,
            "width": episode.width,
            "height": episode.height,
            "actions": list(episode.actions),
            "rewards": list(episode.rewards),
        },
        "total": numbers.significant(sum(episode.rewards)),
    }


def _verified(analysis: Analysis) -> str | None:
    """How the table was checked against its environment."""
    known = analysis.verification
    if known is None:
        return None
    episodes, steps = known.get("episodes"), known.get("steps")
    if known.get("verified") is True and isinstance(episodes, int) and isinstance(steps, int):
        return f"{episodes:,} episodes, {steps:,} steps, replayed from reset in a fresh process without a difference"
    return _plain(known)


def _plain(value: Any) -> str:
    """Anything out of a JSON file as a short text."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_plain(inner) for inner in value)
    return str(value)
