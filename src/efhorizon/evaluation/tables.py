"""Every table of the paper in one call, and all of them in plain types for JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from efhorizon.evaluation import published
from efhorizon.evaluation.appendix_lists import (
    Complexities,
    Properties,
    Returns,
    complexity_list,
    property_list,
    return_list,
)
from efhorizon.evaluation.bound_table import DEFAULT_RESAMPLES, BoundTable, bound_table, shown_together
from efhorizon.evaluation.changes import ChangeTable, change_table
from efhorizon.evaluation.policies import (
    GradedTable,
    PolicyPair,
    PolicyTable,
    graded_table,
    policy_pairs,
    policy_tables,
)
from efhorizon.evaluation.records import DEEP_RL, EXPLORATION, MdpSummary, has_solved, is_main
from efhorizon.evaluation.resampling import LEVEL
from efhorizon.evaluation.rules import RULES, Rule, solved_by_random_play, under
from efhorizon.evaluation.solvability import MinKDistribution, SolvabilityTable, min_k_distribution, solvability_table
from efhorizon.evaluation.source import StudyData


@dataclass(frozen=True)
class Counts:
    """How many MDPs were solved, beside the paper's figures."""

    num_mdps: int
    num_solved: Mapping[str, int]
    num_run: Mapping[str, int]
    num_solved_by_either: int
    published_num_mdps: int = published.NUM_MDPS
    published_num_solved: Mapping[str, int] = dataclasses.field(default_factory=lambda: dict(published.NUM_SOLVED))
    published_num_solved_by_either: int = published.NUM_SOLVED_BY_EITHER


@dataclass(frozen=True)
class Tables:
    """All results of a study."""

    rule: Rule  # what counts as solved
    counts: Counts
    bounds: tuple[BoundTable, ...]  # Table 2, one per algorithm
    solvability: tuple[SolvabilityTable, ...]  # Table 1; the paper shows PPO
    min_k: tuple[MinKDistribution, ...]
    shaping: tuple[ChangeTable, ...]  # Table 3a
    exploration: tuple[ChangeTable, ...]  # Table 3b
    by_policy: tuple[PolicyTable, ...]  # Table 3b for each label of policies, where there are several
    pairs: tuple[PolicyPair, ...]  # each variant beside its MDP
    graded: GradedTable | None  # demonstrators by their noise
    properties: tuple[Properties, ...]  # the lists of Appendix G
    complexities: tuple[Complexities, ...]
    returns: tuple[Returns, ...]
    level: float  # of all intervals
    num_resamples: int
    seed: int
    notes: tuple[str, ...]


def all_tables(
    data: StudyData, rule: Rule = RULES[0], *, num_resamples: int = DEFAULT_RESAMPLES, seed: int = 0
) -> Tables:
    """The paper's tables from the summaries of a study; the same study and seed give the same numbers."""
    summaries, titles = under(rule, data.summaries), data.titles
    sampling: dict[str, Any] = {"num_resamples": num_resamples, "seed": seed}
    bounds = shown_together([bound_table(summaries, algorithm, titles, **sampling) for algorithm in DEEP_RL])
    return Tables(
        rule=rule,
        counts=_counts(summaries),
        bounds=bounds,
        solvability=tuple(solvability_table(summaries, algorithm) for algorithm in DEEP_RL),
        min_k=tuple(min_k_distribution(summaries, algorithm) for algorithm in DEEP_RL),
        shaping=tuple(change_table(summaries, "shaping", algorithm, titles, **sampling) for algorithm in DEEP_RL),
        exploration=tuple(
            change_table(summaries, "exploration", algorithm, titles, **sampling) for algorithm in DEEP_RL
        ),
        by_policy=policy_tables(summaries, titles, **sampling),
        pairs=policy_pairs(summaries),
        graded=graded_table(summaries),
        properties=property_list(summaries),
        complexities=complexity_list(summaries),
        returns=return_list(summaries),
        level=LEVEL,
        num_resamples=num_resamples,
        seed=seed,
        notes=(*data.notes, *_left_out(data, rule), *(note for table in bounds for note in table.notes)),
    )


def tables_by_rule(data: StudyData, *, num_resamples: int = DEFAULT_RESAMPLES, seed: int = 0) -> tuple[Tables, Tables]:
    """The tables by the rule that asks for learning, and by the paper's."""
    learnt, paper = (all_tables(data, rule, num_resamples=num_resamples, seed=seed) for rule in RULES)
    return learnt, paper


def _left_out(data: StudyData, rule: Rule) -> list[str]:
    """What does not count by the rule, although it was run."""
    notes = []
    for algorithm in DEEP_RL if rule == "learnt" else ():
        run = [each for each in data.summaries if algorithm in each.sample_complexities]
        by_play = {each.name: each.type for each in run if solved_by_random_play(each, algorithm)}
        lucky = [name for name, type_ in by_play.items() if type_ != EXPLORATION]
        guided = [name for name, type_ in by_play.items() if type_ == EXPLORATION]
        counted = [each.name for each in under(rule, run) if algorithm in each.sample_complexities]
        untrained = sorted({each.name for each in run} - {*by_play, *counted})
        for names, why in (
            (lucky, "random play solves them"),
            (guided, "playing by the policy solves them, without learning"),
            (untrained, "most runs ended before a gradient step"),
        ):
            if names:
                notes.append(f"{algorithm.upper()}: left out because {why}: {', '.join(sorted(names))}")
    return notes


def plain(content: Any) -> Any:
    """Dataclasses as dictionaries, and infinities as the text "inf" because JSON has no number for them."""
    if dataclasses.is_dataclass(content) and not isinstance(content, type):
        return {field.name: plain(getattr(content, field.name)) for field in dataclasses.fields(content)}
    if isinstance(content, Mapping):
        return {str(key): plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    if isinstance(content, float) and math.isinf(content):
        return "inf" if content > 0 else "-inf"
    return content


def _counts(summaries: Sequence[MdpSummary]) -> Counts:
    main = [each for each in summaries if is_main(each)]
    solved = {algorithm: [has_solved(each, algorithm) for each in main] for algorithm in DEEP_RL}
    return Counts(
        num_mdps=len(main),
        num_solved={algorithm: found.count(True) for algorithm, found in solved.items()},
        num_run={algorithm: len(found) - found.count(None) for algorithm, found in solved.items()},
        num_solved_by_either=sum(any(each) for each in zip(*solved.values(), strict=True)),
    )
