"""What is diagnosed: an environment by its name, or one that was made already, and how each process makes its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from efhorizon import catalog
from efhorizon.build.target import table_name
from efhorizon.diagnose.gymnasium_stage import GymnasiumStage
from efhorizon.diagnose.simulator_stage import SimulatorStage
from efhorizon.diagnose.stage import Stage
from efhorizon.mdp import MAX_HORIZON
from efhorizon.suites import registry
from efhorizon.suites.entry import Entry
from efhorizon.suites.environment_names import action_names_of
from efhorizon.suites.environment_source import (
    Environment,
    EnvironmentSource,
    environment_source,
    is_environment_name,
    time_limit,
)
from efhorizon.suites.simulator import SimulatorError
from efhorizon.suites.specification import SimulatorSpec, spec_of


@dataclass(frozen=True)
class StageSpec:
    """How to make a stage; calling it makes one, in any process unless it holds what cannot leave this one."""

    simulator: SimulatorSpec | None = None
    source: EnvironmentSource | None = None
    fixed_start: int | None = None

    def __call__(self, render_mode: str | None = None) -> Stage:
        if self.source is not None:
            return GymnasiumStage(self.source, fixed_start=self.fixed_start, render_mode=render_mode)
        assert self.simulator is not None
        return SimulatorStage(self.simulator())

    @property
    def in_process(self) -> bool:
        return self.source is not None and self.source.thing is not None


@dataclass(frozen=True)
class Subject:
    """An environment with a horizon."""

    id: str
    spec: StageSpec
    horizon: int
    suite: str
    is_image: bool | None  # whether agents see pictures
    action_names: tuple[str, ...]  # of the first actions; perhaps none


def subject_of(
    env: Environment,
    *,
    horizon: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    wrappers: Sequence[str | Callable[..., Any]] = (),
    fixed_start: int | None = None,
    by_gymnasium: bool = False,
) -> Subject:
    """A name of the catalogue, or else an environment as `efhorizon build` takes it.

    With arguments or wrappers, or `by_gymnasium`, a name means what Gymnasium makes even if the catalogue has it too.
    """
    if horizon is not None and not 1 <= horizon <= MAX_HORIZON:
        raise SimulatorError(f"the horizon must be from 1 to {MAX_HORIZON:,}, got {horizon}")
    if isinstance(env, str) and not (arguments or wrappers or by_gymnasium or fixed_start is not None):
        entry = catalog.find(env) or _unlisted(env)
        if entry is not None:
            return _of_entry(entry if horizon is None else entry.with_horizon(horizon))
    if isinstance(env, str) and not is_environment_name(env):
        catalog.entry(env)  # says which names are close to it
        raise SimulatorError(f"{env}: a name of the catalogue, which takes no arguments, wrappers or fixed start")
    source = environment_source(env, arguments, wrappers)
    limit = time_limit(source) if horizon is None else horizon
    if limit is None:
        raise SimulatorError(f"{source.name}: it has no time limit; say how long an episode is, as with --horizon 50")
    return _of_source(source, min(limit, MAX_HORIZON), fixed_start)


def _of_entry(entry: Entry) -> Subject:
    suite = registry.suite(entry.suite)
    return Subject(
        id=entry.name,
        spec=StageSpec(simulator=spec_of(entry)),
        horizon=entry.horizon,
        suite=entry.suite,
        is_image=suite.network(entry.game) == "image",
        action_names=tuple(suite.action_names(entry.game)),
    )


def _of_source(source: EnvironmentSource, horizon: int, fixed_start: int | None) -> Subject:
    env = source.made()
    try:
        shape = getattr(env.observation_space, "shape", None)
        space: Any = env.action_space
        size, first = int(getattr(space, "n", 0)), int(getattr(space, "start", 0))
        names = action_names_of(env, size, first) if size else None
    finally:
        if source.thing is not env:
            env.close()
    start = "" if fixed_start is None else f"-start{fixed_start}"
    return Subject(
        id=f"{table_name(source)}{start}-T{horizon}",
        spec=StageSpec(source=source, fixed_start=fixed_start),
        horizon=horizon,
        suite="gymnasium",
        is_image=shape is not None and len(shape) == 3,
        action_names=names or (),
    )


def _unlisted(name: str) -> Entry | None:
    found = (suite.unlisted_entry(name) for suite in registry.suites())
    return next((entry for entry in found if entry is not None), None)
