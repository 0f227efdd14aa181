"""Forward passes over the flat observations of a table, never more of them than there are distinct observations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp

from efhorizon.agents.networks import Array, Network, Parameters, network_for
from efhorizon.agents.observations import FlatColumns, ObservedTable


@dataclass(frozen=True)
class Sight:
    """A network together with all that it can be shown."""

    network: Network
    observations: Array  # [U, G]
    multiplicity: Array  # [n], see `observations`

    @classmethod
    def of(cls, table: ObservedTable, kind: Literal["actor_critic", "q"]) -> Sight:
        assert isinstance(table.seen, FlatColumns)
        network = network_for(kind, table)
        return cls(network, jnp.asarray(table.seen.values), jnp.asarray(network.multiplicity))

    def outputs(self, parameters: Parameters, observation: Array) -> Any:
        """The network's outputs for observation numbers [B], with all observations evaluated once if that is less."""
        if len(self.observations) > observation.shape[0]:
            return self.network.outputs(parameters, self.observations[observation])
        everything = self.network.outputs(parameters, self.observations)
        return jax.tree.map(lambda output: output[observation], everything)

    def gradient(self, loss: Callable[[Any], Array], theta: Array, observation: Array) -> Array:
        """The gradient [n] of a loss of the outputs for observation numbers [B]."""
        parameters = self.network.unpacked(theta)
        return self.network.packed(jax.grad(lambda given: loss(self.outputs(given, observation)))(parameters))

    def view(self, theta: Array, *, num_uses: int) -> Callable[[Array], Any]:
        """A function from observation numbers to outputs under fixed parameters, to be asked for `num_uses` of them."""
        parameters = self.network.unpacked(theta)
        if len(self.observations) <= num_uses:
            everything = self.network.outputs(parameters, self.observations)
            return lambda observation: jax.tree.map(lambda output: output[observation], everything)
        return lambda observation: self.network.outputs(parameters, self.observations[observation])
