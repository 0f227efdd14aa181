"""Building a table from end to end: probe, search, consolidate, verify, store."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from efhorizon._version import __version__
from efhorizon.build import consolidate, explore
from efhorizon.build.batched_choice import BATCHED, batched_simulator
from efhorizon.build.batched_search import BatchedSearch, explore_batched
from efhorizon.build.consolidate import Rule
from efhorizon.build.divided import collect
from efhorizon.build.divided_search import explore_divided
from efhorizon.build.drawn_states import with_pictures
from efhorizon.build.explore import Budget, Outcome, Progress, opened_search
from efhorizon.build.large_table import large_table
from efhorizon.build.reuse import changed_environment, stored_difference
from efhorizon.build.search import Search
from efhorizon.build.search_folder import SearchFolder
from efhorizon.build.table import table, unfinished_table
from efhorizon.build.target import Target, catalogue_target
from efhorizon.build.verify import NumPairs, verify
from efhorizon.engines.choice import EngineChoice
from efhorizon.errors import EfhorizonError
from efhorizon.io.behaviour import version_name
from efhorizon.io.provenance import changes, provenance_digest, simulator_provenance
from efhorizon.io.tables import load, save
from efhorizon.mdp import TabularMDP
from efhorizon.planning.optimal import return_range
from efhorizon.suites import registry
from efhorizon.suites.simulator import Simulator, StochasticError
from efhorizon.suites.specification import SimulatorSpec

# What to write if a budget stops the search: nothing, the table of the longest horizon that is complete, or all that
# is known, with the unexplored states marked.
IfStopped = Literal["nothing", "shorter", "unfinished"]
AnySearch = Search | BatchedSearch


@dataclass(frozen=True)
class Options:
    """How to build."""

    out: Path = Path("tables")
    num_workers: int = 1
    engine: EngineChoice = field(default_factory=EngineChoice)
    batched: bool | None = None  # search with the suite's batched simulator; None: where there are a million states
    rule: Rule = "paper"
    ignore_screens: bool = False
    budget: Budget = field(default_factory=Budget)
    if_stopped: IfStopped = "nothing"
    verify_episodes: int = 20  # 0: do not verify
    verify_pairs: NumPairs = None
    rebuild: bool = False  # do not use a stored search or table


@dataclass(frozen=True)
class BuildResult:
    """The result of a build. `mdp` and `path` are None if a budget ended the search before any table was complete."""

    id: str
    mdp: TabularMDP | None
    path: Path | None
    outcome: Outcome
    horizon: int  # of the table
    complete_horizon: int | None  # of the search; None: complete for every horizon
    seconds: float
    verify_seconds: float = 0.0  # of them: 0 where the table was stored already
    notices: tuple[str, ...] = ()  # what the user should know, one line each


class UnverifiedError(EfhorizonError):
    """A table does not agree with its environment; it was not stored."""


def build(
    target: Target,
    options: Options,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_message: Callable[[str], None] = lambda message: None,
    on_notice: Callable[[str], None] = lambda notice: None,
    on_verify: Callable[[str], None] = lambda line: None,
) -> BuildResult:
    """Build one table; a build that was stopped continues at the next call.

    What was stored is used again only if its provenance is the same and the environment still does what it did.
    """
    started = time.monotonic()
    notices: list[str] = []

    def notice(text: str) -> None:
        notices.append(f"{target.id}: {text}")
        on_notice(notices[-1])

    spec = _probed(target, notice)
    simulator = spec()
    provenance = simulator_provenance(spec, simulator)
    told = registry.suite(spec.suite).told_by(simulator)
    digest = provenance_digest(provenance)
    folder = options.out / "searches" / f"{target.search_name}-{digest}"
    _tell_changes(options.out / target.id, provenance, notice)
    if options.rebuild:
        _removed(folder)
    if not folder.exists():
        _require_space(options.out)
    search: AnySearch
    many = batched_simulator(target, spec, options.batched, folder, on_ray=options.engine.is_ray)
    if many is None:
        search = opened_search(folder, simulator, provenance)
    else:
        batched_folder = folder.with_name(f"{folder.name}{BATCHED}")
        if options.rebuild:
            _removed(batched_folder)
        search = BatchedSearch(batched_folder, many, provenance)
    try:
        if isinstance(search, BatchedSearch):
            outcome = explore_batched(search, target.horizon, budget=options.budget, on_progress=on_progress)
        else:
            _check_stored(search, target, simulator)
            outcome = _searched(search, target, spec, options, on_progress, on_message)
        simulator.close()
        complete = None if search.is_closed else search.complete_horizon
        if outcome.stopped_by is not None:
            kept = _kept(target, search.complete_horizon, options.if_stopped)
            if kept is None:
                seconds = time.monotonic() - started
                return BuildResult(
                    target.id, None, None, outcome, target.horizon, complete, seconds, notices=tuple(notices)
                )
            target = kept
        target = replace(target, metadata={**target.metadata, **told})
        may_reuse = outcome.progress.num_pairs == 0  # a search that has just been made may differ from a stored table
        path, mdp, verify_seconds = _stored_table(
            search, target, spec, options, digest, on_message, on_verify, may_reuse=may_reuse
        )
    finally:
        search.close()
    seconds = time.monotonic() - started
    return BuildResult(target.id, mdp, path, outcome, target.horizon, complete, seconds, verify_seconds, tuple(notices))


def _searched(
    search: Search,
    target: Target,
    spec: SimulatorSpec,
    options: Options,
    on_progress: Callable[[Progress], None],
    on_message: Callable[[str], None],
) -> Outcome:
    """Search with the engine that was chosen; what another engine has found is used."""

    def say(line: str) -> None:
        on_message(f"{target.id}: {line}")

    if not options.engine.is_ray:
        collect(search, say)
        return explore.explore(
            search,
            target.horizon,
            spec,
            num_workers=options.num_workers,
            budget=options.budget,
            on_progress=on_progress,
        )
    if spec.in_process:
        raise EfhorizonError(f"{target.id}: only this process can make this environment, so it cannot be built on Ray")
    from efhorizon.engines.ray_actors import RayActors

    actors = RayActors(options.engine)
    try:
        return explore_divided(
            search,
            target.horizon,
            spec,
            actors,
            num_workers=actors.num_workers,
            num_owners=options.engine.owners,
            budget=options.budget,
            on_progress=on_progress,
            on_message=say,
        )
    finally:
        actors.close()


def _tell_changes(path: Path, provenance: dict[str, Any], notice: Callable[[str], None]) -> None:
    """Say what has changed since a table was stored, which is then built again."""
    if not path.exists():
        return
    try:
        before = load(path).metadata.get("provenance") or {}
    except EfhorizonError:
        return  # it is replaced
    changed = changes(before, json.loads(json.dumps(provenance)))
    if changed:
        notice(f"{', '.join(changed)} changed since this table was built, so it is built again")


def _check_stored(search: Search, target: Target, simulator: Simulator) -> None:
    """Refuse to go on with a search of an environment that has changed."""
    num_pairs = search.num_expanded * search.num_actions
    if num_pairs == 0 or (num_pairs > _MOST_CHECKED and registry.suite(target.spec.suite).has_names):
        return
    difference = stored_difference(search, simulator)
    if difference is not None:
        raise changed_environment(target.id, difference)


def _removed(folder: Path) -> None:
    """Delete a stored search that nobody works on."""
    if folder.exists():
        SearchFolder(folder).close()  # refused while another process has it
        shutil.rmtree(folder)


def _probed(target: Target, notice: Callable[[str], None]) -> SimulatorSpec:
    """The simulator to use: one that restores exactly. Stochastic environments are refused."""
    suite, spec, rng = registry.suite(target.spec.suite), target.spec, np.random.default_rng(0)
    try:
        report = suite.restore_report(spec, target.horizon, rng)
        if not report.exact:
            notice(f"restoring is inexact ({report.difference}), so states are replayed from reset, which is slower")
            spec = spec.replayed()
            if not suite.has_names:  # what is the user's may have more to be said about it
                report = suite.restore_report(spec, target.horizon, rng)
    except StochasticError as error:
        raise StochasticError(f"{target.id}: {error}") from None
    for text in report.notices:
        notice(text)
    return spec


def _stored_table(
    search: AnySearch,
    target: Target,
    spec: SimulatorSpec,
    options: Options,
    digest: str,
    on_message: Callable[[str], None],
    on_verify: Callable[[str], None],
    *,
    may_reuse: bool,
) -> tuple[Path, TabularMDP, float]:
    """Where the table is, the table, and the seconds that verifying it took."""
    suffix = ("-noscreens" if options.ignore_screens else "") + ("" if options.rule == "paper" else f"-{options.rule}")
    path = options.out / (target.id + suffix)
    is_finished = search.is_closed or search.complete_horizon >= target.horizon
    inputs = {
        "search": digest,
        "num_expanded": None if is_finished else search.num_expanded,
        "horizon": target.horizon,
        "rule": options.rule,
        "ignore_screens": options.ignore_screens,
        "code": version_name("table", explore.BEHAVIOUR, consolidate.BEHAVIOUR),
    }
    stored = _matching(path, inputs, verified=options.verify_episodes > 0) if may_reuse else None
    if stored is not None:
        return path, stored, 0.0
    on_message(f"{target.id}: merging {search.num_states_within(target.horizon):,} states")
    metadata = {
        "id": target.id,
        **target.metadata,
        "screen_format": registry.suite(target.metadata["suite"]).screen_format,
        "efhorizon": __version__,
        "provenance": search.config.provenance,
        "inputs": inputs,
    }
    rule, ignore_screens = options.rule, options.ignore_screens
    if isinstance(search, BatchedSearch):
        if not is_finished:
            raise EfhorizonError(f"{target.id}: --keep-unfinished goes with --no-batched; or use --keep-partial")
        mdp = large_table(
            search,
            target.horizon,
            rule=rule,
            ignore_screens=ignore_screens,
            max_memory=options.budget.max_memory,
            metadata=metadata,
        )
    elif is_finished:
        mdp = table(search, target.horizon, rule=rule, ignore_screens=ignore_screens, metadata=metadata)
    else:
        mdp = unfinished_table(search, target.horizon, metadata=metadata)
    returns = return_range(mdp) if is_finished else None
    verification: dict[str, Any] | None = None
    verify_seconds = 0.0
    if options.verify_episodes:
        on_message(f"{target.id}: verifying against a fresh environment")
        report = verify(
            mdp,
            spec,
            num_episodes=options.verify_episodes,
            num_pairs=options.verify_pairs,
            num_workers=options.num_workers,
            on_progress=lambda line: on_verify(f"{target.id}: verifying, {line}"),
        )
        if report.difference is not None:
            raise UnverifiedError(
                f"{target.id}: not stored because the table is not exact: {report.difference}. {_ADVICE}"
            )
        verification, verify_seconds = report.as_json(), report.seconds
        del verification["seconds"]  # the same build gives the same bytes
    degenerate = None if returns is None else returns[0] == returns[1]
    mdp = mdp.with_metadata(degenerate=degenerate, returns=returns, verification=verification)
    save(with_pictures(mdp, spec, on_message), path)
    return path, load(path), verify_seconds


def _matching(path: Path, inputs: dict[str, Any], *, verified: bool) -> TabularMDP | None:
    """The table that was stored from the same inputs, if there is one and it is intact."""
    if not path.exists():
        return None
    try:
        stored = load(path)
    except EfhorizonError:
        return None
    if stored.metadata.get("inputs") != inputs or (verified and not stored.metadata.get("verification")):
        return None
    return stored if stored.metadata.keys() >= _RECORDED else None


def _kept(target: Target, complete_horizon: int, if_stopped: IfStopped) -> Target | None:
    """What is written of a search that was stopped."""
    if if_stopped == "unfinished":
        return replace(target, id=f"{target.id}-unfinished")
    return _shortened(target, complete_horizon) if if_stopped == "shorter" else None


def _shortened(target: Target, horizon: int) -> Target | None:
    """The same environment with a shorter horizon, or None if its last step would differ (Skiing)."""
    if horizon < 1:
        return None
    if "catalogue_name" not in target.metadata:
        return replace(target, id=target.id.rsplit("-T", 1)[0] + f"-T{horizon}", horizon=horizon)
    shortened = catalogue_target(target.metadata["catalogue_name"], horizon)
    return shortened if shortened.spec == target.spec else None


def _require_space(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < _LEAST_SPACE:
        raise EfhorizonError(
            f"{folder}: only {free / 2**20:.0f} MB left on the disk; at least 100 MB are needed to begin"
        )


_ADVICE = (
    "If the environment changed meanwhile, add --rebuild. If this stays, it is not deterministic after its reset, or "
    "its get_state() leaves something out: see docs/own-environment.md"
)
_MOST_CHECKED = 4_000_000  # pairs of a search in the catalogue, whose environments do not change by themselves
_LEAST_SPACE = 100 * 2**20
_RECORDED = {"id", "num_states_raw", "degenerate", "returns", "verification"}  # what every table says that is built
