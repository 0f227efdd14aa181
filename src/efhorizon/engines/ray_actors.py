"""Actors in the processes of a Ray cluster: one that is there, or one that is started on this machine."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import psutil

from efhorizon.engines.actors import Actor, ActorLostError, Doer, Reference, checked
from efhorizon.engines.choice import LEAST_OBJECT_STORE, EngineChoice, Workplace, environment_defaults
from efhorizon.engines.worker_process import WorkerError
from efhorizon.errors import EfhorizonError
from efhorizon.io.machine import num_cores

_SECONDS_TO_START = 120.0  # for the first sign of life of an actor, and to find a cluster
_SHARE_OF_MEMORY = 0.1  # that a cluster started here may take for its object store, at most


class MissingRayError(EfhorizonError):
    """Ray is not installed."""


def ray_module() -> ModuleType:
    with environment_defaults(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0"):
        try:
            import ray
        except ModuleNotFoundError:
            raise MissingRayError("'ray' is not installed; install it with: pip install 'efhorizon[ray]'") from None
    return ray


class RayActors:
    """Actors of one driver. They end with it."""

    def __init__(self, choice: EngineChoice) -> None:
        """Connect to a cluster; one that this process has connected to already is used as it is."""
        self._ray = ray_module()
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            _connect(self._ray, choice)
        self.num_workers = choice.workers or max(1, int(self._num_cores))
        self._remote = self._ray.remote(_RemoteDoer)
        self._workplace = Workplace()

    @property
    def num_nodes(self) -> int:
        return max(1, sum(bool(node["Alive"]) for node in self._ray.nodes()))

    def cores_for(self, num_actors: int) -> float:
        """One core each, or a share where the cluster has fewer."""
        return min(1.0, int(1000 * self._num_cores / num_actors) / 1000)

    @property
    def _num_cores(self) -> float:
        """Of all nodes that are alive."""
        return float(self._ray.cluster_resources().get("CPU", 0.0))

    @property
    def put(self) -> Callable[[Any], Reference]:
        return _put

    def make(self, make_doer: Callable[[], Any], cores: float = 0.0) -> Actor:
        options = self._remote.options(num_cpus=cores, max_restarts=0, scheduling_strategy="SPREAD")
        return options.remote(self._workplace, make_doer)

    def call(self, actor: Actor, function: Callable[..., Any], *arguments: Any) -> Reference:
        return actor.call.remote(function, *arguments)

    def get(self, reference: Reference) -> Any:
        errors = self._ray.exceptions
        try:
            return checked(self._ray.get(reference))
        except (
            errors.RayTaskError
        ) as error:  # not from a call, which catches what it raises: from reading its arguments
            cause = getattr(error, "cause", None)
            if isinstance(cause, errors.RayError):
                raise ActorLostError(_first_line(cause)) from None
            raise WorkerError(f"a task on the Ray cluster failed: {_first_line(cause or error)}") from None
        except errors.RayError as error:
            raise ActorLostError(_first_line(error)) from None

    def wait(self, references: Sequence[Reference], seconds: float) -> list[Reference]:
        ready, _ = self._ray.wait(list(references), num_returns=1, timeout=seconds)
        if ready and len(references) > 1:  # and all others that are there
            ready, _ = self._ray.wait(list(references), num_returns=len(references), timeout=0)
        return list(ready)

    def check_alive(self, actors: Sequence[Actor]) -> None:
        """Wait until actors have started; a line for the user if they cannot."""
        waiting = [actor.ready.remote() for actor in actors]
        ready, late = self._ray.wait(waiting, num_returns=len(waiting), timeout=_SECONDS_TO_START)
        if late:
            raise WorkerError(
                f"{len(late)} of {len(actors)} Ray actors did not start within {_SECONDS_TO_START:.0f} seconds; "
                "does the cluster have free cores (`ray status`)? Use fewer with --workers"
            )
        for reference in ready:
            self.get(reference)

    def end(self, actors: Sequence[Actor]) -> None:
        for actor in actors:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(actor, no_restart=True)

    def close(self) -> None:
        """Leave the cluster, and stop it if it was started here."""
        if self._is_ours:
            self._ray.shutdown()


class _RemoteDoer:
    """The process of an actor."""

    def __init__(self, workplace: Workplace, make_doer: Callable[[], Any]) -> None:
        workplace.enter()
        self._doer = Doer(make_doer)

    def ready(self) -> bool:
        return True

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._doer.call(function, *arguments)


def _put(value: Any) -> Reference:
    return ray_module().put(value)


def _connect(ray: ModuleType, choice: EngineChoice) -> None:
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    address = choice.address or os.environ.get("RAY_ADDRESS")
    # Ray would run workers at niceness 15, behind everything else on this machine
    with environment_defaults(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0"):
        if address is not None:
            _connect_to(ray, address)
            return
        store = max(LEAST_OBJECT_STORE, min(choice.object_store, int(_SHARE_OF_MEMORY * psutil.virtual_memory().total)))
        try:
            ray.init(address="local", num_cpus=choice.workers or num_cores(), object_store_memory=store, **quiet)
        except (RuntimeError, OSError, ValueError, TimeoutError) as error:
            raise EfhorizonError(f"Ray cannot be started on this machine: {_first_line(error)}") from None


def _connect_to(ray: ModuleType, address: str) -> None:
    failure: list[BaseException] = []

    def connect() -> None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except Exception as error:
            failure.append(error)

    # Ray waits long for a cluster that is not there
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(_SECONDS_TO_START)
    if thread.is_alive() or failure:
        why = _first_line(failure[0]) if failure else "no answer"
        raise EfhorizonError(f"no Ray cluster at {address}: {why}")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
