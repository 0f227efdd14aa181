"""The features of an MDP like many of the study's, for tests of forecasts."""

from efhorizon.forecast.features import Features

USUAL = Features(
    bound=6.0,
    bound_kind="exact",
    min_k=1,
    num_states=264,
    window=11,
    horizon=100,
    num_actions=6,
    is_image=False,
    is_shaped=False,
    is_goal=True,
    can_lose=False,
    sparseness=0.99,
    optimal_chance=0.009,
    has_policy=False,
)
