"""PPO and DQN on sticky tables: the learners of `agents/deep`, with the chance drawn in their compiled loops.

Every `evaluation_interval` timesteps the greedy policy is evaluated exactly on the table, over all chance, and so is
the policy that PPO plays, which draws its actions. A run has solved the MDP when either expected return is within 1% of
optimal: J >= J* - 0.01 |J*|. Nothing is estimated, so no number of evaluation episodes has to be chosen. (A greedy
policy that does not see the previous action can be stuck where PPO's own policy is not; without chance, the paper's
rule for training episodes covers the latter.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from efhorizon import catalog
from efhorizon.agents.deep.dqn_flat import FlatDQN
from efhorizon.agents.deep.networks import network_for
from efhorizon.agents.deep.observations import FlatColumns, ObservedTable, UntrainableTableError
from efhorizon.agents.deep.ppo_flat import FlatPPO
from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic.observed import sticky_observed_table
from efhorizon.stochastic.planning import Plan
from efhorizon.suites import registry

BEHAVIOUR = 2  # raise it when the same inputs give another result

RELATIVE_LOSS = 0.01
_MAX_CODE = 2**31 - 1
Algorithm = Literal["ppo", "dqn"]


@dataclass(frozen=True)
class StickyRun:
    """One run: its seed, when it solved the MDP, and the exact returns of its greedy policies on the way."""

    seed: int
    sample_complexity: int | None  # timesteps until a policy was within 1% of optimal; None: never
    solved_by: str | None  # "greedy policy", or "policy as played"
    steps: int
    final_return: float  # of the greedy policy
    curve: tuple[tuple[int, float, float | None], ...]  # timesteps, exact return of the greedy policy, of PPO's own


def settings_for(
    mdp: TabularMDP, algorithm: Algorithm, changes: Mapping[str, Any], max_steps: int
) -> PPOSettings | DQNSettings:
    """The paper's settings with these changes: discount 0.99 on MiniGrid, 1 elsewhere."""
    entry = catalog.find(str(mdp.metadata.get("catalogue_name") or mdp.metadata.get("id")))
    suite = mdp.metadata.get("suite") if entry is None else entry.suite
    gamma = registry.suite(suite).discount
    if algorithm == "ppo":
        return PPOSettings(gamma=gamma, **changes)
    return DQNSettings(gamma=gamma, schedule_steps=max_steps, **changes)


def is_solved(found: float, optimal: float) -> bool:
    """Within 1% of the optimal return."""
    return found >= optimal - RELATIVE_LOSS * abs(optimal) - 1e-12 * max(1.0, abs(optimal))


def train_sticky(
    mdp: TabularMDP,
    chance: float,
    algorithm: Algorithm,
    settings: PPOSettings | DQNSettings,
    seeds: Sequence[int],
    *,
    max_steps: int = PAPER_STEPS,
    evaluation_interval: int = 10_000,
    on_progress: Callable[[int, list[float]], None] | None = None,
) -> list[StickyRun]:
    """Train one agent per seed until it has solved the sticky table or has taken `max_steps` timesteps."""
    table, made = sticky_observed_table(mdp, chance)
    if not isinstance(table.seen, FlatColumns):
        raise UntrainableTableError(f"{table.id}: sticky tables with images are not trained on")
    plan = Plan(made)
    optimal = plan.optimal.values.at_start
    learners = _learners(table, algorithm, settings, seeds, evaluation_interval)
    going = list(range(len(seeds)))  # the run of each place
    curves: list[list[tuple[int, float, float | None]]] = [[] for _ in seeds]
    solved: list[tuple[int, str] | None] = [None] * len(seeds)
    step, due = 0, evaluation_interval
    while going and step < max_steps:
        step += learners.advance(step)
        if step < due:
            continue
        due = (step // evaluation_interval + 1) * evaluation_interval
        for place, run in enumerate(going):
            outputs = learners.outputs(place)
            found = plan.return_of(outputs.argmax(axis=1)[table.observation])
            played = plan.exploration(_softmax(outputs)[table.observation]).at_start if algorithm == "ppo" else None
            curves[run].append((step, found, played))
            if is_solved(found, optimal):
                solved[run] = step, "greedy policy"
            elif played is not None and is_solved(played, optimal):
                solved[run] = step, "policy as played"
        left = [place for place, run in enumerate(going) if solved[run] is None]
        if len(left) < len(going):
            kept = learners.keep(left)
            going = [going[place] for place in kept]
        if on_progress is not None:
            on_progress(step, [curve[-1][1] for curve in curves])
    runs = []
    for seed, when, curve in zip(seeds, solved, curves, strict=True):
        needed, by = (None, None) if when is None else when
        steps, final = (curve[-1][0], curve[-1][1]) if curve else (0, float("nan"))
        runs.append(StickyRun(seed, needed, by, steps, final, tuple(curve)))
    return runs


def _softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities [U, A]."""
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return shares


class _Learners:
    """Both kinds of learners in one form."""

    def __init__(self, table: ObservedTable, learners: FlatPPO | FlatDQN, interval: int) -> None:
        self._learners, self._interval = learners, interval
        self._network = network_for("actor_critic" if isinstance(learners, FlatPPO) else "q", table)
        assert isinstance(table.seen, FlatColumns)
        self._seen = table.seen.values

    def advance(self, step: int) -> int:
        """Timesteps that were taken."""
        if isinstance(self._learners, FlatPPO):
            done = self._learners.updates(step).is_done
            return int(done.shape[0] * done.shape[2] * done.shape[3])
        self._learners.interval(step)
        return self._interval

    def outputs(self, place: int) -> NDArray[np.float32]:
        """Logits or Q-values of each observation [U, A]."""
        is_ppo = isinstance(self._learners, FlatPPO)
        theta = (
            self._learners.carried.theta[place] if isinstance(self._learners, FlatPPO) else self._learners.theta[place]
        )
        parameters, tower = self._network.unpacked(theta), "pi" if is_ppo else "q"
        hidden: NDArray[Any] = self._seen
        for layer in (0, 1):
            hidden = np.maximum(hidden @ parameters[f"{tower}.{layer}.w"] + parameters[f"{tower}.{layer}.b"], 0)
        found: NDArray[np.float32] = hidden @ parameters[f"{tower}.out.w"] + parameters[f"{tower}.out.b"]
        return found

    def keep(self, places: list[int]) -> Sequence[int]:
        return self._learners.keep(places) if places else []


def _learners(
    table: ObservedTable,
    algorithm: Algorithm,
    settings: PPOSettings | DQNSettings,
    seeds: Sequence[int],
    interval: int,
) -> _Learners:
    if algorithm == "ppo":
        assert isinstance(settings, PPOSettings)
        return _Learners(table, FlatPPO(table, settings, 2**62, seeds), interval)
    assert isinstance(settings, DQNSettings)
    if 4 * table.transitions.size > _MAX_CODE:
        raise UntrainableTableError(f"{table.id}: {table.transitions.size} transitions do not fit the replay buffer")
    return _Learners(table, FlatDQN(table, settings, interval, seeds), interval)
