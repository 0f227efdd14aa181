"""The page of one MDP: how hard it is, why, what each bound says, and what the algorithms did."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from msgspec import UNSET

from efhorizon.bounds.interval import Interval
from efhorizon.evaluation.formulas import EFFECTIVE_HORIZON, horizon_of
from efhorizon.evaluation.records import GORP
from efhorizon.io.decode import plain
from efhorizon.render import numbers
from efhorizon.render.charts import marks
from efhorizon.render.charts.bars import layer_chart
from efhorizon.render.charts.histogram import HistogramScale, histogram_scale, return_axis, return_histogram
from efhorizon.render.charts.ladder import Rung, ladder
from efhorizon.render.html.action_returns import ActionReturns, action_returns
from efhorizon.render.html.changes import needed, shapings_tried, suggestions, unshaped
from efhorizon.render.html.entries import MdpEntry
from efhorizon.render.html.explanations import (
    figure,
    gap,
    horizon_text,
    ties,
    undecided,
    why_hard,
    will_it_learn,
    witness,
)
from efhorizon.render.html.mdp_practice import about_luck, commands, learning_curves, needed_by_runs, run_lines
from efhorizon.render.html.names import page_link
from efhorizon.render.html.paper_figures import paper_figures
from efhorizon.render.html.policy_changes import guided, is_variant, page_changes, variant_commands
from efhorizon.render.html.reasons import reasons_part
from efhorizon.render.learning_curves import ALGORITHM_TITLES, ALGORITHMS, best_settings
from efhorizon.study.analysis_record import AnyAnalysis, EpisodesForK, Figure, Replay, TableFigures, is_complete

_LONGEST_TITLE = 2_000  # characters: an analysis may come from anybody
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
class MeasureLine:
    title: str
    value: str
    interval: str | None  # of an estimate
    about: str  # how to read it, or why there is no value


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
class ReturnsLine:
    names: str
    q: str
    optimal_q: str
    is_optimal: bool
    histogram: Markup | None


def mdp_page(
    entry: MdpEntry,
    titles: Mapping[str, str],
    pictures: Mapping[str, str],
    entries: Mapping[str, MdpEntry] | None = None,
) -> dict[str, Any]:
    """What the template needs; `pictures` are links to those that were copied, by their name in the analysis, and
    `entries` all MDPs by name."""
    worded = guided if is_variant(entry) else str
    analysis = entry.analysis
    paper = paper_figures(entry.name)
    shaped_from = unshaped(entry)
    actions = [] if analysis is None or analysis.deciding is None else action_returns(analysis.deciding)
    scale = _returns_scale(actions)
    layers = [] if analysis is None or analysis.table is None else analysis.table.layers
    return {
        "entry": entry,
        "analysis": analysis,
        "title": entry.name,
        "suite": marks.suite_colour(entry.suite),
        "suite_title": marks.suite_title(entry.suite),
        "shaped_from": shaped_from,
        "shaped_link": None if shaped_from is None else page_link(shaped_from).removeprefix("mdps/"),
        "facts": facts(entry, paper),
        "forecast": [] if analysis is None else [worded(sentence) for sentence in will_it_learn(analysis)],
        "why": [] if analysis is None else [worded(sentence) for sentence in why_hard(analysis)],
        "reasons": reasons_part(analysis, pictures),
        "suggestions": suggestions(analysis),
        "tried": shapings_tried(entry, entries or {}),
        "play": worded("random play"),
        **page_changes(entry, entries or {}),
        "bounds": bound_lines(entry, titles, paper),
        "bounds_chart": bounds_chart(entry, titles),
        "measures": measure_lines(entry, titles),
        "horizons": [] if analysis is None else horizon_lines(analysis),
        "ties": "" if analysis is None else ties(analysis.figures),
        "returns": returns_lines(actions, scale),
        "returns_axis": None if scale is None else return_axis(scale),
        "gap": "" if analysis is None else worded(gap(analysis)),
        "undecided": "" if analysis is None else undecided(analysis.figures),
        "learning_chart": learning_curves(entry),
        "runs": run_lines(entry.settings),
        "about_luck": None if (luck := about_luck(entry)) is None else worded(luck),
        "layers": layer_chart(layers) if len(layers) > 1 else None,
        "start_picture": None if analysis is None else pictures.get(analysis.start_picture or ""),
        "deciding_picture": _deciding_picture(analysis, pictures),
        **_told(analysis),
        "episode": _episode(analysis, pictures),
        "build_lines": [] if analysis is None else build_lines(analysis),
        "commands": variant_commands(entry) or commands(entry),
    }


def _told(analysis: AnyAnalysis | None) -> dict[str, str]:
    """What is observed, what environments draw as text, and why something is missing; empty where there is nothing."""
    deciding = None if analysis is None else analysis.deciding
    found = {
        "start_observation": None if analysis is None else analysis.start_observation,
        "start_drawing": None if analysis is None else analysis.start_drawing,
        "deciding_observation": None if deciding is None else deciding.observation,
        "deciding_drawing": None if deciding is None else deciding.drawing,
        "picture_note": None if analysis is None else analysis.picture_note,
        "observation_note": None if analysis is None else analysis.observation_note,
    }
    return {name: text if isinstance(text, str) else "" for name, text in found.items()}


def facts(entry: MdpEntry, paper: Mapping[str, str]) -> list[Fact]:
    """The numbers at the top of the page."""
    summary, analysis = entry.summary, entry.analysis
    title, merged_from = "effective horizon H", None
    worded = guided if is_variant(entry) else str
    known: tuple[Figure, ...]
    if analysis is not None:
        figures, raw = analysis.figures, None if analysis.table is None else analysis.table.num_raw_states
        merged_from = None if raw is None else f"merged from {numbers.count(raw)}"
        kind = figures.effective_horizon.kind
        horizon = Fact(title, horizon_text(figures), kind, paper.get("effective_horizon"))
        known = (
            *(figures.min_k, figures.epw, figures.horizon, figures.num_actions, figures.num_states),
            *(figures.optimal_return, figures.exploration_return, figures.optimal_return_probability),
        )
    else:
        assert summary is not None  # an entry has at least one of them
        kind = summary.effective_horizon_kind
        sign = "" if kind == "exact" else "≤ "
        horizon = Fact(title, sign + numbers.decimal(summary.effective_horizon), kind)
        known = (
            *(summary.k_min, summary.epw, summary.horizon, summary.num_actions, summary.num_states),
            *(summary.reward_optimal, summary.reward_exploration, summary.reward_optimal_probability),
        )
    min_k, epw, steps, num_actions, num_states, optimal_return, exploration_return, probability = known
    return [
        horizon,
        Fact("least k, k-QVI-solvable", figure(min_k), paper=paper.get("min_k")),
        Fact("effective planning window", figure(epw), paper=paper.get("epw")),
        Fact("horizon T", figure(steps)),
        Fact("actions A", figure(num_actions)),
        Fact("states", _states(num_states), merged_from, paper.get("num_states")),
        Fact("optimal return", figure(optimal_return)),
        Fact(worded("return of random play"), figure(exploration_return)),
        Fact(worded("chance that a random episode is optimal"), figure(probability)),
        *(_practice_fact(entry, algorithm, paper) for algorithm in ALGORITHMS),
    ]


def bound_lines(entry: MdpEntry, titles: Mapping[str, str], paper: Mapping[str, str]) -> list[BoundLine]:
    """Every bound, the smallest first."""
    bounds = entry.bounds()
    worded = guided if is_variant(entry) else str
    return [
        BoundLine(
            title=_title(name, titles, entry),
            value=_bound_value(bounds[name]),
            witness="" if entry.analysis is None else worded(witness(name, entry.analysis.figures)),
            is_own=name == EFFECTIVE_HORIZON,
            paper=paper.get(f"bound_{name}"),
        )
        for name in sorted(bounds, key=lambda name: _end(bounds[name]))
    ]


def measure_lines(entry: MdpEntry, titles: Mapping[str, str]) -> list[MeasureLine]:
    """Other measures of hardness, in the order in which they were computed."""
    if entry.analysis is None or not is_complete(entry.analysis) or entry.analysis.figures.measures is UNSET:
        return []
    return [
        MeasureLine(
            title=_title(name, titles, entry),
            value=numbers.significant(found.value),
            interval=None
            if found.low is None
            else f"{numbers.significant(found.low)} to {numbers.significant(found.high)}",
            about=found.reason or f"{found.harder} is harder" + (f"; {found.note}" if found.note else ""),
        )
        for name, found in entry.analysis.figures.measures.items()
    ]


def bounds_chart(entry: MdpEntry, titles: Mapping[str, str]) -> Markup | None:
    """Bounds and practice on one axis; not for unfinished tables, whose bounds are intervals."""
    bounds = {name: value for name, value in entry.bounds().items() if not isinstance(value, Interval)}
    if not bounds or entry.summary is None:
        return None
    reasons = {} if entry.analysis is None else entry.analysis.figures.reasons
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
            rungs.append(
                Rung(f"{ALGORITHM_TITLES[algorithm]}, needed", log10, "practice", runs, entry.budget(algorithm))
            )
    return ladder(rungs, name=entry.name)


def horizon_lines(analysis: AnyAnalysis) -> list[HorizonLine]:
    """H_k = k + log_A m for each k that was tried."""
    num_actions, effective = analysis.figures.num_actions, analysis.figures.effective_horizon

    def horizon(k: int, m: int | None) -> str:
        return numbers.MISSING if m is None else numbers.decimal(horizon_of(num_actions, k, m))

    return [
        HorizonLine(
            k=k,
            exact=horizon(k, entry.exact_m),
            exact_m=numbers.steps(entry.exact_m),
            upper=horizon(k, entry.upper_m),
            upper_m=numbers.steps(entry.upper_m),
            theorem=horizon(k, entry.theorem_m),
            theorem_m=numbers.steps(entry.theorem_m),
            note=_horizon_note(entry),
            is_best=k == effective.k,
        )
        for k, entry in sorted(effective.by_k.items())
    ]


def returns_lines(actions: Sequence[ActionReturns], scale: HistogramScale | None) -> list[ReturnsLine]:
    """The actions of the deciding state, the one that looks best first."""
    lines = []
    for action in sorted(actions, key=lambda action: -action.q):
        names = ", ".join(action.names)
        histogram = None
        if action.histogram is not None and scale is not None:
            histogram = return_histogram(
                action.histogram.returns,
                action.histogram.probabilities,
                scale=scale,
                mean=action.q,
                name=names,
                is_optimal=action.is_optimal,
            )
        lines.append(
            ReturnsLine(
                names,
                numbers.significant(action.q),
                numbers.significant(action.optimal_q),
                action.is_optimal,
                histogram,
            )
        )
    return lines


def build_lines(analysis: AnyAnalysis) -> list[tuple[str, str]]:
    """Where the table comes from."""
    table = analysis.table or TableFigures()
    seconds = {} if analysis.seconds is None else plain(analysis.seconds)
    provenance = {} if analysis.provenance is None else plain(analysis.provenance)
    lines = [
        ("fingerprint", table.fingerprint),
        ("game", analysis.game),
        ("frameskip", None if table.frameskip is None else str(table.frameskip)),
        ("shaping", analysis.shaping),
        ("exploration policy", analysis.policy),
        ("verified", None if table.verification is None else _verified(table.verification)),
        *((f"time to {stage}", numbers.seconds(taken)) for stage, taken in seconds.items() if taken is not None),
        *((name, _plain(value)) for name, value in provenance.items() if name in _PROVENANCE_SHOWN and value),
    ]
    return [(name, value) for name, value in lines if value]


def short_title(title: str) -> str:
    """A bound's title without its source."""
    return title.split(" (")[0].removesuffix(", GORP").removesuffix(", every pair visited")


def _title(name: str, titles: Mapping[str, str], entry: MdpEntry) -> str:
    own = {} if entry.analysis is None else entry.analysis.titles
    return (titles.get(name) or own.get(name) or name)[:_LONGEST_TITLE]


def _states(value: Figure) -> str:
    return numbers.count(value) if isinstance(value, int) else figure(value)


def _practice_fact(entry: MdpEntry, algorithm: str, paper: Mapping[str, str]) -> Fact:
    return Fact(f"{ALGORITHM_TITLES[algorithm]}, timesteps", needed(entry, algorithm), paper=paper.get(algorithm))


def _bound_value(value: float | Interval) -> str:
    if isinstance(value, Interval):
        high = numbers.INFINITE if value.high is None else numbers.from_log10(value.high)
        return f"{numbers.from_log10(value.low)} to {high}"
    return numbers.from_log10(value)


def _end(value: float | Interval) -> float:
    return value.low if isinstance(value, Interval) else value


def _horizon_note(entry: EpisodesForK) -> str:
    if entry.method == "exact":
        return ""
    if entry.method is not None:
        return f"upper bound by {entry.method}" + (f"; not exact: {entry.exact_reason}" if entry.exact_reason else "")
    return entry.exact_reason or entry.upper_reason or entry.theorem_reason or ""


def _returns_scale(actions: Sequence[ActionReturns]) -> HistogramScale | None:
    known = [action.histogram for action in actions if action.histogram is not None]
    return histogram_scale([(each.returns, each.probabilities) for each in known]) if known else None


def _deciding_picture(analysis: AnyAnalysis | None, pictures: Mapping[str, str]) -> str | None:
    if analysis is None or analysis.deciding is None:
        return None
    return pictures.get(analysis.deciding.picture or "")


@dataclass(frozen=True)
class EpisodePlayer:
    """What the player of an optimal episode needs."""

    picture: str  # link
    data: Mapping[str, object]
    total: str


def _episode(analysis: AnyAnalysis | None, pictures: Mapping[str, str]) -> EpisodePlayer | None:
    if analysis is None or analysis.episode is None or analysis.episode.picture not in pictures:
        return None
    data = plain(analysis.episode)
    return EpisodePlayer(pictures[data.pop("picture")], data, numbers.significant(sum(analysis.episode.rewards)))


def _verified(replay: Replay) -> str:
    """How the table was checked against its environment."""
    if replay.verified and replay.pairs and replay.pairs_replayed:
        exact = "exact: " if replay.exact else ""
        share = f"{replay.pairs_replayed:,} of {replay.pairs:,} state-action pairs"
        return f"{exact}{share} replayed in fresh processes; no difference was found"
    if replay.verified and replay.episodes is not None and replay.steps is not None:
        return (
            f"{replay.episodes:,} episodes with {replay.steps:,} steps, replayed from reset in a fresh process; no "
            "difference was found"
        )
    return _plain(plain(replay))


def _plain(value: Any) -> str:
    """Anything from a JSON file as short text."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_plain(inner) for inner in value)
    return str(value)
