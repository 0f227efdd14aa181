"""Potential-based shaping (Ng, Harada and Russell 1999) with a finite horizon.

    r'_t(s, a) = r(s, a) + gamma phi_{t+1}(s') - phi_t(s)        phi_T = phi(end) = 0, else phi_t = phi

The discounted return of every episode becomes its old one less phi(start), so the optimal policies are those of before.
That needs phi_T = 0: at the last step a state pays differently than before, whence `unrolled`.

Ties between optimal actions must survive, so sums are exact. Rewards of a table are decimals that float32 tells apart.
Where shaped rewards have more digits than that, the potential is rounded, which gives another potential, just as good;
rounding the shaped rewards themselves would not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.mdp import TabularMDP
from efhorizon.planning.rewards import reward_scale
from efhorizon.planning.timeline import timeline
from efhorizon.transform.derived import derived, require_complete, short_digest
from efhorizon.transform.rewards import exact_values
from efhorizon.transform.unrolled import timed_table

_DIGITS = 6  # that every float32 can hold
_MAX_DECIMALS = 12
_WORST_ROUNDING = 1e-3  # of the largest potential: with more, it would be another shaping than was asked for


def with_potential(mdp: TabularMDP, potential: ArrayLike | Callable[[int], float], *, gamma: float = 1.0) -> TabularMDP:
    """The table shaped by a potential [S], or by a function of the state."""
    require_complete(mdp, "shaping")
    reward_scale(mdp, gamma=gamma)  # refuses a bad discount
    phi = checked_potential(mdp, potential)
    shaped = _shaped(mdp, phi, gamma)
    codes, values = _coded(np.stack([shaped.usual, shaped.last]), shaped.unit)
    label, change = f"potential-{short_digest(phi)}", {"change": "potential", "gamma": float(gamma)}
    return timed_table(mdp, timeline(mdp), codes[0], codes[1], values, label=label, change=change)


def with_progress(mdp: TabularMDP, potential: ArrayLike | Callable[[int], float]) -> TabularMDP:
    """The table that also pays for progress, as shaping is mostly done: r'(s, a) = r(s, a) + phi(f(s, a)) - phi(s).

    Unlike in `with_potential`, phi counts at the horizon too, and a step that ends the episode pays no more than
    before: each episode earns phi(last state) - phi(start) on top. That can change which policies are optimal, and it
    is what makes shaped rewards easier for GORP: with phi = 0 at the end nothing changes but a constant.
    """
    require_complete(mdp, "shaping")
    phi = checked_potential(mdp, potential)
    shaped = _shaped(mdp, phi, 1.0)
    codes, values = _coded(np.where(mdp.transitions >= 0, shaped.usual, shaped.plain), shaped.unit)
    label, change = f"progress-{short_digest(phi)}", {"change": "progress"}
    return derived(mdp, mdp.transitions, (codes, values), mdp.horizon, label=label, change=change)


def checked_potential(mdp: TabularMDP, given: ArrayLike | Callable[[int], float]) -> NDArray[np.float64]:
    phi = np.array([float(given(state)) for state in range(mdp.num_states)] if callable(given) else given, np.float64)
    if phi.shape != (mdp.num_states,):
        raise InvalidTableError(f"a potential is one number per state: shape ({mdp.num_states},), got {phi.shape}")
    bad = np.flatnonzero(~np.isfinite(phi))
    if len(bad):
        raise InvalidTableError(f"the potential of state {bad[0]} is {phi[bad[0]]}; it must be a finite number")
    return phi


class _Shaped(NamedTuple):
    """Rewards [S, A] in a unit; None: as floats, without one."""

    plain: NDArray[Any]  # as they were
    usual: NDArray[Any]  # r + gamma phi(s') - phi(s)
    last: NDArray[Any]  # r - phi(s), those of the last step
    unit: Fraction | None


def _coded(
    numbers: NDArray[Any], unit: Fraction | None
) -> tuple[NDArray[np.unsignedinteger[Any]], NDArray[np.float64]]:
    """Rewards as codes and values."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    values = distinct if unit is None else exact_values(distinct, unit)
    assert values is not None, "`_shaped` chooses units that are exact"
    return codes.reshape(numbers.shape).astype(np.min_scalar_type(len(distinct) - 1)), values


def _shaped(mdp: TabularMDP, phi: NDArray[np.float64], gamma: float) -> _Shaped:
    """The rewards with a potential, in a unit that holds them all."""
    units = mdp.reward_units()
    discount = Fraction(repr(float(gamma)))
    if units is None:  # rewards have no unit, and ties between returns are a matter of rounding already
        following = np.where(mdp.transitions >= 0, phi[mdp.transitions], 0.0)
        last = mdp.rewards - phi[:, None]
        return _Shaped(mdp.rewards, last + float(gamma) * following, last, None)
    rewards = [int(number) * units[1] for number in units[0]]
    for decimals in _grids(rewards, phi, discount):
        grid = _Grid.of(rewards, phi, discount, decimals)
        if grid is None:
            continue
        plain = grid.rewards[mdp.reward_codes]
        last = plain - grid.potential[:, None]
        usual = last + np.where(mdp.transitions >= 0, grid.discounted[mdp.transitions], 0)
        if exact_values(np.unique(np.stack([usual, last])), grid.unit) is not None:
            return _Shaped(plain, usual, last, grid.unit)
    raise InvalidTableError(
        "rewards and potential together have more digits than a table can hold; scale or round the potential"
    )


@dataclass(frozen=True)
class _Grid:
    """Rewards and potentials as integers in one unit, a power of ten."""

    unit: Fraction
    rewards: NDArray[np.int64]  # [R]
    potential: NDArray[np.int64]  # [S]
    discounted: NDArray[np.int64]  # [S], gamma times the potential

    @classmethod
    def of(cls, rewards: list[Fraction], phi: NDArray[np.float64], discount: Fraction, decimals: int) -> _Grid | None:
        """On the grid of so many decimals; the potential is rounded so that gamma times it lies there too."""
        unit = Fraction(10) ** -decimals
        step = unit * discount.denominator  # of the potential
        rounded = np.rint(phi / float(step))
        if any((reward / unit).denominator != 1 for reward in rewards):
            return None
        largest = float(np.abs(phi).max())
        if np.abs(rounded * float(step) - phi).max() > _WORST_ROUNDING * largest or np.abs(rounded).max() > 2**40:
            return None
        whole = rounded.astype(np.int64)
        return cls(
            unit,
            np.array([int(reward / unit) for reward in rewards], np.int64),
            whole * discount.denominator,
            whole * discount.numerator,
        )


def _grids(rewards: list[Fraction], phi: NDArray[np.float64], discount: Fraction) -> list[int]:
    """Numbers of decimals to try: what all numbers have as they are given, then as many as float32 surely holds."""
    given = {Fraction(repr(number)) for number in np.unique(phi).tolist()}
    as_given = max(map(_decimals, [*rewards, *given, *(discount * number for number in given)]))
    largest = float(max(map(abs, rewards))) + float(1 + discount) * float(np.abs(phi).max())
    most = _DIGITS - math.ceil(math.log10(largest)) if largest > 0 else 0
    return [*([as_given] if as_given <= _MAX_DECIMALS else []), *range(most, most - _DIGITS, -1)]


def _decimals(number: Fraction) -> int:
    """Decimal places of a decimal fraction."""
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    return places
