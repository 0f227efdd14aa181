"""How fast things go: measured rates with their sources, replaced by what a study itself has measured so far.

All figures were measured on the development machine: two cores of a Xeon server, while other jobs were running. A
desktop is likely to be faster.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from efhorizon import catalog
from efhorizon.build.target import Target
from efhorizon.errors import EfhorizonError
from efhorizon.study.records import Row
from efhorizon.study.results import Results
from efhorizon.study.sizes import search_state
from efhorizon.study.subjects import StoredTable, Subject
from efhorizon.suites import registry
from efhorizon.suites.suite import NetworkKind

# What building takes is in the suites. Training on one core, timesteps per second of all seeds (`benchmarks/train.py`,
# and the demo's own rows): flat observations have a small dense network, images a CNN.
DENSE_STEPS_A_SECOND = {"ppo": 40_000.0, "dqn": 25_000.0}
IMAGE_STEPS_A_SECOND = {"ppo": 600.0, "dqn": 150.0}
# Compiling the learner, or GORP's kernels, before the first step.
COMPILATION_SECONDS = {"ppo": 4.0, "dqn": 5.0, "gorp": 0.5}
# GORP with one k, by how soon it is solved; the largest is that of MiniGrid-MultiRoom-N4-S5-v1, unsolved within its
# 100 million timesteps.
GORP_SECONDS = (0.1, 40.0)
# The analysis of one table in seconds for each reachable pair and action, plus a constant: little if the exact
# effective horizon is found quickly or out of reach, most if its search uses its whole budget of work.
ANALYSIS_SECONDS, ANALYSIS_SECONDS_A_PAIR = (0.5, 60.0), (1e-5, 5e-4)
REPORT_SECONDS, REPORT_SECONDS_AN_MDP = (2.0, 10.0), (0.05, 0.5)

USUAL_ACTIONS = 6  # of an environment about which nothing is known
PROCESS_BYTES = 200 << 20  # a worker that emulates
ANALYSIS_BYTES = 350 << 20  # this process with numba's kernels
SEARCH_BYTES_A_STATE = 105  # in memory (README: 66 to 105), beside the arrays that merging needs:
MERGE_BYTES_A_PAIR = 24
ANALYSIS_BYTES_A_STATE, ANALYSIS_BYTES_A_PAIR = 60, 10  # for each reachable (time, state), and for each of its actions
TRAINING_BYTES = {"dense": 700 << 20, "image": 1200 << 20}  # a worker that trains
# On disk, in bytes: tables built by `efhorizon build`; a row's learning curve; pictures, pages.
TABLE_DISK, ROW_DISK, CURVE_POINT_DISK, MDP_DISK = 100_000, 2_000, 70, (60_000, 400_000)


@dataclass(frozen=True)
class Rates:
    """The rates that can be measured while a study runs."""

    pairs: Mapping[str, float] = field(default_factory=lambda: _usual_pairs())  # per second and worker, by suite
    dense_steps: Mapping[str, float] = field(default_factory=lambda: dict(DENSE_STEPS_A_SECOND))  # by algorithm
    image_steps: Mapping[str, float] = field(default_factory=lambda: dict(IMAGE_STEPS_A_SECOND))
    measured: tuple[str, ...] = ()  # which of them were measured in this study

    def steps(self, algorithm: str, network: str) -> float:
        return (self.dense_steps if network == "dense" else self.image_steps)[algorithm]


def _usual_pairs() -> dict[str, float]:
    return {suite.name: suite.costs.pairs_a_second for suite in registry.suites()}


def network_of(metadata: Mapping[str, Any]) -> NetworkKind:
    """What agents learn with on a table: "dense" where observations are flat, "image" where they are pictures."""
    return registry.suite(metadata.get("suite")).network_of(metadata)


def measured_rates(results: Results, subjects: Sequence[Subject], num_workers: int) -> Rates:
    """The rates of this study: of its searches and its rows so far, and the defaults where there are none."""
    rates, measured = Rates(), []
    targets = [subject for subject in subjects if isinstance(subject, Target)]
    pairs = _search_rates(results.path / "tables", targets, num_workers)
    if pairs:
        rates = replace(rates, pairs={**rates.pairs, **pairs})
        measured += [f"emulating {suite}" for suite in sorted(pairs)]
    steps = _training_rates(results, {subject.id: network_of(subject.metadata) for subject in subjects})
    for network, known in (("dense", dict(rates.dense_steps)), ("image", dict(rates.image_steps))):
        for algorithm in known:
            if (network, algorithm) in steps:
                known[algorithm] = steps[network, algorithm]
                measured.append(f"{algorithm} on {'gridworlds' if network == 'dense' else 'images'}")
        rates = replace(rates, **{f"{network}_steps": known})  # type: ignore[arg-type]
    return replace(rates, measured=tuple(measured))


_LEAST_SECONDS = 2.0  # what took less says nothing about a rate


def _search_rates(tables: Path, targets: Sequence[Target], num_workers: int) -> dict[str, float]:
    """Pairs per second and worker, by suite."""
    found: dict[str, list[float]] = {}
    for target in {target.search_name: target for target in targets}.values():
        search = search_state(target, tables)
        if search is not None and search.seconds >= _LEAST_SECONDS:
            num_actions = num_actions_of(target)
            rate = search.num_expanded * num_actions / search.seconds / num_workers
            found.setdefault(str(target.metadata["suite"]), []).append(rate)
    return {suite: statistics.median(rates) for suite, rates in found.items()}


def num_actions_of(target: Subject) -> int:
    """How many actions it has; a guess where only its search will tell."""
    if isinstance(target, StoredTable):
        return target.num_actions
    entry = catalog.find(str(target.metadata.get("catalogue_name")))
    return USUAL_ACTIONS if entry is None else entry.num_actions


def _training_rates(results: Results, networks: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Timesteps per second by network and algorithm. Seeds of a task run in parallel, so the last one's time counts."""
    together: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for row in _readable_rows(results):
        if row.algorithm != "gorp" and row.id in networks:
            together.setdefault((row.id, row.algorithm, row.setting), []).append((row.steps, row.wall_seconds))
    found: dict[tuple[str, str], list[float]] = {}
    for (name, algorithm, _), runs in together.items():
        seconds = max(seconds for _, seconds in runs)
        if seconds >= _LEAST_SECONDS:
            found.setdefault((networks[name], algorithm), []).append(sum(steps for steps, _ in runs) / seconds)
    return {key: statistics.median(rates) for key, rates in found.items()}


def _readable_rows(results: Results) -> list[Row]:
    try:
        return list(results.rows())
    except EfhorizonError:
        return []
