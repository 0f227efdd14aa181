"""Threads where they pay: on a busy machine, waking them takes longer than a small task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, TypeVarTuple

import numba

_MIN_PARALLEL_PAIRS = 1 << 16  # some milliseconds of work: less than a busy machine may take to wake a thread

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


@contextmanager
def threads_if(many: bool) -> Iterator[None]:
    """Run parallel kernels with one thread unless there is much to do."""
    num_threads = numba.get_num_threads()
    if many or num_threads == 1:
        yield
        return
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(num_threads)


def on_layer(kernel: Callable[[int, int, *_Arguments], _Result], layer: slice, *arguments: *_Arguments) -> _Result:
    """kernel(start, stop, *arguments) with one thread for small layers, with all of them for large ones."""
    with threads_if(layer.stop - layer.start >= _MIN_PARALLEL_PAIRS):
        return kernel(layer.start, layer.stop, *arguments)
