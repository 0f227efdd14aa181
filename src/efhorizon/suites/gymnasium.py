"""Any deterministic Gymnasium environment as a suite: what it tells about itself, and when a table of it can be exact.

`gymnasium_simulator` is how it is simulated, `environment_chance` how chance in it is noticed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np

from efhorizon.errors import EfhorizonError
from efhorizon.suites.environment_chance import chance_notices
from efhorizon.suites.gymnasium_simulator import (
    SEED,
    GymnasiumSimulator,
    SnapshotSimulator,
    failure,
    gymnasium_simulator,
)
from efhorizon.suites.observation_layout import METADATA, layout_as_json, stored_layout
from efhorizon.suites.observation_reader import is_image
from efhorizon.suites.replay import RestoreReport, restore_is_exact
from efhorizon.suites.simulator import Simulator, SimulatorError
from efhorizon.suites.suite import ACTION_NAMES, Mark, NetworkKind, Suite

BEHAVIOUR = 2  # raise it when the same inputs give another result: see io/behaviour.py

_RESTORED_ROLLOUTS, _RESTORED_STEPS = 5, 30


class Gymnasium(Suite):
    """Anything that Gymnasium can make; these environments are not in the catalogue."""

    name = "gymnasium"
    title = "Gymnasium"
    packages = ("gymnasium",)
    behaviour = BEHAVIOUR
    mark = Mark("M0-4.8L4.8 0L0 4.8L-4.8 0Z", "gymnasium")
    screen_format = "observation"
    has_names = False
    draws_when_built = True

    def simulator(self, **arguments: Any) -> Simulator:
        return gymnasium_simulator(**arguments)

    def replaying_simulator(self, **arguments: Any) -> Simulator:
        """Without the environment's own snapshots, which leave something out."""
        return gymnasium_simulator(**arguments, own_snapshots=False)

    def told_by(self, simulator: Any) -> Mapping[str, Any]:
        """The layout of its observations, and the names of its actions where it tells them."""
        names = simulator.action_names()
        return {METADATA: layout_as_json(simulator.layout)} | ({} if names is None else {ACTION_NAMES: list(names)})

    def network_of(self, metadata: Mapping[str, Any]) -> NetworkKind:
        layout = stored_layout(metadata)
        return "image" if layout is not None and is_image(layout) else "dense"

    def trusted_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Those of a file, which cannot name a module to import: that must come from the user."""
        env_id, given = arguments.get("env_id"), arguments.get("arguments")
        seed, wrappers = arguments.get("seed", SEED), arguments.get("wrappers", [])
        if (
            not isinstance(env_id, str)
            or not isinstance(given, Mapping | None)
            or not isinstance(wrappers, list)
            or not isinstance(seed, int)
            or arguments.keys() - {"env_id", "arguments", "seed", "wrappers", "fixed_noise"}
        ):
            raise SimulatorError("the file does not say how its environment is made")
        if ":" in env_id or env_id.endswith(".py") or wrappers or _is_unregistered(env_id):
            typed = " ".join([f"--env {env_id}", *(f"--wrapper {wrapper}" for wrapper in wrappers)])
            raise SimulatorError(
                f"the file names {env_id!r}, which would import a module; if you trust it, type that yourself: {typed}"
            )
        return arguments

    def restore_report(self, make: Callable[[], Simulator], horizon: int, rng: np.random.Generator) -> RestoreReport:
        """Whether the environment is deterministic, and whether its own snapshots, if it has any, are complete."""
        simulator = make()
        assert isinstance(simulator, GymnasiumSimulator)
        if isinstance(simulator, SnapshotSimulator):
            report = restore_is_exact(make, _RESTORED_ROLLOUTS, min(_RESTORED_STEPS, horizon), rng)
            if not report.exact:
                simulator.close()
                where = f"after actions {list(report.actions)}: {report.difference}"
                return RestoreReport(False, report.actions, f"its set_state does not restore everything, {where}")
        global_generators = random.getstate(), np.random.get_state()
        try:
            notices = tuple(chance_notices(simulator, rng))
        except EfhorizonError:
            raise
        except Exception as error:
            raise failure(error) from None
        finally:
            random.setstate(global_generators[0])
            np.random.set_state(global_generators[1])
            simulator.close()
        return RestoreReport(True, notices=notices)


GYMNASIUM = Gymnasium()


def _is_unregistered(env_id: str) -> bool:
    """Whether an id is none that Gymnasium or efhorizon registers by itself."""
    return env_id not in gymnasium.registry and not env_id.startswith(("MiniGrid-", "BabyAI-", "ALE/"))
