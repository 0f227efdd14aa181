"""Why an MDP is hard, as its page says it: the reasons of an analysis in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from markupsafe import Markup
from msgspec import UNSET
from msgspec.structs import asdict

from efhorizon.bounds.why import ActionReturns, Reason, Why
from efhorizon.reasons.sentences import headline, percent, remainder, sentences
from efhorizon.render import numbers
from efhorizon.render.charts.histogram import HistogramScale, histogram_scale, return_axis, return_histogram
from efhorizon.study.analysis_record import AnyAnalysis, CompleteFigures
from efhorizon.study.answer_record import ReasonAction, ReasonFigures, ReasonScene


@dataclass(frozen=True)
class ActionLine:
    """An action of a reason's state."""

    role: str  # right or wrong
    name: str
    mean: str
    chance: str  # of GORP to take it
    histogram: Markup | None


@dataclass(frozen=True)
class ReasonLine:
    """One place where GORP loses its chance."""

    share: str
    sentence: str
    actions: tuple[ActionLine, ...]
    axis: Markup | None  # of the histograms
    picture: str | None  # link
    observation: str
    drawing: str


@dataclass(frozen=True)
class ReasonsPart:
    """The second answer of a page."""

    headline: str
    lines: tuple[ReasonLine, ...]
    remainder: str


def reasons_part(analysis: AnyAnalysis | None, pictures: Mapping[str, str]) -> ReasonsPart | None:
    """None where nobody has looked for reasons; `pictures` are links by the names in the analysis."""
    why = None if analysis is None or not isinstance(analysis.figures, CompleteFigures) else _why(analysis.figures)
    if analysis is None or why is None:
        return None
    scenes = [] if analysis.reason_scenes is UNSET else analysis.reason_scenes
    lines = tuple(
        _line(reason, sentence, scene or ReasonScene(), pictures)
        for (reason, sentence), scene in zip_longest(
            zip(why.reasons, sentences(why), strict=True), scenes[: len(why.reasons)]
        )
    )
    return ReasonsPart(headline(why), lines, remainder(why))


def _line(reason: Reason, sentence: str, scene: ReasonScene, pictures: Mapping[str, str]) -> ReasonLine:
    known = [(role, each) for role, each in (("right", reason.right), ("wrong", reason.wrong)) if each is not None]
    drawn = [each for _, each in known if each.returns]
    scale = histogram_scale([(each.returns, each.probabilities) for each in drawn]) if drawn else None
    return ReasonLine(
        share=percent(reason.share),
        sentence=sentence,
        actions=tuple(
            ActionLine(
                role=role,
                name=each.name,
                mean=numbers.significant(each.q, 4),
                chance=percent(each.chance),
                histogram=None if scale is None or not each.returns else _histogram(each, scale, role == "right"),
            )
            for role, each in known
        ),
        axis=None if scale is None else return_axis(scale),
        picture=pictures.get(scene.picture or ""),
        observation=scene.observation if isinstance(scene.observation, str) else "",
        drawing=scene.drawing if isinstance(scene.drawing, str) else "",
    )


def _histogram(action: ActionReturns, scale: HistogramScale, is_optimal: bool) -> Markup:
    return return_histogram(
        action.returns, action.probabilities, scale=scale, mean=action.q, name=action.name, is_optimal=is_optimal
    )


def _why(figures: CompleteFigures) -> Why | None:
    if figures.why is UNSET or figures.why_basis is UNSET:
        return None
    basis = figures.why_basis
    return Why(
        reasons=tuple(_reason(each) for each in figures.why),
        m=basis.m,
        success=basis.success,
        error=basis.error,
        method=basis.method,
        together=basis.together,
        note=basis.note,
    )


def _reason(figures: ReasonFigures) -> Reason:
    content = asdict(figures)
    content["states"] = tuple(figures.states)
    content["right"] = _action(figures.right)
    content["wrong"] = None if figures.wrong is None else _action(figures.wrong)
    content["factors"] = {kind: math.inf if value is None else value for kind, value in figures.factors.items()}
    return Reason(**content)


def _action(figures: ReasonAction) -> ActionReturns:
    content = asdict(figures)
    return ActionReturns(**content | {name: tuple(content[name]) for name in ("returns", "probabilities")})
