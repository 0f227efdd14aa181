"""PPO and DQN by Stable-Baselines3 on the live environment: the reference for the table backend.

Same settings, protocol and results as `ppo.train` and `dqn.train`. The table is needed for the optimal return only, and
to know the state for which an exploration policy is asked.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from efhorizon import catalog
from efhorizon.agents.deep.networks import network_for
from efhorizon.agents.deep.observations import FlatColumns, ObservedTable, UntrainableTableError
from efhorizon.agents.deep.pretrained import check_parameters
from efhorizon.agents.deep.protocol import Protocol, RunRecord, RunResult
from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.agents.live.bridge_env import BridgeEnv
from efhorizon.planning.policies import ExplorationPolicy
from efhorizon.suites.simulator import MissingExtraError

BEHAVIOUR = 1  # raise it when the same inputs give another result: see io/behaviour.py


class ExploringActions(gymnasium.spaces.Discrete):
    """Actions that are drawn as an exploration policy says: Stable-Baselines3 takes its random actions from here."""

    def __init__(self, table: ObservedTable, policy: ExplorationPolicy) -> None:
        super().__init__(table.num_actions)
        self._table, self._policy = table, policy
        self.restart()

    def restart(self) -> None:
        self._node, self._time = 0, 0

    def follow(self, action: int) -> None:
        """The environment has taken this action."""
        self._node, self._time = int(self._table.transitions[self._node, action]), self._time + 1

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        row = self._policy.row(self._time, int(self._table.state[self._node]))
        return np.int64(self.np_random.choice(len(row), p=row))


class LearnerEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A catalogue entry as a learner meets it: scaled rewards, and the horizon an end where the discount is 1.

    `units` is the return of the episode so far in exact reward units; at the end of an episode it is in the info too.
    """

    def __init__(
        self, name: str, *, unit: float, bootstraps_at_horizon: bool, exploring: ExploringActions | None = None
    ) -> None:
        super().__init__(BridgeEnv(name))
        self._exploring = exploring
        if exploring is not None:
            self.action_space = exploring
        self._factor = catalog.entry(name).reward_factor
        self._unit = unit
        self._bootstraps_at_horizon = bootstraps_at_horizon
        self.units = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.units = 0
        if self._exploring is not None:
            self._exploring.restart()
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        self.units += round(float(reward) / self._unit)
        if self._exploring is not None:
            self._exploring.follow(int(action))
        if truncated and not self._bootstraps_at_horizon:
            terminated, truncated = True, False
        if terminated or truncated:
            info["units"] = self.units
        return observation, float(reward) / self._factor, terminated, truncated, info


def train(
    name: str,
    table: ObservedTable,
    settings: PPOSettings | DQNSettings,
    protocol: Protocol,
    seeds: Sequence[int],
    *,
    initial: Mapping[str, NDArray[Any]] | None = None,
    exploration_policy: ExplorationPolicy | None = None,
    on_progress: Callable[[list[RunRecord]], None] | None = None,
) -> list[RunResult]:
    """Train one agent after the other.

    `initial` is a policy's state dictionary to start from; DQN's random actions are those of `exploration_policy`.
    """
    entry = catalog.entry(name)
    if entry.horizon != table.horizon:
        raise UntrainableTableError(f"{table.id}: the live environment {name} has horizon {entry.horizon}")
    callback_class = _callback_class()
    runs = [RunRecord(seed, protocol, optimal_units=table.optimal_units, unit=table.unit) for seed in seeds]
    with _suitable_threads(table):
        for run in runs:
            evaluation_env = _environment(name, table)
            model = agent(name, table, settings, run.seed, initial, exploration_policy)
            callback = callback_class(
                run, evaluation_env, protocol.evaluation_interval, lambda: on_progress(runs) if on_progress else None
            )
            # Epsilon falls over the whole schedule, however long the run is; the callback ends it.
            total = settings.schedule_steps if isinstance(settings, DQNSettings) else protocol.max_steps
            model.learn(total_timesteps=max(total, protocol.max_steps), callback=callback)
            model.env.close()
            evaluation_env.close()
    return [run.result() for run in runs]


@contextlib.contextmanager
def _suitable_threads(table: ObservedTable) -> Iterator[None]:
    """One thread for MLPs: several mostly wait for each other, for a long time if other jobs keep the cores busy."""
    _, torch = libraries()
    before = torch.get_num_threads()
    if isinstance(table.seen, FlatColumns):
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def agent(
    name: str,
    table: ObservedTable,
    settings: PPOSettings | DQNSettings,
    seed: int,
    initial: Mapping[str, NDArray[Any]] | None = None,
    exploration_policy: ExplorationPolicy | None = None,
) -> Any:
    """A Stable-Baselines3 model with its environments."""
    library, torch = libraries()
    policy = "MlpPolicy" if isinstance(table.seen, FlatColumns) else "CnnPolicy"
    num_envs = settings.num_envs if isinstance(settings, PPOSettings) else 1
    envs = library.common.vec_env.DummyVecEnv(
        [lambda: _environment(name, table, exploration_policy) for _ in range(num_envs)]
    )
    common = {
        "learning_rate": settings.rate,
        "batch_size": settings.minibatch,
        "gamma": settings.gamma,
        "max_grad_norm": settings.max_gradient_norm,
        "policy_kwargs": {"activation_fn": torch.nn.ReLU},
        "seed": seed,
    }
    if isinstance(settings, PPOSettings):
        model = library.PPO(
            policy,
            envs,
            n_steps=settings.rollout_length,
            n_epochs=settings.num_epochs,
            gae_lambda=settings.gae_lambda,
            clip_range=settings.clip,
            ent_coef=settings.entropy_weight,
            vf_coef=settings.value_weight,
            **common,
        )
    else:
        model = library.DQN(
            policy,
            envs,
            buffer_size=settings.buffer_size,
            learning_starts=0,
            train_freq=settings.train_every,
            gradient_steps=1,
            target_update_interval=settings.target_interval,
            exploration_fraction=settings.exploration_fraction,
            exploration_final_eps=settings.final_epsilon,
            **common,
        )
    if initial is not None:
        _load(model, table, initial)
    return model


def _load(model: Any, table: ObservedTable, initial: Mapping[str, NDArray[Any]]) -> None:
    """Set a model's parameters. The target network of DQN starts as a copy, as in the table backend."""
    _, torch = libraries()
    is_actor_critic = not hasattr(model, "q_net")
    needed = network_for("actor_critic" if is_actor_critic else "q", table).torch_shapes
    check_parameters(initial, needed)
    model.policy.load_state_dict({name: torch.tensor(initial[name]) for name in needed}, strict=False)
    if not is_actor_critic:
        model.q_net_target.load_state_dict(model.q_net.state_dict())


def _environment(name: str, table: ObservedTable, policy: ExplorationPolicy | None = None) -> LearnerEnv:
    exploring = None if policy is None or policy.is_uniform else ExploringActions(table, policy)
    return LearnerEnv(name, unit=table.unit, bootstraps_at_horizon=table.bootstraps_at_horizon, exploring=exploring)


def libraries() -> tuple[Any, Any]:
    with contextlib.redirect_stderr(io.StringIO()):  # old Gym, where it is installed, prints a notice
        try:
            import stable_baselines3
            import torch
        except ImportError as error:
            raise MissingExtraError("train", error.name or "stable_baselines3") from None
    return stable_baselines3, torch


def _callback_class() -> type[Any]:
    """The callback, made when Stable-Baselines3 is there."""
    libraries()
    from stable_baselines3.common.callbacks import BaseCallback

    class ProtocolCallback(BaseCallback):
        """Passes every episode and evaluation on to the run, and ends the training when it is finished."""

        def __init__(self, run: RunRecord, env: LearnerEnv, interval: int, on_evaluation: Callable[[], None]) -> None:
            super().__init__()
            self._run, self._env, self._interval, self._on_evaluation = run, env, interval, on_evaluation
            self._began = time.monotonic()
            self._next = interval

        def _on_step(self) -> bool:
            units = [info["units"] for info in self.locals["infos"] if "units" in info]
            if units:
                self._run.episodes(np.full(len(units), self.num_timesteps), np.array(units))
            if self.num_timesteps >= self._next:
                self._run.evaluated(self._next, self._greedy_units())
                self._next += self._interval
                self._run.wall_seconds = time.monotonic() - self._began
                self._on_evaluation()
            self._run.passed(self.num_timesteps)
            self._run.wall_seconds = time.monotonic() - self._began
            return not self._run.is_finished

        def _greedy_units(self) -> int:
            observation, _ = self._env.reset()
            is_over = False
            while not is_over:
                action, _ = self.model.predict(observation, deterministic=True)
                observation, _, terminated, truncated, _ = self._env.step(int(action))
                is_over = terminated or truncated
            return self._env.units

    return ProtocolCallback
