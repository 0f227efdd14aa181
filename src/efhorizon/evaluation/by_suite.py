"""What was run, suite by suite and algorithm by algorithm, and Table 2 for each suite alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from efhorizon.evaluation.bound_table import DEFAULT_RESAMPLES, BoundTable, bound_table, shown_together
from efhorizon.evaluation.records import DEEP_RL, GORP, MdpSummary, has_solved, is_main
from efhorizon.evaluation.runs import rows_that_count
from efhorizon.evaluation.source import StudyData
from efhorizon.study.analysis_record import is_complete
from efhorizon.study.records import Row

ALGORITHMS = (*DEEP_RL, GORP)


@dataclass(frozen=True)
class SuiteCounts:
    """The MDPs of one suite, without shaped ones and other exploration policies."""

    suite: str
    num_mdps: int
    num_families: int
    num_run: Mapping[str, int]  # by algorithm
    num_solved: Mapping[str, int]


@dataclass(frozen=True)
class RunCounts:
    """The runs of one algorithm that count, on all MDPs."""

    algorithm: str
    num_mdps: int
    num_rows: int
    settings: tuple[str, ...]
    seeds: tuple[int, int]  # the fewest and the most of any MDP and setting
    budgets: tuple[float, float]  # timesteps per run, at most


@dataclass(frozen=True)
class SuiteBounds:
    """Table 2 of one suite."""

    suite: str
    bounds: tuple[BoundTable, ...]  # one per algorithm


def suites_of(summaries: Sequence[MdpSummary]) -> list[str]:
    """The suites of the MDPs that count in Table 2."""
    return sorted({each.origin for each in summaries if is_main(each)})


def suite_counts(summaries: Sequence[MdpSummary]) -> tuple[SuiteCounts, ...]:
    return tuple(counts_of(suite, _of_suite(summaries, suite)) for suite in suites_of(summaries))


def counts_of(title: str, summaries: Sequence[MdpSummary]) -> SuiteCounts:
    """How many of these MDPs were run and solved."""
    main = [each for each in summaries if is_main(each)]
    solved = {algorithm: [has_solved(each, algorithm) for each in main] for algorithm in ALGORITHMS}
    return SuiteCounts(
        suite=title,
        num_mdps=len(main),
        num_families=len({each.family for each in main}),
        num_run={algorithm: len(found) - found.count(None) for algorithm, found in solved.items()},
        num_solved={algorithm: found.count(True) for algorithm, found in solved.items()},
    )


def run_counts(data: StudyData) -> tuple[RunCounts, ...]:
    """One per algorithm that has rows, the paper's first."""
    analyses = {name: analysis for name, analysis in data.analyses.items() if is_complete(analysis)}
    rows_of: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    for (name, algorithm), rows in rows_that_count(data.runs, analyses).rows.items():
        rows_of[algorithm] += [(name, row) for row in rows]
    order = sorted(rows_of, key=lambda each: (ALGORITHMS.index(each) if each in ALGORITHMS else len(ALGORITHMS), each))
    counts = []
    for algorithm in order:
        seeds: dict[tuple[str, str], int] = defaultdict(int)
        for name, row in rows_of[algorithm]:
            seeds[name, row.setting] += 1
        budgets = [row.budget for _, row in rows_of[algorithm]]
        counts.append(
            RunCounts(
                algorithm=algorithm,
                num_mdps=len({name for name, _ in seeds}),
                num_rows=len(rows_of[algorithm]),
                settings=tuple(sorted({setting for _, setting in seeds})),
                seeds=(min(seeds.values()), max(seeds.values())),
                budgets=(min(budgets), max(budgets)),
            )
        )
    return tuple(counts)


def suite_bounds(
    summaries: Sequence[MdpSummary],
    titles: Mapping[str, str],
    *,
    num_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> tuple[SuiteBounds, ...]:
    """Table 2 of every suite."""
    suites = suites_of(summaries)
    tables = iter(
        shown_together(
            [
                bound_table(_of_suite(summaries, suite), algorithm, titles, num_resamples=num_resamples, seed=seed)
                for suite in suites
                for algorithm in DEEP_RL
            ]
        )
    )
    return tuple(SuiteBounds(suite, tuple(next(tables) for _ in DEEP_RL)) for suite in suites)


def _of_suite(summaries: Sequence[MdpSummary], suite: str) -> list[MdpSummary]:
    return [each for each in summaries if each.origin == suite]
