"""The reasons as sentences, for the terminal, Markdown and HTML alike: plain text without markup."""

from __future__ import annotations

import math

from efhorizon.bounds.why import Kind, Reason, Why
from efhorizon.reasons.kinds import TITLES

_NOTHING = "no reasons were looked for"


def headline(why: Why) -> str:
    """The kind of difficulty, and what is known about it, in one or two sentences."""
    if why.success is None:
        return _sentence(why.note or _NOTHING)
    if not why.reasons:
        return _sentence(why.note or "GORP hardly ever goes wrong")
    title = _capital(TITLES[why.reasons[0].kind])
    if why.reasons[0].wrong is None or not why.reasons[0].share:
        return f"{title}. {_sentence(why.note or '')}".rstrip()
    near = "" if why.error < 0.005 else f" (± {percent(why.error)})"
    about = (
        f"With {_count(why.m or 0, 'episode')} per action and one step of lookahead GORP succeeds "
        f"{percent(why.success)} of the time{near}."
    )
    return " ".join(filter(None, [f"{title}.", about, _sentence(why.note) if why.note else ""]))


def sentences(why: Why) -> list[str]:
    """One paragraph for each reason."""
    return [sentence(reason, why) for reason in why.reasons]


def remainder(why: Why) -> str:
    """Where the other first mistakes are made; empty if there are none."""
    others = why.num_places - len(why.reasons)
    if others < 1 or why.elsewhere < 0.0005:
        return ""
    return f"The other {percent(why.elsewhere)} of first mistakes are made at {_count(others, 'other place')}."


def sentence(reason: Reason, why: Why) -> str:
    """Where GORP loses its chance, by how much, and what kind of difficulty it is."""
    if not reason.share:
        return f"{where(reason)}: {TITLES[reason.kind]}; {detail(reason, why)}."
    width = reason.interval[1] - reason.interval[0]
    interval = f" ({percent(reason.interval[0])} to {percent(reason.interval[1])})" if width > 0.01 else ""
    wrong = "" if reason.wrong is None else f" instead of {reason.wrong.name}"
    return (
        f"{where(reason)}: {percent(reason.share)} of all first mistakes. Playing {reason.right.name}{wrong} "
        f"here alone would avoid {percent(reason.avoided)} of GORP's failures{interval}. "
        f"{_capital(TITLES[reason.kind])}: {detail(reason, why)}.{deciding(reason)}"
    )


def where(reason: Reason) -> str:
    """State and times of a reason."""
    others = {
        "state": "",
        "look": " that look alike",
        "stage": f" as far from the next reward ({_count(reason.steps_to_reward or 0, 'step')})",
    }[reason.merged]
    alike = f" and {_count(reason.num_states - 1, 'other')}{others}" if reason.num_states > 1 else ""
    first, last = reason.times
    return f"State {reason.state}{alike}, {f'time {first}' if first == last else f'times {first} to {last}'}"


def detail(reason: Reason, why: Why) -> str:
    """What the kind of difficulty means in this state, with its numbers."""
    factor = reason.factors[reason.kind]
    right, wrong = reason.right, reason.wrong
    if reason.kind == "misleading" and wrong is not None:
        deep = (
            ""
            if reason.depth is None
            else f"; it takes {reason.depth} steps of planning to see that {right.name} is right"
        )
        earned = f"{wrong.name} earns {_figure(wrong.q)} on average if play is random then"
        return f"{earned}, {right.name} {_figure(right.q)}{deep}"
    details: dict[Kind, str] = {
        "sparse": f"one episode in {_times(factor)} shows that {right.name} is better",
        "noise": f"what comes later varies so much that it takes {_times(factor)} times the episodes",
        "long": f"the mistakes of many steps add up; one step alone would cost {_times(factor)} times less",
        "actions": f"with six actions it would cost {_times(factor)} times less",
        "horizon": f"without steps that decide nothing it would cost {_times(factor)} times less",
    }
    return details[reason.kind]


def deciding(reason: Reason) -> str:
    """How many episodes it takes to decide this state; empty where no number does, or none is known."""
    if reason.episodes_90 is None:
        return ""
    return f" {_count(reason.episodes_90, 'episode')} per action would choose right here in 9 of 10 cases."


def percent(share: float) -> str:
    """0.463 as 46%; small shares with one digit."""
    if 0 < share < 0.0005:
        return "under 0.1%"
    return f"{100 * share:.0f}%" if share >= 0.0995 or share == 0 else f"{100 * share:.1f}%"


def _times(factor: float) -> str:
    if not math.isfinite(factor):
        return "∞"
    return f"{factor:,.0f}" if factor >= 10 else f"{factor:.1f}"


def _figure(value: float) -> str:
    return f"{value:.3g}"


def _count(number: int, one: str) -> str:
    return f"{number:,} {one}" + ("" if number == 1 else "s")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentence(text: str) -> str:
    return _capital(text) + ("" if text.endswith(".") or not text else ".")
