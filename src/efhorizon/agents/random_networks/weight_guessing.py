"""Random weight guessing: the share of networks with random weights that are optimal."""

from __future__ import annotations

from efhorizon.agents.random_networks.play import Sampling, returns_of_random_networks
from efhorizon.agents.random_networks.shares import share_interval
from efhorizon.bounds.measures import Measured
from efhorizon.bounds.registry import hardness_measure
from efhorizon.planning.problem import Problem

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py
SAMPLING = Sampling(networks=10_000, image_networks=1_000, episodes=1, greedy=True)


@hardness_measure("weight_guessing", title="random weight guessing", harder="smaller")
def weight_guessing(problem: Problem) -> Measured:
    """P(R(theta) = V*_1(s_1)), theta ~ N(0, I): the chance that a network with random weights is optimal. An estimate.

    Oller, Glasmachers and Cuccu (2020) draw 10,000 networks, look at the distribution of their scores, and call a
    benchmark trivial if some of them solve it. Adapted: they compare the shapes of distributions; here the share that
    earns the optimal return stands for them. Networks are greedy, as theirs are. The interval is Clopper and Pearson's.
    """
    played = returns_of_random_networks(problem, SAMPLING)
    if isinstance(played, str):
        return Measured(None, reason=played)
    count = len(played.units)
    hits = int((played.units == played.optimal).sum())
    low, high = share_interval(hits, count)
    return Measured(hits / count, low, high, note=played.note)
