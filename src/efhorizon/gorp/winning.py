"""Which of several sums of returns is the largest, ties drawn at random: the integral behind every choice of GORP.

Let G_i(x + z) = P(S_i < x) + z P(S_i = x) for lattice points x and 0 <= z <= 1. Drawing uniformly among the largest
sums is the same as comparing S_i + U_i with independent uniform U_i, so a sequence j is chosen with probability

    P_j = sum_x P(S_j = x) integral_0^1 prod_{i != j} G_i(x + z) dz.

The integrand is a polynomial in z, of degree one less than the number of sums that can equal x, with positive
derivatives: Gauss-Legendre quadrature errs only downward, on panels that halve towards z = 1 if there are many sums.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

from efhorizon.compiled import Floats, compiled

_MOST_NODES = 16
_NEGLIGIBLE = 1e-30  # chance of a sum that is not looked at; all of them stay far below other errors


def _gauss_table() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on [0, 1]: row n holds the rule with n nodes, whose error is F^(2n) n!^4 / ((2n + 1) (2n)!^3).

    Also the rates r up to which that is at most 1e-16 if F^(2n) is r^(2n).
    """
    nodes, weights = np.zeros((2, _MOST_NODES + 1, _MOST_NODES))
    rates = np.zeros(_MOST_NODES + 1)
    for n in range(1, _MOST_NODES + 1):
        x, w = roots_legendre(n)
        nodes[n, :n], weights[n, :n] = (x + 1) / 2, w / 2
        error = math.factorial(n) ** 4 / ((2 * n + 1) * math.factorial(2 * n) ** 3)
        rates[n] = (1e-16 / error) ** (1 / (2 * n))
    return nodes, weights, rates


_NODES, _WEIGHTS, _RATES = _gauss_table()


@compiled
def win_at_point(n: int, counts: Floats, mass: Floats, below: Floats, out: Floats) -> None:
    """Add to `out` the chance of a single sequence of each of n groups to win with the sum x.

    Of each group are given the number of its sequences, P(S = x) and P(S < x). The integrand F and its derivatives are
    positive, F^(j) <= rate^j F(1): n Gauss nodes fall short by at most 1e-16 of F(1) if the rate is below _RATES[n].
    """
    base, top = 1.0, 1.0  # chances that sums which cannot equal x are below it, and the others not above
    tied = rate = 0.0
    all_at_least = True
    for i in range(n):
        if mass[i] == 0.0:
            if below[i] == 0.0:
                return
            base *= below[i] ** counts[i]
        else:
            reached = below[i] + mass[i]
            top *= reached if counts[i] == 1.0 else reached ** counts[i]
            tied += counts[i]
            rate += counts[i] * mass[i] / reached
            all_at_least &= below[i] == 0.0
    if tied == 0.0 or base * top < _NEGLIGIBLE:
        return
    if all_at_least:  # G = z P(S = x) for all of them
        for i in range(n):
            if mass[i] > 0.0:
                out[i] += base * top / tied
        return
    panels = 1
    if tied > 2 * _MOST_NODES:
        while rate > 4.0 and panels < 60:
            rate *= 0.5
            panels += 1
    num_nodes = 1 if panels == 1 else _MOST_NODES
    while num_nodes < _MOST_NODES and 2 * num_nodes < tied and rate > _RATES[num_nodes]:
        num_nodes += 1
    left, width = 0.0, 1.0
    for panel in range(panels):
        if panel < panels - 1:
            width *= 0.5
        for node in range(num_nodes):
            z = left + width * _NODES[num_nodes, node]
            product = base * width * _WEIGHTS[num_nodes, node]
            for i in range(n):
                if mass[i] > 0.0:
                    g = below[i] + z * mass[i]
                    product *= g if counts[i] == 1.0 else g ** counts[i]
            for i in range(n):
                if mass[i] > 0.0:
                    out[i] += product * mass[i] / (below[i] + z * mass[i])
        left += width
