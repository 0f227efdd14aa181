"""The state that decides the effective horizon: what its actions are worth, and the returns that follow each."""

from __future__ import annotations

import numpy as np

from efhorizon.bounds.analysis import Analysis
from efhorizon.gorp.decisions import TooManySequencesError, choices_at
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import Problem
from efhorizon.planning.return_units import NoLatticeError
from efhorizon.planning.sweeps import Witness
from efhorizon.reasons.histogram import histogram
from efhorizon.study.analysis_record import DecidingAction, DecidingState, ReturnHistogram
from efhorizon.study.drawings import Pictures, drawn, told
from efhorizon.suites.action_names import action_names

_MAX_LATTICE_POINTS = 1 << 22  # lattice points: beyond these a histogram is left out


def deciding_state(
    given: Problem, analysis: Analysis, mdp: TabularMDP, name: str, pictures: Pictures
) -> DecidingState | None:
    """The state that decides, as a state of the MDP, where `given` may tell more states apart."""
    witness = analysis.deciding
    if witness is None:
        return None
    state = state_of(given.mdp, witness.state)
    names = action_names(given.mdp.metadata, given.mdp.num_actions)
    histograms = _histograms(given, witness)
    is_optimal = given.optimal.actions[witness.pair].tolist()
    observation, drawing = told(mdp, state)
    return DecidingState(
        k=witness.k,
        time=witness.time,
        state=state,
        picture=drawn(mdp, state, name, pictures),
        observation=observation,
        drawing=drawing,
        actions=[
            DecidingAction(
                action=action,
                name=names[action],
                q=witness.q_values[action],
                optimal_q=witness.optimal_q_values[action],
                is_optimal=is_optimal[action],
                histogram=histograms[action],
            )
            for action in range(given.mdp.num_actions)
        ],
    )


def state_of(mdp: TabularMDP, state: int) -> int:
    """The state of the MDP that a state is, which may also hold the screens before it."""
    return state if mdp.base_states is None else int(mdp.base_states[state])


def _histograms(given: Problem, witness: Witness) -> list[ReturnHistogram | None]:
    """For each action the exact distribution of returns: the best k actions that begin with it, then exploring.

    Its mean is Q^k. The best k actions are those whose distribution has the largest mean.
    """
    try:
        options = choices_at(given, np.array([witness.pair]), witness.k)
        after = given.return_distributions(options.group_ends, max_points=_MAX_LATTICE_POINTS)
    except (NoLatticeError, TooManySequencesError):
        return [None] * given.mdp.num_actions
    found = []
    means = options.group_prefixes + after.moments().mean
    for action in range(given.mdp.num_actions):
        groups = options.arm_groups[options.arm_actions == action]
        best = int(groups[means[groups].argmax()])
        least, mass = after.of(best)
        positive = np.flatnonzero(mass)
        found.append((float(after.unit) * (int(options.group_prefixes[best]) + least + positive), mass[positive]))
    low = min(float(returns[0]) for returns, _ in found)
    high = max(float(returns[-1]) for returns, _ in found)
    bars = [histogram(distribution, low, high) for distribution in found]
    return [ReturnHistogram(returns=list(returns), probabilities=list(mass)) for returns, mass in bars]
