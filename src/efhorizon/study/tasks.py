"""What is to be run: every table with every setting. All seeds of one setting are one task."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import convert
from numpy.typing import ArrayLike, NDArray

from efhorizon import catalog
from efhorizon.agents.deep.observations import UntrainableTableError, network_on, observation_digest
from efhorizon.agents.deep.pretrained import Start
from efhorizon.agents.deep.protocol import PAPER_STEPS, Protocol
from efhorizon.agents.deep.settings import DQNSettings, PPOSettings
from efhorizon.agents.tabular.gorp_search import BUDGET
from efhorizon.errors import EfhorizonError
from efhorizon.io.behaviour import version_name
from efhorizon.io.tables import opened_table
from efhorizon.mdp import TabularMDP
from efhorizon.planning.policies import ExplorationPolicy, InvalidPolicyError
from efhorizon.planning.policies import exploration_policy as checked_policy
from efhorizon.study import sweep
from efhorizon.study.records import PlannedRuns, RunKey, RunProtocol
from efhorizon.study.sweep import Settings
from efhorizon.study.variants import PolicyFile, explorer
from efhorizon.suites import registry
from efhorizon.suites.simulator import MissingExtraError

_LEARNERS = {  # the module that runs, whose BEHAVIOUR decides whether a row still counts
    "ppo dense": "efhorizon.agents.deep.ppo_flat",
    "ppo image": "efhorizon.agents.deep.ppo_images",
    "dqn dense": "efhorizon.agents.deep.dqn_flat",
    "dqn image": "efhorizon.agents.deep.dqn_images",
    "sb3": "efhorizon.agents.deep.sb3",
    "gorp": "efhorizon.agents.tabular.gorp",
}
OBSERVATION = "observation"  # of the hyperparameters of PPO and DQN on a table that is not of the catalogue: a digest
EXPLORATION_NETWORK = "exploration_network"  # of GORP's hyperparameters on a variant: a digest of parameters


class UnsuitableStartError(EfhorizonError):
    """An algorithm cannot start from what it was given; the message is one line for the user."""


@dataclass(frozen=True)
class RunPlan:
    """The runs of one algorithm on each MDP; the defaults are the paper's. GORP has its own budget and 101 seeds."""

    algorithm: sweep.Algorithm
    settings: str = sweep.PAPER
    num_seeds: int = sweep.SEEDS
    max_steps: int = PAPER_STEPS

    def record(self) -> PlannedRuns:
        if self.algorithm == "gorp":
            return PlannedRuns(self.algorithm, self.setting_names())
        return PlannedRuns(self.algorithm, self.setting_names(), self.num_seeds, self.max_steps)

    def setting_names(self) -> list[str]:
        return list(sweep.named_settings(self.algorithm, self.settings))

    @property
    def num_runs(self) -> int:
        """Rows of one setting."""
        return 1 if self.algorithm == "gorp" else self.num_seeds


@dataclass(frozen=True)
class RunTask:
    """Runs that differ in their seed only."""

    id: str  # of the MDP
    table: TabularMDP | Path  # a path until it is loaded: so a task is small enough to send to another process
    network: str  # that it is learnt with: "dense" or "image"
    algorithm: sweep.Algorithm
    backend: str
    setting: str
    changes: Settings  # what the setting sets
    seeds: tuple[int, ...]
    max_steps: int
    start: Start = field(default_factory=Start)
    policy: PolicyFile | None = None  # of a variant: PPO starts from its network, GORP explores with it
    horizon: int | None = None  # in place of the one that the table's file says

    @property
    def title(self) -> str:
        return f"{self.id} {self.algorithm} {self.setting}" + (" sb3" if self.backend == "sb3" else "")

    @property
    def mdp(self) -> TabularMDP:
        assert isinstance(self.table, TabularMDP), "the table is not loaded"
        return self.table

    def loaded(self) -> RunTask:
        """The task with its table in memory."""
        return self.on(opened_table(self.table, horizon=self.horizon)) if isinstance(self.table, Path) else self

    def on(self, mdp: TabularMDP) -> RunTask:
        """The task with this table, which is loaded already."""
        _check_complete(mdp)
        return dataclasses.replace(self, table=mdp, network=network_on(mdp))  # only a table knows its observations

    def protocol(self) -> Protocol:
        window = sweep.TRAINING_WINDOW if self.algorithm == "ppo" else None
        return Protocol(self.max_steps, sweep.EVALUATION_INTERVAL, window)

    def hyperparameters(self) -> Settings:
        set_here = dict(self.changes) if self.algorithm == "gorp" else dataclasses.asdict(self.settings())
        seen = None if self.algorithm == "gorp" else _observation_digest(self.mdp)
        if seen is not None:
            set_here[OBSERVATION] = seen
        if self.policy is not None:
            return set_here | {EXPLORATION_NETWORK if self.algorithm == "gorp" else "initial": self.policy.network}
        return set_here | self.start.digests

    @property
    def initial(self) -> Mapping[str, NDArray[Any]] | None:
        """The parameters that PPO or DQN starts from."""
        return self.start.initial if self.policy is None else self.policy.parameters

    def exploration(self) -> tuple[TabularMDP, ExplorationPolicy | None]:
        """The policy that explores, and the table whose states it tells apart; None: every action equally likely."""
        if self.policy is None:
            return self.mdp, self.start.exploration_policy
        found = explorer(self.mdp, self.policy)
        return found.mdp, found.policy

    def settings(self) -> Any:
        """The settings of PPO or DQN."""
        gamma = registry.suite(self.mdp.metadata.get("suite")).discount
        settings = PPOSettings if self.algorithm == "ppo" else DQNSettings
        return settings(gamma=gamma, **self.changes)

    @property
    def kind(self) -> str:
        """What runs: a key of `_LEARNERS`."""
        if self.algorithm == "gorp":
            return "gorp"
        return "sb3" if self.backend == "sb3" else f"{self.algorithm} {self.network}"

    @property
    def code(self) -> str:
        """The version of the learner, on which a row depends."""
        return version_name(self.kind, import_module(_LEARNERS[self.kind]).BEHAVIOUR)

    def key(self, seed: int) -> RunKey:
        return RunKey(
            self.id,
            self.algorithm,
            self.backend,
            self.setting,
            seed,
            self.hyperparameters(),
            convert(self.protocol(), RunProtocol, from_attributes=True),
            _fingerprint(self.mdp),
            self.code,
        )


def check_installed(algorithm: str, backend: str) -> None:
    """Refuse at once if a package is missing."""
    if algorithm == "gorp":
        return
    for module in ("torch",) if backend == "table" else ("torch", "stable_baselines3"):
        try:
            __import__(module)
        except ImportError:
            raise MissingExtraError("train", module) from None


def check_start(algorithm: str, *, has_policy: bool, has_parameters: bool) -> None:
    """Refuse at once if the algorithm cannot start from what was given."""
    if has_policy and algorithm == "ppo":
        raise UnsuitableStartError(
            "PPO explores with the policy that it learns: give it initial parameters instead of an exploration policy"
        )
    if has_parameters and algorithm == "gorp":
        raise UnsuitableStartError("GORP has no network: give it an exploration policy instead of initial parameters")


def check_listed(mdps: Sequence[TabularMDP]) -> None:
    """Refuse tables whose live environment is not in the catalogue."""
    for mdp in mdps:
        if catalog.find(str(mdp.metadata.get("catalogue_name") or mdp.metadata.get("id"))) is None:
            raise UntrainableTableError(
                f"{mdp.metadata.get('id')}: Stable-Baselines3 plays environments of the catalogue only (efhorizon "
                "list); leave out --backend sb3 to train on the table"
            )


def tasks(
    mdps: Sequence[TabularMDP],
    algorithm: sweep.Algorithm,
    *,
    backend: str = "table",
    settings: str = sweep.PAPER,
    num_seeds: int = sweep.SEEDS,
    max_steps: int = PAPER_STEPS,
    exploration_policy: ArrayLike | None = None,
    initial: Mapping[str, NDArray[Any]] | None = None,
) -> list[RunTask]:
    """The grid. `exploration_policy` (DQN, GORP) is an array [S, A] or [T, S, A], `initial` (PPO, DQN) the state
    dictionary of a Stable-Baselines3 policy."""
    check_start(algorithm, has_policy=exploration_policy is not None, has_parameters=initial is not None)
    if backend == "sb3":
        for mdp in mdps:
            if mdp.metadata.get("changes"):
                name = mdp.metadata.get("id")
                raise UntrainableTableError(f"{name}: a changed table has no live environment to play in")
        check_listed(mdps)
    runs = RunPlan(algorithm, settings, num_seeds, max_steps)
    return [
        task
        for mdp in mdps
        for task in tasks_on(
            mdp,
            str(mdp.metadata.get("id")),
            network_on(mdp),
            runs,
            backend=backend,
            start=_start(mdp, exploration_policy, initial),
        )
    ]


def tasks_on(
    table: TabularMDP | Path,
    name: str,
    network: str,
    runs: RunPlan,
    *,
    backend: str = "table",
    start: Start | None = None,
    policy: PolicyFile | None = None,
    horizon: int | None = None,
) -> list[RunTask]:
    """One task per setting. GORP runs its 101 seeds at once, so each of its settings is one row, with its own budget.
    The name of a setting includes what its runs start from, so that no median is taken over unlike runs; a variant's
    own name says it already."""
    algorithm, max_steps = runs.algorithm, runs.max_steps
    start = start or Start()
    if algorithm == "gorp":
        backend, max_steps = "table", BUDGET
    seeds = tuple(range(runs.num_runs))
    return [
        RunTask(
            name,
            table,
            network,
            algorithm,
            backend,
            setting + start.suffix,
            changes,
            seeds,
            max_steps,
            start,
            policy,
            horizon,
        )
        for setting, changes in sweep.named_settings(algorithm, runs.settings).items()
    ]


def _start(mdp: TabularMDP, policy: ArrayLike | None, initial: Mapping[str, NDArray[Any]] | None) -> Start:
    """What runs on this table start from, checked against it; the uniform policy is the algorithms' own."""
    _check_complete(mdp)
    try:
        explorer = checked_policy(mdp, policy)
    except InvalidPolicyError as error:
        raise InvalidPolicyError(f"{mdp.metadata.get('id')}: {error}") from None
    return Start(None if explorer.is_uniform else explorer, initial)


def _check_complete(mdp: TabularMDP) -> None:
    if not mdp.is_complete:
        name = mdp.metadata.get("id")
        raise UntrainableTableError(f"{name}: the table is unfinished; training needs a complete one")


@lru_cache(maxsize=4)
def _observation_digest(mdp: TabularMDP) -> str | None:
    return observation_digest(mdp)


@lru_cache(maxsize=4)  # one table has several settings and seeds; more entries would keep old tables in memory
def _fingerprint(mdp: TabularMDP) -> str:
    return mdp.fingerprint()
