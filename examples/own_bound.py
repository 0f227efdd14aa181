"""A sample-complexity bound of your own: one decorated function.

The bound here is the expected cost of waiting for one optimal random episode, T / P(optimal). Prints every bound on an
MDP whose rewards are delayed (Figure 2c of the paper), the new one last. In a package of your own, the entry point
group "efhorizon.bounds" makes `efhorizon analyze` and `efhorizon study` list it too.
"""

import efhorizon
from efhorizon.planning.occupancy import optimal_return_probability


@efhorizon.sample_complexity_bound("random_search", title="waiting for a lucky episode")
def random_search(problem):
    """T / P(a random episode is optimal)."""
    chance = optimal_return_probability(problem.timeline, problem.optimal, problem.policy)
    return round(problem.mdp.horizon / chance)


analysis = efhorizon.analyze(efhorizon.examples.delayed_rewards(horizon=8, num_actions=3))
for name, bound in analysis.bounds.items():
    timesteps = f"{bound.sample_complexity:,}" if bound.sample_complexity else f"none: {bound.reason}"
    print(f"{analysis.titles[name]:45} {timesteps}")
