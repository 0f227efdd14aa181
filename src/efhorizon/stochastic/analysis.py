"""How hard a stochastic MDP is: least k, planning window, returns of greedy policies, gaps, horizon and bounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from efhorizon.stochastic.bounds import (
    NOT_APPLICABLE,
    StochasticCoveringLength,
    StochasticUcb,
    covering_length,
    ucb,
)
from efhorizon.stochastic.effective_horizon import (
    StochasticHorizon,
    can_improve,
    horizon_of,
    stochastic_horizon,
)
from efhorizon.stochastic.mdp import StochasticMDP
from efhorizon.stochastic.planning import Plan
from efhorizon.stochastic.sticky import num_published_states
from efhorizon.stochastic.sweeps import Sweep, sweeps

BEHAVIOUR = 1  # raise it when the same table gets another analysis
GREEDY_RETURNS = 5  # J_1 .. J_5, as published


@dataclass(frozen=True)
class StochasticAnalysis:
    """All figures of one table. `sweeps` has one entry for each k that was looked at."""

    mdp: StochasticMDP
    num_states: int  # as the paper's authors count them; see `num_published_states`
    num_pairs: int
    optimal_return: float
    random_return: float
    worst_return: float
    min_k: int | None
    strict_min_k: int | None  # with every greedy action exactly optimal
    strict_min_k_undecided: bool
    epw: int | None
    greedy_returns: tuple[float, ...]
    sweeps: tuple[Sweep, ...]
    effective_horizon: StochasticHorizon
    normalised_horizon: StochasticHorizon
    strict_horizon: StochasticHorizon
    reached_horizon: StochasticHorizon
    ucb: StochasticUcb
    covering_length: StochasticCoveringLength

    def as_json(self) -> dict[str, Any]:
        mdp = self.mdp
        return {
            "id": mdp.metadata.get("id"),
            "horizon": mdp.horizon,
            "num_actions": mdp.num_actions,
            "sticky": mdp.sticky,
            "num_states": self.num_states,
            "num_table_states": mdp.num_states,
            "num_reachable_pairs": self.num_pairs,
            "min_k": self.min_k,
            "strict_min_k": self.strict_min_k,
            "strict_min_k_undecided": self.strict_min_k_undecided,
            "epw": self.epw,
            "optimal_return": self.optimal_return,
            "random_return": self.random_return,
            "worst_return": self.worst_return,
            "greedy_returns": list(self.greedy_returns),
            "effective_horizon": self.effective_horizon.value,
            "effective_horizon_k": self.effective_horizon.k,
            "effective_horizon_gap": self.effective_horizon.gap,
            "effective_horizon_is_minimum": self.effective_horizon.is_minimum,
            "effective_horizon_reason": self.effective_horizon.reason,
            "normalised_effective_horizon": self.normalised_horizon.value,
            "strict_effective_horizon": self.strict_horizon.value,
            "reached_effective_horizon": self.reached_horizon.value,
            "gaps": [
                {
                    "k": sweep.k,
                    "solvable": sweep.close,
                    "strictly_solvable": sweep.solvable,
                    "greedy_return": sweep.greedy_return,
                    "gap": None if sweep.gap_undecided else sweep.gap,
                    "undecided": sweep.gap_undecided,
                    "reached_gap": sweep.reached_gap,
                    "effective_horizon": horizon_of(sweep, mdp.num_actions) if sweep.close else None,
                }
                for sweep in self.sweeps
            ],
            "bounds": {
                "ucb": asdict(self.ucb),
                "covering_length": asdict(self.covering_length),
                "not_applicable": NOT_APPLICABLE,
            },
        }


def analyze(
    mdp: StochasticMDP,
    *,
    exploration_policy: Any = None,
    seconds: float = float("inf"),
    on_progress: Callable[[str], None] | None = None,
) -> StochasticAnalysis:
    """All figures of a table. After `seconds`, larger k are no longer looked at, and the answer says so."""
    started = time.monotonic()
    say = on_progress or (lambda _: None)
    say("values")
    plan = Plan(mdp)
    optimal, random = plan.optimal.values.at_start, plan.exploration(exploration_policy)
    worst, random_return = plan.worst.at_start, random.at_start
    spread = optimal - worst
    found: list[Sweep] = []
    complete = True
    for sweep in sweeps(plan, random):
        found.append(sweep)
        say(f"k = {sweep.k}")
        done_least = any(each.close for each in found) and sweep.k >= min(GREEDY_RETURNS, mdp.horizon)
        bests = (
            stochastic_horizon(found, mdp.num_actions, spread).value,
            stochastic_horizon(found, mdp.num_actions, spread, strict=True).value,
        )
        strict_is_hopeless = bests[1] is None and bests[0] is not None and sweep.k > bests[0]
        improves = can_improve(bests[0], sweep.k, mdp.num_actions, spread) or (
            bests[1] is not None and can_improve(bests[1], sweep.k, mdp.num_actions, spread)
        )
        if done_least and (not improves or strict_is_hopeless):
            break
        if done_least and time.monotonic() - started > seconds:
            complete = sweep.k == mdp.horizon
            break
    window = None
    for sweep in sweeps(plan, plan.empty()):
        say(f"planning window {sweep.k}")
        if sweep.close:
            window = sweep.k
            break
    strict = [sweep.k for sweep in found if sweep.solvable]
    horizon = stochastic_horizon(found, mdp.num_actions, spread, complete=complete)
    strict_horizon = stochastic_horizon(found, mdp.num_actions, spread, strict=True, complete=complete)
    say("bounds")
    return StochasticAnalysis(
        mdp=mdp,
        num_states=num_published_states(mdp, plan.layers),
        num_pairs=plan.layers.num_pairs,
        optimal_return=optimal,
        random_return=random_return,
        worst_return=worst,
        min_k=next((sweep.k for sweep in found if sweep.close), None),
        strict_min_k=strict[0] if strict else None,
        strict_min_k_undecided=any(
            sweep.num_wrong == 0 and sweep.num_undecided > 0 and (not strict or sweep.k < strict[0]) for sweep in found
        ),
        epw=window,
        greedy_returns=tuple(sweep.greedy_return for sweep in found[:GREEDY_RETURNS]),
        sweeps=tuple(found),
        effective_horizon=horizon,
        normalised_horizon=stochastic_horizon(found, mdp.num_actions, spread, normalised=True, complete=complete),
        strict_horizon=replace(strict_horizon, is_minimum=complete and strict_horizon.value is not None),
        reached_horizon=stochastic_horizon(found, mdp.num_actions, spread, reached=True, complete=complete),
        ucb=ucb(plan),
        covering_length=covering_length(plan),
    )
