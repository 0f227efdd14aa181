"""Forward passes over the observations of a table, never more of them than there are distinct observations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp

from efhorizon.agents.networks import Array, Network, Parameters, network_for
from efhorizon.agents.observations import ImageStacks, ObservedTable

_IMAGES_A_PASS = 256  # a limit on memory: a pass of 256 images needs some 100 MB
_SHARES = (1 / 8, 1 / 4, 1 / 2, 1)  # sizes of a batch of distinct images, as shares of the full batch


@dataclass(frozen=True)
class Sight:
    """A network together with all that it can be shown."""

    network: Network
    num_observations: int
    multiplicity: Array  # [n], see `observations`
    see: Callable[[Array], Array]  # observation numbers [B] -> input of the network [B, ...]

    @classmethod
    def of(cls, table: ObservedTable, kind: Literal["actor_critic", "q"]) -> Sight:
        network = network_for(kind, table)
        return cls(network, table.num_observations, jnp.asarray(network.multiplicity), _eyes(table))

    @property
    def is_cheap(self) -> bool:
        """Whether a pass costs so little that seeds are best run side by side; a CNN keeps all cores busy alone."""
        return self.network.flat is not None

    def outputs(self, parameters: Parameters, observation: Array) -> Any:
        """The network's outputs for observation numbers [B], with all observations evaluated once if that is less."""
        if self.num_observations > observation.shape[0]:
            return self.network.outputs(parameters, self.see(observation))
        everything = self._everything(parameters)
        return jax.tree.map(lambda output: output[observation], everything)

    def gradient(self, loss: Callable[[Any], Array], theta: Array, observation: Array) -> Array:
        """The gradient [n] of a loss of the outputs for observation numbers [B], with equal ones evaluated once.

        The distinct images of a batch take one pass, in the smallest of a few sizes that holds them. The choice of the
        size is around the whole gradient: around the pass alone, every size would need room for its intermediates.
        """
        parameters = self.network.unpacked(theta)
        num_samples = observation.shape[0]
        if self.is_cheap or self.num_observations <= num_samples:
            return self.network.packed(jax.grad(lambda given: loss(self.outputs(given, observation)))(parameters))
        distinct, place = jnp.unique(observation, size=num_samples, return_inverse=True, fill_value=0)
        count = (jnp.diff(jnp.sort(observation)) != 0).sum() + 1
        sizes = sorted({max(1, int(share * num_samples)) for share in _SHARES})

        def of_size(size: int) -> Callable[[], Array]:
            def outputs(given: Parameters) -> Any:
                passed = self.network.outputs(given, self.see(distinct[:size]))
                return jax.tree.map(lambda output: output[jnp.minimum(place, size - 1)], passed)

            return lambda: self.network.packed(jax.grad(lambda given: loss(outputs(given)))(parameters))

        return jax.lax.switch(jnp.searchsorted(jnp.array(sizes), count), [of_size(size) for size in sizes])

    def view(self, theta: Array, *, num_uses: int) -> Callable[[Array], Any]:
        """A function from observation numbers to outputs under fixed parameters, to be asked for `num_uses` of them."""
        parameters = self.network.unpacked(theta)
        if self.num_observations <= num_uses:
            everything = self._everything(parameters)
            return lambda observation: jax.tree.map(lambda output: output[observation], everything)
        return lambda observation: self.network.outputs(parameters, self.see(observation))

    def _everything(self, parameters: Parameters) -> Any:
        """Outputs for all observations [U, ...]."""
        numbers = jnp.arange(self.num_observations)
        if self.is_cheap or self.num_observations <= _IMAGES_A_PASS:
            return self.network.outputs(parameters, self.see(numbers))
        padded = -(-self.num_observations // _IMAGES_A_PASS) * _IMAGES_A_PASS
        passes = jnp.minimum(jnp.arange(padded), self.num_observations - 1).reshape(-1, _IMAGES_A_PASS)
        outputs = jax.lax.map(lambda chunk: self.network.outputs(parameters, self.see(chunk)), passes)
        return jax.tree.map(lambda output: output.reshape(padded, *output.shape[2:])[numbers], outputs)


def _eyes(table: ObservedTable) -> Callable[[Array], Array]:
    if isinstance(table.seen, ImageStacks):
        frames, stacks = jnp.asarray(table.seen.frames), jnp.asarray(table.seen.stacks)

        def images(observation: Array) -> Array:
            stacked = jnp.moveaxis(frames[stacks[observation]], 1, 3)  # [B, H, W, K, C]
            return stacked.reshape(*stacked.shape[:3], -1)

        return images
    values = jnp.asarray(table.seen.values)
    return lambda observation: values[observation]
