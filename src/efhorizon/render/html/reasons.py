"""Why an MDP is hard, as its page says it: the reasons of an analysis in sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

from msgspec import UNSET
from msgspec.structs import asdict

from efhorizon.bounds.why import ActionReturns, Reason, Why
from efhorizon.reasons.sentences import headline, percent, remainder, sentences
from efhorizon.render import numbers
from efhorizon.study.analysis_record import AnyAnalysis, CompleteFigures, ReasonAction, ReasonFigures


@dataclass(frozen=True)
class ReasonLine:
    """One place where GORP makes its first mistake."""

    share: str
    sentence: str
    actions: tuple[tuple[str, str, str], ...]  # right or wrong, its name, its mean return


@dataclass(frozen=True)
class ReasonsPart:
    """The second answer of a page."""

    headline: str
    lines: tuple[ReasonLine, ...]
    remainder: str


def reasons_part(analysis: AnyAnalysis | None) -> ReasonsPart | None:
    """None where nobody has looked for reasons."""
    why = None if analysis is None or not isinstance(analysis.figures, CompleteFigures) else _why(analysis.figures)
    if why is None:
        return None
    said = zip(why.reasons, sentences(why), strict=True)
    lines = tuple(ReasonLine(percent(reason.share), sentence, _actions(reason)) for reason, sentence in said)
    return ReasonsPart(headline(why), lines, remainder(why))


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
        num_places=basis.num_places,
        note=basis.note,
    )


def _reason(figures: ReasonFigures) -> Reason:
    content = asdict(figures)
    content["right"] = _action(figures.right)
    content["wrong"] = None if figures.wrong is None else _action(figures.wrong)
    content["factors"] = {kind: math.inf if value is None else value for kind, value in figures.factors.items()}
    return Reason(**content)


def _action(figures: ReasonAction) -> ActionReturns:
    content = asdict(figures)
    return ActionReturns(**content | {name: tuple(content[name]) for name in ("returns", "probabilities")})


def _actions(reason: Reason) -> tuple[tuple[str, str, str], ...]:
    known = (("right", reason.right), ("wrong", reason.wrong))
    return tuple((role, each.name, numbers.significant(each.q, 4)) for role, each in known if each is not None)
