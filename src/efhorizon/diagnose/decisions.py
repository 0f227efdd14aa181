"""One choice on the path: which actions are settled, how large the gap is, and how many episodes decide it.

With m episodes per sequence the difference of two means has the variance (s_1^2 + s_2^2) / m. By the normal
approximation the better one comes out on top with chance 0.9 if

    m = z^2 (s_1^2 + s_2^2) / gap^2,    z = 1.28,

for the closest sequence that begins with another action. The ends of the gap's interval give those of m. It is a
description of this one step; the interval for m_k itself comes from complete runs (`least_episodes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy.stats import norm

from efhorizon.diagnose.least_episodes import Interval
from efhorizon.diagnose.samples import Between, Sample, gap_between, mean_between, united, widened

OFTEN = 0.9  # a step is decided if so often the better action comes out on top
_Z = float(norm.ppf(OFTEN))

Sequence = tuple[int, ...]
Known = tuple[float, ...]


@dataclass(frozen=True)
class ActionValue:
    """An action and its Q^k: the best mean of the sequences that begin with it."""

    action: int
    value: Between
    episodes: int


@dataclass(frozen=True)
class Decision:
    """What sampling found at one step of the path."""

    action: int  # the greedy one
    actions: tuple[ActionValue, ...]  # all of them, in order
    gap: Between  # to the best other action
    m: Interval  # that decides this step; infinite where the actions cannot be distinguished
    has_signal: bool  # whether any two returns differ
    is_settled: bool  # whether the gap's interval lies above 0
    episodes: int


def decision(samples: Mapping[Sequence, Sample], num_actions: int, known: Known = ()) -> Decision:
    """The choice from samples of all sequences; `known` are the least and the largest return seen before."""
    everything = united(samples.values())
    lo, hi = _range(everything, known)
    leaders = _leaders(samples)
    action = max(leaders, key=lambda each: (samples[leaders[each]].mean, -each))
    others = {other: leaders[other] for other in leaders if other != action}
    values = tuple(
        ActionValue(
            each,
            mean_between(samples[leaders[each]], lo, hi),
            sum(sample.size for sequence, sample in samples.items() if sequence[0] == each),
        )
        for each in range(num_actions)
    )
    if not others:
        gap, m = Between(0.0, 0.0, 0.0), Interval(1, 1, 1)
    else:
        best = samples[leaders[action]]
        gaps = {other: gap_between(best, samples[sequence], lo, hi) for other, sequence in others.items()}
        closest = min(gaps, key=lambda each: (gaps[each].estimate, gaps[each].low))
        gap = gaps[closest]
        m = _episodes(best, samples[others[closest]], gap, lo, hi)
    return Decision(action, values, gap, m, everything.low < everything.high, gap.low > 0, everything.size)


def contenders(samples: Mapping[Sequence, Sample], known: Known = ()) -> list[Sequence]:
    """Sequences that more episodes could still put first, with the first one; only that one's if it is settled."""
    lo, hi = _range(united(samples.values()), known)
    leaders = _leaders(samples)
    best = leaders[max(leaders, key=lambda each: (samples[leaders[each]].mean, -each))]
    close = [
        sequence
        for sequence, sample in samples.items()
        if sequence[0] != best[0] and gap_between(samples[best], sample, lo, hi).low <= 0
    ]
    return [best, *close] if close else []


def _range(sample: Sample, known: Known) -> tuple[float, float]:
    return widened(min(sample.low, *known, sample.low), max(sample.high, *known, sample.high))


def _leaders(samples: Mapping[Sequence, Sample]) -> dict[int, Sequence]:
    """The best sequence for each first action."""
    leaders: dict[int, Sequence] = {}
    for sequence, sample in samples.items():
        known = leaders.get(sequence[0])
        if known is None or sample.mean > samples[known].mean:
            leaders[sequence[0]] = sequence
    return leaders


def _episodes(best: Sample, other: Sample, gap: Between, lo: float, hi: float) -> Interval:
    """How many episodes decide between two sequences."""
    spread = sum(each.variance_with(0.5, lo, hi)[1] * (each.size + 1) for each in (best, other))

    def needed(difference: float) -> float:
        return math.inf if difference <= 0 else max(1.0, math.ceil(_Z * _Z * spread / difference**2))

    return Interval(needed(gap.high), needed(gap.estimate), needed(gap.low))
