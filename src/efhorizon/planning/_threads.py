"""Threads where they pay: waking them for a layer of a few pairs costs more than the layer."""

from __future__ import annotations

from typing import Any

import numba

_MIN_PARALLEL_PAIRS = 1 << 16  # some milliseconds of work: less than a busy machine may take to wake a thread


def on_layer(kernel: Any, layer: slice, *arguments: Any) -> Any:
    """Call kernel(start, stop, *arguments) with one thread for small layers, with all of them for large ones."""
    num_threads = numba.get_num_threads()
    if layer.stop - layer.start >= _MIN_PARALLEL_PAIRS or num_threads == 1:
        return kernel(layer.start, layer.stop, *arguments)
    numba.set_num_threads(1)
    try:
        return kernel(layer.start, layer.stop, *arguments)
    finally:
        numba.set_num_threads(num_threads)
