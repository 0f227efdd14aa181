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
    """What right play at all of these places would do; empty for a single one."""
    if len(why) < 2 or not why.together:
        return ""
    return f"Right play at all {len(why)} places would avoid {percent(why.together)} of GORP's failures."


def sentence(reason: Reason, why: Why) -> str:
    """Where GORP loses its chance, how much of it, and what kind of difficulty it is."""
    if not reason.share:
        return f"{where(reason)}: {TITLES[reason.kind]}; {detail(reason, why)}."
    width = reason.interval[1] - reason.interval[0]
    interval = f" ({percent(reason.interval[0])} to {percent(reason.interval[1])})" if width > 0.01 else ""
    wrong = "" if reason.wrong is None else f", {quoted(reason.wrong.name)} {percent(reason.wrong.chance)}"
    right = quoted(reason.right.name)
    return (
        f"{where(reason)}: playing {right} here alone would avoid {percent(reason.share)} of GORP's failures"
        f"{interval}. At time {reason.time} it takes {right} {percent(reason.right.chance)} of the time{wrong}. "
        f"{_capital(TITLES[reason.kind])}: {detail(reason, why)}.{deciding(reason)}"
    )


def where(reason: Reason) -> str:
    """States and times of a reason."""
    others = len(reason.states) - 1
    alike = f" and {_count(others, 'other')} that look{'s' if others == 1 else ''} alike" if others else ""
    first, last = reason.times
    return f"State {reason.state}{alike}, {f'time {first}' if first == last else f'times {first} to {last}'}"


def detail(reason: Reason, why: Why) -> str:
    """What the kind of difficulty means in this state, with its numbers."""
    factor = reason.factors[reason.kind]
    right, wrong = quoted(reason.right.name), reason.wrong
    if reason.kind == "misleading" and wrong is not None:
        deep = (
            "" if reason.depth is None else f"; it takes {reason.depth} steps of planning to see that {right} is right"
        )
        earned = f"{quoted(wrong.name)} earns {_figure(wrong.q)} on average with exploration from there on"
        return f"{earned}, {right} {_figure(reason.right.q)}{deep}"
    details: dict[Kind, str] = {
        "sparse": f"one episode in {_times(1 / reason.seen_chance if reason.seen_chance else factor)} shows that "
        f"{right} is better",
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


def quoted(name: str) -> str:
    """The name of an action, which may be "left" or "right"."""
    return f"“{name}”"


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
