"""What to try, from a diagnosis: sentences that follow from what was measured."""

from __future__ import annotations

import math

from efhorizon.diagnose.diagnosis import Diagnosis

_RARE = 0.01  # share of random episodes with any reward
_OFTEN = 0.3  # share of random episodes that reach the best return
_WIDE = 4.0  # high / low of an interval that more steps should narrow
_SHORT = 0.2  # part of the horizon that random episodes last


def what_to_try(found: Diagnosis) -> list[str]:
    """The advice, most important first."""
    said = []
    play, best = found.random_play, found.best_k
    if play.best_return == play.worst_return and best is None:
        said.append(
            "Random play sees no differences in return at all: shape the rewards, or start nearer to the goal; without "
            "that nothing that explores at random will learn."
        )
    elif play.rewarded.estimate < _RARE:
        said.append(
            f"Only {play.rewarded.estimate:.2%} of random episodes are rewarded: reward subgoals on the way (what-if "
            "tries potentials on a table), or explore with a better policy."
        )
    if found.optimal_chance > _OFTEN and best is not None:
        said.append("Random episodes often reach the best return already: almost any learner will do.")
    first, second = found.by_k.get(1), found.by_k.get(2)
    if first is not None and first.reaches_best is False and second is not None and second.reaches_best:
        said.append("Looking one step ahead settles on wrong actions, two steps do not: use n-step returns.")
    if play.mean_length.estimate < _SHORT * found.horizon and play.worst_return == play.return_quantiles[2]:
        said.append("Random episodes end early: begin where they survive, or make early ends cost less.")
    if found.horizon >= 200 and play.rewarded.estimate < 0.5:
        said.append("Episodes are long: repeating each action some times makes the horizon shorter.")
    if best is None:
        said.append("A larger budget (--max-steps, --max-minutes) or a known --best-return would say more.")
    elif best.m is not None and (not math.isfinite(best.m.high) or best.m.width > _WIDE):
        said.append("The interval is wide: the same command with a larger budget continues and narrows it.")
    if not said:
        said.append("Nothing stands out: the gaps on the path are what decides the cost.")
    return said
