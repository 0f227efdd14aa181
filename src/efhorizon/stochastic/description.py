"""A stochastic table at a glance, for JSON and for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from efhorizon.stochastic.mdp import StochasticMDP
from efhorizon.stochastic.planning import Plan


def description(mdp: StochasticMDP, path: Path) -> dict[str, Any]:
    """Sizes, probabilities, rewards and returns."""
    plan = Plan(mdp)
    return {
        "id": mdp.metadata.get("id"),
        "stochastic": True,
        "sticky": mdp.sticky,
        "num_states": mdp.num_states,
        "num_actions": mdp.num_actions,
        "horizon": mdp.horizon,
        "num_outcomes": mdp.num_outcomes,
        "most_outcomes": int(np.diff(mdp.offsets).max()),
        "num_initial_states": len(mdp.initial_states),
        "num_reachable_pairs": plan.layers.num_pairs,
        "exact": mdp.is_exact,
        "probabilities": [str(fraction) for fraction in sorted(mdp.probability_fractions())],
        "rewards": mdp.reward_values.tolist(),
        "optimal_return": plan.optimal.values.at_start,
        "random_return": plan.exploration().at_start,
        "worst_return": plan.worst.at_start,
        "fingerprint": mdp.fingerprint(),
        "path": str(path),
    }
