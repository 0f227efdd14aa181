"""Many seeds side by side, and fewer of them as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp

from efhorizon.agents.protocol import RunRecord

Carried = TypeVar("Carried")


class Batch(Generic[Carried]):
    """Runs and what they carry, stacked along the first axis.

    Each size of the batch is compiled anew, which takes seconds, so finished runs are dropped when half have finished.
    """

    def __init__(self, runs: list[RunRecord], carried: Carried) -> None:
        self.runs = list(runs)  # one a place of the batch
        self.carried = carried

    def places(self) -> Iterator[tuple[int, RunRecord]]:
        """The runs that still go on, with their place."""
        return ((place, run) for place, run in enumerate(self.runs) if not run.is_finished)

    def drop_finished(self) -> None:
        kept = [place for place, _ in self.places()]
        if 2 * len(kept) > len(self.runs):
            return
        self.runs = [self.runs[place] for place in kept]
        if kept:
            self.carried = jax.tree.map(lambda array: array[jnp.array(kept)], self.carried)


def across_seeds(update: Callable[[Any, Any], Any], side_by_side: bool) -> Callable[[Any, Any], Any]:
    """An update of one seed as an update of a batch; the second argument is common to all seeds."""
    if side_by_side:
        return jax.vmap(update, in_axes=(0, None))
    return lambda carried, common: jax.lax.map(lambda one: update(one, common), carried)


@cache
def _compiler_options() -> dict[str, Any] | None:
    """XLA's newer emitters for CPUs take two to three times as long to compile these loops and gain nothing."""
    options = {"xla_cpu_use_fusion_emitters": False}
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options=options).lower().compile()
    except Exception:  # the option is gone in this version of XLA
        return None
    return options


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit`, quick to compile; arguments are given away, so that long buffers are updated in place."""
    return jax.jit(function, compiler_options=_compiler_options(), donate_argnums=0)
