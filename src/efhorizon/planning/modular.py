"""Arithmetic modulo the prime of `rewards.py`, 2^61 - 1, for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from efhorizon.compiled import compiled
from efhorizon.planning.rewards import PRIME

_PRIME: Any = np.uint64(PRIME)
_ONE: Any = np.uint64(1)
_LOW_31: Any = np.uint64(2**31 - 1)
_LOW_30: Any = np.uint64(2**30 - 1)
_S30, _S31, _S61 = np.uint64(30), np.uint64(31), np.uint64(61)


@compiled
def plus(x: Any, y: Any) -> Any:
    total = x + y
    return total - _PRIME if total >= _PRIME else total


@compiled
def times(x: Any, y: Any) -> Any:
    """Product modulo 2^61 - 1 in 64-bit words: x and y are cut at 31 bits, and 2^61 counts as 1."""
    if x == _ONE:
        return y
    x_high, x_low, y_high, y_low = x >> _S31, x & _LOW_31, y >> _S31, y & _LOW_31
    middle = x_high * y_low + x_low * y_high
    total = (x_high * y_high << _ONE) + (middle >> _S30) + ((middle & _LOW_30) << _S31) + x_low * y_low
    total = (total & _PRIME) + (total >> _S61)
    return total - _PRIME if total >= _PRIME else total
