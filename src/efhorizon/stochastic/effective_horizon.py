"""The stochastic effective horizon of Laidlaw, Zhu, Russell and Dragan (2024).

    gap      Delta_k = min over (t, s) of  max_a Q^k_t(s, a) - max over the actions that do not attain it
    horizon  H_k = k + log_A(1 / Delta_k^2)   if the MDP is k-QVI-solvable, else infinite;     H = min_k H_k

The minimum is over the (time, state) pairs that can be reached; pairs in which all actions tie do not count. Rewards
count as they are; the theorem behind H is about returns between 0 and 1, so `normalised` divides the gap by the spread
of returns (best minus worst). An MDP counts as k-QVI-solvable here if every greedy action is within 1e-4 of optimal,
as in the paper's experiments; `strict` asks for exactly optimal ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from efhorizon.stochastic.sweeps import Sweep


@dataclass(frozen=True)
class StochasticHorizon:
    value: float | None  # None: no k that was looked at is solvable with a gap that floats can measure
    k: int | None
    gap: float | None  # Delta_k
    is_minimum: bool  # False: a k that was not looked at might give less
    reason: str | None = None


def horizon_of(sweep: Sweep, num_actions: int, *, spread: float = 1.0, reached: bool = False) -> float | None:
    """H_k from the gap of one Q-function, or None if floats cannot tell its least gap from a tie."""
    if sweep.gap_undecided:
        return None
    gap = sweep.reached_gap if reached else sweep.gap
    if gap is None:  # every policy is optimal
        return float(sweep.k)
    return sweep.k + math.log(spread**2 / gap**2) / _log_base(num_actions)


def stochastic_horizon(
    looked_at: list[Sweep],
    num_actions: int,
    spread: float,
    *,
    strict: bool = False,
    normalised: bool = False,
    reached: bool = False,
    complete: bool = True,
) -> StochasticHorizon:
    """min over k of H_k, from the sweeps for k = 1, 2, ...; see the module."""
    scale = spread if normalised and spread > 0 else 1.0
    best: tuple[float, Sweep] | None = None
    undecided = 0
    for sweep in looked_at:
        if not (sweep.solvable if strict else sweep.close):
            continue
        value = horizon_of(sweep, num_actions, spread=scale, reached=reached)
        if value is None:
            undecided += 1
        elif best is None or value < best[0]:
            best = value, sweep
    reason = f"for {undecided} k, floats cannot tell the least gap from a tie" if undecided else None
    if best is None:
        return StochasticHorizon(None, None, None, complete, reason or "no k that was looked at is solvable")
    gap = best[1].reached_gap if reached else best[1].gap
    return StochasticHorizon(best[0], best[1].k, gap, complete, reason)


def can_improve(best: float | None, k: int, num_actions: int, spread: float) -> bool:
    """Whether a larger k than this one can have a smaller H_k: no gap is larger than the spread of returns."""
    if best is None:
        return True
    least = 2 * math.log(spread) / _log_base(num_actions) if spread > 0 else 0.0
    return k + 1 - least < best


def _log_base(num_actions: int) -> float:
    return math.log(max(2, num_actions))  # one action: nothing to find; the base must not be 1
