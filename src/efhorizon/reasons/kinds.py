"""The rules that name a difficulty; docs/why.md tells them with examples.

If the right action of a state does not have the larger mean, no number of episodes helps: rewards mislead. Else the
cost of the state is taken apart into factors, each of which would be 1 if the MDP did not have that difficulty, and the
largest one names it. With

    p      the chance that an episode shows something at all (`Decision.seen_chance`)
    n, n2  episodes to choose right there in 9 of 10 cases, among all actions, or only between the right one and the
           one that is hardest to tell from it
    d      log_A(1 / p), the number of random actions that have to be right for an episode to show anything
    a      A / 6, but at least 1: how many times more actions than are ordinary
    r      the number of times among which first mistakes spread; at least success times the steps that can go wrong
    T, D   the horizon, and the steps that are needed with success no worse at the same m

they are

    sparse   (1 / p) / a^d       noise    n2 p              long    r m / n
    actions  a^(1 + d) n / n2    horizon  (T / D)^2

where n and n2 count as m at most, for a wrong choice that is forgiven need not be avoided, and in `sparse` 1 / p as n2
at most: what one episode decides is not sparse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

from efhorizon.bounds.why import Kind

KINDS: tuple[Kind, ...] = get_args(Kind)
ORDINARY_ACTIONS = 6  # the most that MiniGrid needs
DECIDED = 0.9  # the chance with which a state counts as decided
LEAST_FACTOR = 2.0  # what costs less than this factor is no difficulty

TITLES: dict[Kind, str] = {
    "sparse": "rewards too sparse for exploration",
    "misleading": "misleading rewards",
    "noise": "noise of later rewards drowns the choice",
    "long": "a long way that must be right at every step",
    "actions": "too many actions",
    "horizon": "a horizon too long",
}


@dataclass(frozen=True)
class Evidence:
    """What is known of one state of an MDP, and of the MDP."""

    num_actions: int
    horizon: int
    needed: int  # steps
    m: int
    steps_at_risk: float
    seen_chance: float | None = None  # p; None where returns have no distribution that can be had
    episodes: int | None = None  # n
    pair_episodes: int | None = None  # n2
    misleads: bool = False


def factors(evidence: Evidence) -> dict[Kind, float]:
    """What each difficulty multiplies the cost by; infinite for misleading rewards, which no m overcomes."""
    if evidence.misleads:
        return {"misleading": math.inf}
    m = evidence.m
    pair_episodes = evidence.pair_episodes or evidence.episodes or m
    episodes = max(evidence.episodes or pair_episodes, pair_episodes)
    seen = max(evidence.seen_chance or 1.0, 1 / pair_episodes)
    excess = max(1.0, evidence.num_actions / ORDINARY_ACTIONS)
    depth = math.log(1 / seen) / math.log(evidence.num_actions) if evidence.num_actions > 1 else 0.0
    n, n2 = min(episodes, m), min(pair_episodes, m)
    return {
        "sparse": max(1.0, min(1 / seen, n2) / excess**depth),
        "noise": max(1.0, n2 * seen),
        "long": max(1.0, evidence.steps_at_risk * m / n),
        "actions": max(1.0, excess ** (1 + depth) * n / n2),
        "horizon": max(1.0, (evidence.horizon / evidence.needed) ** 2),
    }


def kind_of(found: dict[Kind, float]) -> Kind:
    """The largest factor; of equal ones, the first in the order of KINDS."""
    return max(KINDS, key=lambda kind: (found.get(kind, 0.0), -KINDS.index(kind)))
