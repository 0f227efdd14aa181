"""How an environment is named, and how it is made: the one place for both.

    FrozenLake-v1                    an id that is registered with Gymnasium; MiniGrid-... and ALE/... are found too
    my_module:MyEnv-v0               an id that importing a module registers
    my_module:MyEnv                  a class in a module, or a function that returns an environment
    my_env.py:MyEnv                  the same in a file, by its path from the working directory

In Python also a class, a function, or an environment that was made already. Those that can be imported by a name are
named by it; all others stay in the process in which they were made.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.wrappers import TimeLimit

from efhorizon.suites.environment_files import is_file_name, named_object, short_path
from efhorizon.suites.plain_values import NotPlainError, as_json, from_json
from efhorizon.suites.simulator import MissingExtraError, SimulatorError
from efhorizon.suites.state_identity import layers

Environment = str | gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]]

# Packages that register their environments only when they are imported: (start of the ids, module, extra of efhorizon).
_REGISTERED_BY = (
    ("MiniGrid-", "minigrid", "minigrid"),
    ("BabyAI-", "minigrid", "minigrid"),
    ("ALE/", "ale_py", "atari"),
)
STICKY = "repeat_action_probability"  # of Atari games: chance, so it is off unless the user asks for it
_LIMITS = ("max_steps", "_max_episode_steps", "max_episode_steps")  # attributes in which environments keep a time limit


@dataclass(frozen=True)
class EnvironmentSource:
    """How to make an environment. Without `thing`, all of it can be written into a file and sent to other processes."""

    name: str
    arguments: Mapping[str, Any]  # as JSON, see `plain_values`
    wrappers: tuple[str, ...] = ()  # applied in this order
    thing: Any = None  # a class, function or environment that has no name by which it can be imported

    def made(self, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        """A new environment without a time limit of its own: the horizon of a table is the only one."""
        arguments = from_json(dict(self.arguments)) | ({} if render_mode is None else {"render_mode": render_mode})
        try:
            env = self._bare(arguments)
        except SimulatorError:
            raise
        except Exception as error:
            raise _not_made(self.name, error) from None
        if not isinstance(env, gymnasium.Env):
            raise SimulatorError(f"{self.name}: made {type(env).__name__}, which is not a gymnasium.Env")
        for wrapper in self.wrappers:
            env = _wrapped(env, wrapper)
        for name in ("action_space", "observation_space"):
            if not isinstance(getattr(env, name, None), gymnasium.Space):
                raise SimulatorError(f"{self.name}: it has no {name}; its __init__ must make one")
        return env

    def objects(self) -> tuple[Any, ...]:
        """The functions and classes that were named: with those of the environment, they decide what it does."""
        named = [found for name in self.wrappers if callable(found := named_object(name)[2])]
        maker = _maker(self.name) if self.thing is None else self.thing
        identifier = maker.name if isinstance(maker, _RegisteredHere) else maker
        if isinstance(identifier, str) and identifier in gymnasium.registry:
            entry_point = gymnasium.registry[identifier].entry_point
            maker = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
        return (*named, maker) if callable(maker) else tuple(named)

    def _bare(self, arguments: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
        maker = _maker(self.name) if self.thing is None else self.thing
        if isinstance(maker, str):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that there is a newer version, say
                return gymnasium.make(maker, max_episode_steps=-1, disable_env_checker=True, **arguments)
        if isinstance(maker, gymnasium.Env):
            return without_time_limit(_twin(maker))
        return without_time_limit(maker(**arguments))


def environment_source(
    env: Environment, arguments: Mapping[str, Any] | None = None, wrappers: Sequence[str | Callable[..., Any]] = ()
) -> EnvironmentSource:
    """Where an environment comes from that was given by a name, a class, a function, or as it is."""
    if isinstance(env, gymnasium.Env) and arguments:
        raise SimulatorError("arguments go with a name, a class or a function: this environment was made already")
    given, names = _as_json(arguments or {}), tuple(_wrapper_name(wrapper) for wrapper in wrappers)
    if isinstance(env, str):
        if env.startswith("ALE/"):
            given = {STICKY: 0.0, **given}
        return EnvironmentSource(_normal(env), given, names, _unsendable(env))
    if isinstance(env, gymnasium.Env):
        return EnvironmentSource(_described(env), given, names, env)
    if not callable(env):
        raise SimulatorError(f"an environment is a name, a class, a function or a gymnasium.Env, not {env!r:.60}")
    name = _importable_name(env)
    return EnvironmentSource(name or _described(env), given, names, None if name else env)


def is_environment_name(name: str) -> bool:
    """Whether a name is meant for this module: a file or module, or an id that Gymnasium knows."""
    if ":" in name or is_file_name(name):
        return True
    try:
        _register(name)
    except MissingExtraError:
        return True
    return name in gymnasium.registry


def time_limit(source: EnvironmentSource) -> int | None:
    """The length of an episode: as it is registered, or else as the environment itself has it."""
    maker = _maker(source.name) if source.thing is None else source.thing
    identifier = maker.name if isinstance(maker, _RegisteredHere) else maker
    if isinstance(identifier, str):
        registered = _registered_limit(source.name, identifier)
        if registered is not None:
            return registered
    env = maker if isinstance(maker, gymnasium.Env) else _with_limit(source, maker)
    for layer in layers(env):
        limit = getattr(layer, "_max_episode_steps", None) if isinstance(layer, TimeLimit) else None
        if isinstance(limit, int) and limit > 0:
            return limit
    spec = getattr(env, "spec", None)
    if spec is not None and spec.max_episode_steps is not None and spec.max_episode_steps > 0:
        return int(spec.max_episode_steps)
    limits: list[Any] = [getattr(env.unwrapped, name, None) for name in _LIMITS]
    return next((int(limit) for limit in limits if _is_limit(limit)), None)


def without_time_limit(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """The same environment, in which no TimeLimit ends an episode any more."""
    while isinstance(env, TimeLimit):
        env = env.env
    for layer in layers(env):
        if isinstance(layer, TimeLimit):
            layer._max_episode_steps = sys.maxsize
    return env


def close_quietly(env: gymnasium.Env[Any, Any]) -> None:
    """Close an environment that is not needed any more: if that fails, nothing is lost."""
    with contextlib.suppress(Exception):
        env.close()


def first_line(error: BaseException) -> str:
    """What went wrong, in one line."""
    return (str(error).splitlines() or [type(error).__name__])[0] or type(error).__name__


def with_arguments(source: EnvironmentSource, **more: Any) -> EnvironmentSource:
    """The same environment with other arguments."""
    return replace(source, arguments={**source.arguments, **_as_json(more)})


def _not_made(name: str, error: Exception) -> SimulatorError:
    """An unknown id, a missing package, wrong arguments: all are one line to the user."""
    reason = first_line(error)
    if isinstance(error, gymnasium.error.DependencyNotInstalled) and "box2d" in reason.lower():
        return MissingExtraError("box2d", "Box2D")
    hint = ""
    if isinstance(error, TypeError) and "missing" in reason and "argument" in reason:
        hint = "; give it with --env-arg KEY=VALUE"
        if "'env'" in reason:
            hint = f"; a wrapper is not an environment: name what it wraps, and add --wrapper {name}"
    return SimulatorError(f"{name}: {reason}{hint}")


def _is_limit(limit: Any) -> bool:
    return type(limit) is not bool and isinstance(limit, int | np.integer) and 0 < int(limit) < sys.maxsize


def _with_limit(source: EnvironmentSource, maker: Any) -> gymnasium.Env[Any, Any]:
    if isinstance(maker, str):
        return source.made()
    try:
        env = maker(**from_json(dict(source.arguments)))
    except Exception as error:
        raise _not_made(source.name, error) from None
    return env if isinstance(env, gymnasium.Env) else source.made()  # which says what is wrong


def _registered_limit(name: str, identifier: str) -> int | None:
    try:
        return gymnasium.spec(identifier).max_episode_steps
    except Exception as error:
        raise SimulatorError(f"{name}: {first_line(error)}") from None


def _maker(name: str) -> Any:
    """A class or function by its name, or the id to give to Gymnasium."""
    if is_file_name(name):
        raise SimulatorError(f"{name}: which environment? {_suggested(name)}")
    if ":" not in name:
        _register(name)
        return name
    _module, wanted, found = named_object(name)
    if wanted in gymnasium.registry:
        return wanted
    if callable(found):
        return found
    if isinstance(found, gymnasium.Env):
        return found
    place = name.partition(":")[0]
    what = "is no class and no function" if found is not None else "is not there, nor is it registered as an id"
    raise SimulatorError(f"{name}: {wanted!r} {what}; {_suggested(place)}")


def _suggested(place: str) -> str:
    """What there is in a file or module, to be typed."""
    module = named_object(f"{place}:")[0]
    kinds = [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, gymnasium.Env) and value.__module__ == module.__name__
    ]
    ids = [spec.id for spec in gymnasium.registry.values() if _module_of(spec.entry_point) == module.__name__]
    found = [f"{place}:{name}" for name in [*kinds, *ids][:5]]
    return f"type {' or '.join(found)}" if found else f"type {place}:NAME with a class or function that it has"


def _module_of(entry_point: object) -> str | None:
    if isinstance(entry_point, str):
        return entry_point.partition(":")[0]
    return getattr(entry_point, "__module__", None)


def _register(name: str) -> None:
    """Import the package that registers an id."""
    if name in gymnasium.registry:
        return
    for start, module, extra in _REGISTERED_BY:
        if name.startswith(start):
            try:
                imported = import_module(module)
            except ModuleNotFoundError:
                raise MissingExtraError(extra, module) from None
            register = getattr(imported, "register_minigrid_envs", None)
            if callable(register) and not any(known.startswith(start) for known in gymnasium.registry):
                register()
            if module == "ale_py" and name not in gymnasium.registry:
                gymnasium.register_envs(imported)
            _quiet(imported)


def _quiet(module: Any) -> None:
    """Keep ALE from greeting in every process."""
    interface = getattr(module, "ALEInterface", None)
    if interface is not None:
        interface.setLoggerMode(module.LoggerMode.Error)


def _wrapped(env: gymnasium.Env[Any, Any], name: str) -> gymnasium.Env[Any, Any]:
    _, wanted, wrapper = named_object(name)
    if not callable(wrapper):
        raise SimulatorError(f"{name}: there is no {wanted!r}; --wrapper takes module:Wrapper or file.py:Wrapper")
    try:
        wrapped = wrapper(env)
    except Exception as error:
        raise SimulatorError(
            f"{name} cannot be applied: {first_line(error)}; it is called with the environment alone, so write a "
            "function for anything more, and name that"
        ) from None
    if not isinstance(wrapped, gymnasium.Env):
        raise SimulatorError(f"{name}: made {type(wrapped).__name__}, which is not a gymnasium.Env")
    return without_time_limit(wrapped)


def _wrapper_name(wrapper: str | Callable[..., Any]) -> str:
    if isinstance(wrapper, str):
        if ":" not in wrapper:
            raise SimulatorError(
                f"{wrapper!r} is not module:Wrapper or file.py:Wrapper, as in gymnasium.wrappers:FlattenObservation"
            )
        return _normal(wrapper)
    name = _importable_name(wrapper)
    if name is None:
        raise SimulatorError(
            f"{wrapper!r:.60} cannot be imported by a name; apply it yourself and give the environment"
        )
    return name


def _normal(name: str) -> str:
    """One spelling for ./my_env.py:Grid, my_env.py:Grid and the absolute path."""
    place, colon, wanted = name.partition(":")
    if not is_file_name(place):
        return name
    return short_path(_path(place)) + colon + wanted


def _path(place: str) -> Any:
    from pathlib import Path

    return Path(os.path.expanduser(place))


def _unsendable(name: str) -> Any:
    """An id's class or function that only this process has: one that a script or a notebook registered."""
    spec = gymnasium.registry.get(name)
    entry_point = None if spec is None else spec.entry_point
    if spec is None or not callable(entry_point) or _importable_name(entry_point) is not None:
        return None
    return _RegisteredHere(name)


@dataclass(frozen=True)
class _RegisteredHere:
    """Makes an environment by an id that other processes do not know."""

    name: str

    def __call__(self, **arguments: Any) -> gymnasium.Env[Any, Any]:
        return gymnasium.make(self.name, max_episode_steps=-1, disable_env_checker=True, **arguments)


def _importable_name(thing: Any) -> str | None:
    """`module:qualified.name`, if importing that in another process gives the same thing."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not module or not name or module in ("__main__", "__mp_main__") or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    if getattr(found, "__file__", None) is None:
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is thing else None


def _described(thing: Any) -> str:
    """A name for people, of something that has none by which it could be imported."""
    if isinstance(thing, gymnasium.Env):
        spec = thing.spec
        return spec.id if spec is not None else type(thing.unwrapped).__name__
    return str(getattr(thing, "__name__", type(thing).__name__)).strip("<>")


def _twin(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """A copy, so that the user's environment stays as it is; the environment itself if it cannot be copied."""
    try:
        return copy.deepcopy(env)
    except Exception:
        return env


def _as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for key, value in arguments.items():
        try:
            found[str(key)] = as_json(value)
        except NotPlainError as error:
            raise SimulatorError(
                f"the argument {key!r}: {error}; give a function that makes the environment instead"
            ) from None
    return found
