"""Distributions of the sum of m independent returns, and so of the mean of GORP's m rollouts.

Two values only: a binomial distribution, by the ratios of neighbouring terms from the mode outward. Else the m-th
convolution power by FFT. Both are kept on a window that misses at most 1e-18 of the mass (Chernoff's bound for the one,
Bernstein's inequality for the other), so the length grows with the square root of m; what falls outside of the second
wraps around into it. In the end tails of up to 1e-14 are cut off. Each distribution comes with a bound on the error of
its distribution function.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from efhorizon.compiled import Floats, Integers, compiled
from efhorizon.planning.returns import Lattice, ReturnDistributions, concatenated_ranges
from efhorizon.planning.rewards import ROUNDING

WINDOW_MASS = 1e-18
TAIL_MASS = 1e-14  # of each tail that is cut off in the end: most of a window by Bernstein's inequality is empty
WINDOW_EXPONENT = float(-np.log(WINDOW_MASS / 2))
_POINTS_A_BATCH = 1 << 21
_FFT_ROUNDINGS = 4.0  # relative rounding error of one butterfly, in units of ROUNDING


class SumDistributions(NamedTuple):
    """Number d gives mass[starts[d] + i] to firsts[d] + i strides[d], in return units; cdf is its running sum.

    Its tails are cut off: all but 1e-14 lies above its first point or on it, and likewise below the last.
    """

    starts: NDArray[np.int64]  # [D + 1]
    firsts: NDArray[np.int64]  # [D]
    strides: NDArray[np.int64]  # [D], 0 where the distribution has one point
    mass: NDArray[np.float64]
    cdf: NDArray[np.float64]
    errors: NDArray[np.float64]  # [D], bound on the error of the distribution function


class RolloutSums:
    """Distributions of single returns, without the lattice points that cannot occur, ready to be summed.

    With `num_steps` they are discounted by so many, in the units of a time so much earlier.
    """

    def __init__(self, returns: ReturnDistributions, num_steps: int = 0) -> None:
        count, factor = len(returns.lattice.offsets), returns.units.after(num_steps)
        if factor == 0:  # nothing is left of them
            nothing = Lattice(np.arange(count + 1), np.zeros(count, np.int64), np.ones(count))
            returns = replace(returns, lattice=nothing)
        self.offsets = factor * returns.lattice.offsets
        self.strides = np.zeros(count, np.int64)
        starts = np.zeros(count + 1, np.int64)
        mass = np.empty_like(returns.lattice.mass)
        moments = np.zeros((3, count))  # mean and variance on the reduced lattice, mass off the likeliest point
        _reduce(returns.lattice, self.strides, starts, mass, moments)
        self.strides *= factor
        self.starts, self.mass = starts, mass[: starts[-1]]
        self.lengths = np.diff(starts)
        self.means, self.variances, self._spread = moments
        self._error = 4 * returns.relative_error

    @property
    def largest(self) -> int:
        """No return is larger, be it positive or negative."""
        return int((np.abs(self.offsets) + self.strides * (self.lengths - 1)).max())

    def windows(self, m: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last reduced lattice point of the sum of m returns that count."""
        span = (self.lengths - 1).astype(np.float64)
        linear = span * WINDOW_EXPONENT / 3
        width = linear + np.sqrt(linear**2 + 2 * m * self.variances * WINDOW_EXPONENT)
        first = np.maximum(np.floor(m * self.means - width) - 1, 0).astype(np.int64)
        last = np.minimum(np.ceil(m * self.means + width) + 1, m * span).astype(np.int64)
        _narrow_binomials(self.lengths, self.means, m, WINDOW_EXPONENT, first, last)
        return first, last

    def sums(self, m: int) -> SumDistributions:
        """Distributions of the sum of m returns."""
        first, last = self.windows(m)
        starts = np.concatenate([[0], np.cumsum(last - first + 1)])
        mass = np.zeros(int(starts[-1]))
        # Rounded probabilities of one return: m of them differ from the exact ones by m times that in total variation.
        errors = m * self._error * self._spread + WINDOW_MASS + 2 * ROUNDING * (last - first + 1)
        if m == 1:
            mass[:] = self.mass
        else:
            _binomials(self.lengths, self.starts, self.mass, m, first, starts, mass)
            errors += np.where(self.lengths <= 2, 8 * ROUNDING * (last - first + 1), 0.0)
            self._powers(m, first, starts, mass, errors)
        cdf = np.empty_like(mass)
        _running_sums(starts, mass, cdf)
        begins, ends = np.empty((2, len(first)), np.int64)
        _without_tails(starts, cdf, TAIL_MASS, begins, ends)
        chosen = concatenated_ranges(begins, ends - begins)
        return SumDistributions(
            starts=np.concatenate([[0], np.cumsum(ends - begins)]),
            firsts=self.offsets * m + (first + begins - starts[:-1]) * self.strides,
            strides=self.strides,
            mass=mass[chosen],
            cdf=cdf[chosen],
            errors=errors + TAIL_MASS,
        )

    def _powers(
        self,
        m: int,
        first: NDArray[np.int64],
        starts: NDArray[np.int64],
        mass: NDArray[np.float64],
        errors: NDArray[np.float64],
    ) -> None:
        """Convolution powers of all distributions on three points or more, those of one transform size together.

        The transform of a distribution is right to delta = 4 u log2(N), so its power to m |phi|^(m - 1) delta; by
        Parseval the sum of the errors over N points is at most the Euclidean norm of those over N frequencies.
        """
        many = np.flatnonzero(self.lengths > 2)
        needed = np.maximum(np.diff(starts)[many], self.lengths[many])
        sizes = np.array([next_fast_len(int(n), real=True) for n in needed], np.int64)
        for size in np.unique(sizes):
            same = many[sizes == size]
            for begin in range(0, len(same), max(1, _POINTS_A_BATCH // int(size))):
                batch = same[begin : begin + max(1, _POINTS_A_BATCH // int(size))]
                rows = np.zeros((len(batch), size))
                _scatter(batch, self.starts, self.mass, rows)
                transform = rfft(rows, axis=1)
                modulus = np.abs(transform)
                transform **= m
                delta = _FFT_ROUNDINGS * ROUNDING * np.log2(size)
                wrong = m * (modulus + delta) ** (m - 1) * (delta + _FFT_ROUNDINGS * ROUNDING * modulus)
                powers = irfft(transform, int(size), axis=1)
                norms = np.sqrt((powers**2).sum(axis=1))
                errors[batch] += np.sqrt(2 * (wrong**2).sum(axis=1)) + delta * np.sqrt(size) * norms
                np.maximum(powers, 0, out=powers)
                _unroll(batch, powers, first, starts, mass)


@compiled
def _reduce(lattice: Lattice, strides: Integers, out_starts: Integers, out: Floats, moments: Floats) -> None:
    """Divide each lattice by its span's common divisor, and let the likeliest point have what the rest leave."""
    starts, _, mass = lattice
    for index in range(len(strides)):
        start, stop = starts[index], starts[index + 1]
        stride = 0
        for j in range(start + 1, stop):
            if mass[j] > 0:
                a, b = stride, j - start
                while b:
                    a, b = b, a % b
                stride = a
        strides[index] = stride
        length = (stop - 1 - start) // stride + 1 if stride else 1
        place = out_starts[index]
        out_starts[index + 1] = place + length
        likeliest, rest = 0, 0.0
        for i in range(length):
            out[place + i] = mass[start + i * stride]
            if out[place + i] > out[place + likeliest]:
                likeliest = i
        for i in range(length):
            if i != likeliest:
                rest += out[place + i]
        out[place + likeliest] = 1.0 - rest
        mean = variance = 0.0
        for i in range(length):
            mean += out[place + i] * i
        for i in range(length):
            variance += out[place + i] * (i - mean) ** 2
        moments[0, index], moments[1, index], moments[2, index] = mean, variance, rest


@compiled
def _narrow_binomials(
    lengths: Integers, means: Floats, m: int, exponent: float, first: Integers, last: Integers
) -> None:
    """Leave out points beyond which Chernoff's bound leaves less than the window may miss: far fewer than Bernstein's
    where success is rare."""
    for index in range(len(lengths)):
        if lengths[index] != 2 or m == 1:
            continue
        p = means[index]
        mean = int(m * p)
        last[index] = min(last[index], last_inside(mean + 1, last[index] + 1, m, p, exponent))
        first[index] = max(first[index], last_inside(mean, first[index] - 1, m, p, exponent))


@compiled
def last_inside(inside: int, outside: int, m: int, p: float, exponent: float) -> int:
    """The last sum from `inside` towards `outside` up to which Chernoff's exponent is not exceeded."""
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        if m * _divergence(middle / m, p) > exponent:
            outside = middle
        else:
            inside = middle
    return inside


@compiled
def _divergence(x: float, p: float) -> float:
    """The relative entropy of a coin with chance x to one with chance p: P(S >= m x) <= exp(-m D) for x > p."""
    result = 0.0
    if x > 0.0:
        result += x * math.log(x / p)
    if x < 1.0:
        result += (1.0 - x) * (math.log1p(-x) - math.log1p(-p))
    return result


@compiled
def _binomials(
    lengths: Integers, single_starts: Integers, single_mass: Floats, m: int, first: Integers, starts: Integers,
    out: Floats,
) -> None:  # fmt: skip
    for index in range(len(lengths)):
        if lengths[index] > 2:
            continue
        start, count = starts[index], starts[index + 1] - starts[index]
        if lengths[index] == 1:
            out[start] = 1.0
            continue
        q, p = single_mass[single_starts[index]], single_mass[single_starts[index] + 1]
        binomial_distribution(m, p, q, first[index], out[start : start + count])


@compiled
def binomial_distribution(m: float, p: float, q: float, first: int, out: Floats) -> None:
    """Probabilities of first, first + 1, ... successes: ratios from the mode outward, then normalised."""
    count = len(out)
    mode = min(max(int((m + 1) * p) - first, 0), count - 1)
    out[mode] = 1.0
    total = 1.0
    for i in range(mode + 1, count):
        x = first + i
        out[i] = out[i - 1] * ((m - x + 1) * p / (x * q))
        total += out[i]
    for i in range(mode - 1, -1, -1):
        x = first + i
        out[i] = out[i + 1] * ((x + 1) * q / ((m - x) * p))
        total += out[i]
    for i in range(count):
        out[i] /= total


@compiled
def _scatter(chosen: Integers, starts: Integers, mass: Floats, out: Floats) -> None:
    for i in range(len(chosen)):
        start = starts[chosen[i]]
        for j in range(starts[chosen[i] + 1] - start):
            out[i, j] = mass[start + j]


@compiled
def _unroll(chosen: Integers, rows: Floats, first: Integers, starts: Integers, out: Floats) -> None:
    """The sum x stands at x modulo the size of the transform."""
    for i in range(len(chosen)):
        start = starts[chosen[i]]
        place = first[chosen[i]] % rows.shape[1]
        for j in range(starts[chosen[i] + 1] - start):
            out[start + j] = rows[i, place]
            place += 1
            if place == rows.shape[1]:
                place = 0


@compiled
def _without_tails(starts: Integers, cdf: Floats, tail: float, begins: Integers, ends: Integers) -> None:
    """Where each distribution begins and ends without points that have at most so much mass below or above them,
    themselves included."""
    for index in range(len(begins)):
        begin, end = starts[index], starts[index + 1]
        while begin < end - 1 and cdf[begin] <= tail:
            begin += 1
        while end - 1 > begin and 1.0 - cdf[end - 2] <= tail:
            end -= 1
        begins[index], ends[index] = begin, end


@compiled
def _running_sums(starts: Integers, mass: Floats, out: Floats) -> None:
    for index in range(len(starts) - 1):
        total = 0.0
        for j in range(starts[index], starts[index + 1]):
            total += mass[j]
            out[j] = min(total, 1.0)
