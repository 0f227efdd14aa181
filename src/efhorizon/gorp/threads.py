"""Threads where they pay: on a busy machine, waking them takes longer than a small task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba


@contextmanager
def threads_if(many: bool) -> Iterator[None]:
    """Run parallel kernels with one thread unless there is much to do."""
    num_threads = numba.get_num_threads()
    numba.set_num_threads(num_threads if many else 1)
    try:
        yield
    finally:
        numba.set_num_threads(num_threads)
