"""Kernels: functions that numba compiles, and the types of the arrays that they take.

A kernel writes into arrays that its caller allocates. Arrays that belong together are one NamedTuple, which numba takes
apart at no cost; an array of length 0 stands for one that is not there.

A parallel kernel must take the arrays that it writes to out of a tuple by their names, one by one (`out = room.out`).
After `out, more = room` numba 0.68 believes that nobody looks at what is written, and leaves the loop out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit, prange
from numba.core import config
from numpy.typing import NDArray

from efhorizon._kernel_cache import cache_folder

__all__ = [
    "Flags",
    "Floats",
    "Integers",
    "Numbers",
    "Words",
    "compiled",
    "compiled_parallel",
    "compiled_with",
    "prange",
]

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Numbers = NDArray[Any]  # int64 where sums of rewards are exact, else float64
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

_config: Any = config  # numba fills it in as it is imported, so its names are not declared
_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compiled when it is first called; the machine code is kept on disk."""
    return compiled_with()(function)


def compiled_parallel(function: _Function) -> _Function:
    """The same, with loops over `prange` shared by all threads."""
    return compiled_with(parallel=True)(function)


def compiled_with(**options: Any) -> Callable[[_Function], _Function]:
    """The same with other options of numba's `njit`."""

    def decorate(function: _Function) -> _Function:
        folder, usual = cache_folder(function.__module__), _config.CACHE_DIR
        if folder is None:
            return cast(_Function, njit(**options)(function))
        _config.CACHE_DIR = str(folder)  # numba looks it up once, as it makes the kernel
        try:
            return cast(_Function, njit(cache=True, **options)(function))
        finally:
            _config.CACHE_DIR = usual

    return decorate
