"""Policy information capacity (PIC) and policy-optimal information capacity (POIC)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import entr, rel_entr

from efhorizon.agents.random_networks.play import Returns, Sampling, returns_of_random_networks
from efhorizon.agents.random_networks.shares import share_interval
from efhorizon.bounds.measures import LEVEL, Measured
from efhorizon.bounds.registry import hardness_measure
from efhorizon.planning.problem import Problem

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py
SAMPLING = Sampling(networks=1_000, image_networks=200, episodes=100, greedy=False)
TEMPERATURES = np.logspace(-4, 4, 161)  # in units of the spread of returns

_Floats = NDArray[np.float64]


@hardness_measure("pic", title="policy information capacity", harder="smaller")
def policy_information_capacity(problem: Problem) -> Measured:
    """I(R; Theta) = H(R) - E_theta[H(R | theta)] in nats, theta the weights of a random network. An estimate.

    Furuta et al. (2021), Equation 2: how much the weights say about the return. Networks sample their actions: a greedy
    network's return is certain on our tables, and most walk in circles. (The source's program can do both.) Adapted: it
    sorts returns into 100,000 bins; ours are whole numbers of reward units and need none. It plays 1,000 episodes with
    each network, we 100, so both entropies are corrected by (number of different returns - 1) / (2 x episodes), as
    Miller (1955) and Madow do. The interval is a normal one, over networks.
    """
    played = returns_of_random_networks(problem, SAMPLING)
    if isinstance(played, str):
        return Measured(None, reason=played)
    shares = _shares(played.units)
    apart = rel_entr(shares, shares.mean(axis=0)).sum(axis=1)  # [N], their mean is the capacity
    num_episodes = played.units.shape[1]
    surplus = ((shares > 0).sum(axis=1) - 1) / (2 * num_episodes)  # [N]
    of_all = (shares.shape[1] - 1) / (2 * played.units.size)
    return _measured(apart - surplus + of_all, played)


@hardness_measure("poic", title="policy-optimal information capacity", harder="smaller")
def policy_optimal_information_capacity(problem: Problem) -> Measured:
    """I(O; Theta) = H(O) - E_theta[H(O | theta)] in nats,  p(O = 1 | R) = exp((R - R_max) / eta). An estimate.

    Furuta et al. (2021), Equations 3 to 5: how much the weights say about whether an episode counts as optimal, where
    eta is the temperature with the largest capacity. Networks play as for PIC. Adapted: R_max is the optimal return,
    which we know; the source takes the best one seen. It searches eta at random; here eta is the best of 161 between
    0.0001 and 10,000 times the spread of returns, and of its limit 0, where only optimal episodes count. The interval
    is a normal one over networks, with eta as it was found.
    """
    played = returns_of_random_networks(problem, SAMPLING)
    if isinstance(played, str):
        return Measured(None, reason=played)
    returns = np.unique(played.units)
    behind = (returns - played.optimal).astype(np.float64)  # [R], at most 0
    is_best = (behind == 0).astype(np.float64)
    coins = [(is_best, 1 - is_best)]  # the chance of O = 1 after each return, and that of O = 0
    spread = float(returns[-1] - returns[0])
    if spread > 0:
        exponents = [behind / (eta * spread) for eta in TEMPERATURES]
        coins += [(np.exp(each), -np.expm1(each)) for each in exponents]
    shares = _shares(played.units)
    found = [_apart(shares @ yes, shares @ no) for yes, no in coins]  # [N] each
    return _measured(max(found, key=lambda each: float(each.mean())), played)


def _shares(units: NDArray[np.int64]) -> _Floats:
    """How often each network earned each of the returns that were seen, [N, R]."""
    returns, which = np.unique(units, return_inverse=True)
    rows = np.arange(len(units))[:, None] * len(returns) + which.reshape(units.shape)
    counts = np.bincount(rows.ravel(), minlength=len(units) * len(returns)).reshape(len(units), len(returns))
    shares: _Floats = counts / units.shape[1]
    return shares


def _apart(yes: _Floats, no: _Floats) -> _Floats:
    """How far a coin of each chance [N] is from one of their mean, in nats: the mean of this is the capacity.

    The chances of both sides are given: 1 - yes would be rounded to 0 where a large temperature makes all but sure.
    """
    if (yes == yes[0]).all() and (no == no[0]).all():
        return np.zeros(len(yes))  # exactly, whatever the mean is rounded to
    apart: _Floats = np.zeros(len(yes))
    for side in (yes, no):
        if (mean := side.mean()) > 0:  # of chances near the smallest float it can be rounded to 0: they say nothing
            apart += rel_entr(side, mean)
    return apart


def _measured(apart: _Floats, played: Returns) -> Measured:
    """The mean over networks with its interval. If all earned the same, another return may just not have been seen."""
    value, deviation = max(0.0, float(apart.mean())), float(apart.std())
    half = float(stats.norm.ppf((1 + LEVEL) / 2)) * deviation / math.sqrt(len(apart))
    unseen = 0.0
    if (played.units == played.units[0, 0]).all():
        share = share_interval(0, len(apart))[1]
        unseen = float(entr(share) + entr(1 - share))
    return Measured(value, max(0.0, value - half), value + max(half, unseen), note=played.note)
