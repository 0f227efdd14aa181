"""What policies change: each variant beside its MDP, Table 3b for each policy alone, and demonstrators by their noise.

A graded policy was cloned from a demonstrator that is optimal but for noise: with that probability it takes a random
action. Random play, from which the MDP itself is learnt, is the demonstrator that is nothing but noise. A better
demonstrator, one with less noise, should help. It hurts where the effective horizon or what PPO needs rises from one
demonstrator to the next better one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from efhorizon.evaluation.bound_table import DEFAULT_RESAMPLES, log10_needed
from efhorizon.evaluation.changes import ChangeTable, change_table, pairs_of
from efhorizon.evaluation.records import GORP, MdpSummary, PolicySummary
from efhorizon.evaluation.rules import solved_by_random_play

PPO = "ppo"  # what the paper starts from policies
RANDOM_PLAY = "random play"


@dataclass(frozen=True)
class Side:
    """An MDP or a variant of it: what theory says, and what was needed."""

    name: str
    effective_horizon: float | None
    effective_horizon_kind: str | None
    k_min: int | None
    optimal_probability: float | None  # that an episode of exploration is optimal
    needed: Mapping[str, float]  # timesteps by algorithm; infinite: not solved
    budgets: Mapping[str, float]
    is_solved_by_play: bool  # exploration alone passes the rule that ends PPO's runs, so nothing was learnt


@dataclass(frozen=True)
class PolicyPair:
    """An MDP, and the same with a policy to start from."""

    policy: PolicySummary
    origin: str
    old: Side
    new: Side


@dataclass(frozen=True)
class PolicyTable:
    """Table 3b for the policies of one label."""

    policy: PolicySummary
    table: ChangeTable


@dataclass(frozen=True)
class Grade:
    """All MDPs with one demonstrator, beside the same MDPs with random play."""

    title: str
    noise: float
    num_mdps: int
    effective_horizon: float | None  # median over MDPs
    horizon_change: float | None  # median difference to random play
    num_both_solved: int  # by PPO, with random play and with this one
    needed_change_log10: float | None  # median factor in what PPO needs


@dataclass(frozen=True)
class GradedMdp:
    """One MDP with each demonstrator, random play first, then by falling noise; None where there is no such policy."""

    name: str
    origin: str
    sides: tuple[Side | None, ...]


@dataclass(frozen=True)
class Harm:
    """A better demonstrator that hurts."""

    name: str  # of the MDP
    worse: str  # demonstrators by their titles
    better: str
    what: str  # "effective horizon" or an algorithm
    before: float
    after: float


@dataclass(frozen=True)
class GradedTable:
    """Demonstrators from random to optimal."""

    grades: tuple[Grade, ...]
    mdps: tuple[GradedMdp, ...]
    harms: tuple[Harm, ...]


def policy_pairs(summaries: Sequence[MdpSummary]) -> tuple[PolicyPair, ...]:
    """Every variant whose MDP is there too, by name."""
    return tuple(
        PolicyPair(new.policy or PolicySummary(new.label), new.origin, _side(old), _side(new))
        for old, new in pairs_of(summaries, "exploration")
    )


def policy_tables(
    summaries: Sequence[MdpSummary],
    titles: Mapping[str, str],
    *,
    num_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> tuple[PolicyTable, ...]:
    """Table 3b for each label, if there are several."""
    policies = {pair.policy.label: pair.policy for pair in policy_pairs(summaries)}
    sampling = {"num_resamples": num_resamples, "seed": seed}
    return tuple(
        PolicyTable(policy, change_table(summaries, "exploration", PPO, titles, label=label, **sampling))
        for label, policy in sorted(policies.items())
        if len(policies) > 1
    )


def graded_table(summaries: Sequence[MdpSummary]) -> GradedTable | None:
    """The policies whose demonstrators' noise is known; None if there are none."""
    pairs = pairs_of(summaries, "exploration")
    policies = {new.label: new.policy for _, new in pairs if new.policy is not None and new.policy.noise is not None}
    if not policies:
        return None
    order = sorted(policies, key=lambda label: (-_noise(policies[label]), label))
    titles = (RANDOM_PLAY, *(policies[label].name for label in order))
    variants = {(old.name, new.label): new for old, new in pairs}
    bases = {old.name: old for old, new in pairs if new.label in policies}
    lines = {name: (base, *(variants.get((name, label)) for label in order)) for name, base in sorted(bases.items())}
    noises = (1.0, *(_noise(policies[label]) for label in order))
    grades = tuple(
        _grade(title, noise, [(bases[name], line[place]) for name, line in lines.items()])
        for place, (title, noise) in enumerate(zip(titles, noises, strict=True))
    )
    mdps = tuple(
        GradedMdp(name, bases[name].origin, tuple(None if each is None else _side(each) for each in line))
        for name, line in lines.items()
    )
    harms = [harm for name, line in lines.items() for harm in _harms(name, line, titles)]
    return GradedTable(grades, mdps, tuple(harms))


def _noise(policy: PolicySummary) -> float:
    assert policy.noise is not None
    return policy.noise


def _side(summary: MdpSummary) -> Side:
    algorithms = [name for name in (PPO, GORP) if name in summary.sample_complexities]
    return Side(
        name=summary.name,
        effective_horizon=summary.effective_horizon,
        effective_horizon_kind=summary.effective_horizon_kind,
        k_min=summary.k_min,
        optimal_probability=summary.reward_optimal_probability,
        needed={name: summary.sample_complexities[name] for name in algorithms},
        budgets={name: summary.budgets[name] for name in algorithms if name in summary.budgets},
        is_solved_by_play=solved_by_random_play(summary, PPO),
    )


def _grade(title: str, noise: float, given: Sequence[tuple[MdpSummary, MdpSummary | None]]) -> Grade:
    pairs = [(old, new) for old, new in given if new is not None]
    horizons = [(_horizon(old), _horizon(new)) for old, new in pairs]
    solved = [(_needed(old), _needed(new)) for old, new in pairs]
    both = [(old, new) for old, new in solved if old is not None and new is not None and math.isfinite(old + new)]
    changes = [new - old for old, new in horizons if math.isfinite(old + new)]
    return Grade(
        title=title,
        noise=noise,
        num_mdps=len(pairs),
        effective_horizon=_median([new for _, new in horizons]),
        horizon_change=_median(changes),
        num_both_solved=len(both),
        needed_change_log10=_median([new - old for old, new in both]),
    )


def _horizon(summary: MdpSummary) -> float:
    return math.inf if summary.effective_horizon is None else summary.effective_horizon


def _needed(summary: MdpSummary) -> float | None:
    """log10 of PPO's timesteps; None where it was not run, or the run does not count."""
    return log10_needed(summary, PPO) if PPO in summary.sample_complexities else None


def _median(values: Sequence[float]) -> float | None:
    return float(statistics.median(values)) if values else None


def _harms(name: str, line: Sequence[MdpSummary | None], titles: Sequence[str]) -> list[Harm]:
    """Every rise from one demonstrator to the next better one that there is."""
    there = [(title, each) for title, each in zip(titles, line, strict=True) if each is not None]
    measures: dict[str, Callable[[MdpSummary], float | None]] = {
        "effective horizon": lambda each: each.effective_horizon,
        PPO: lambda each: each.sample_complexities.get(PPO),
    }
    harms = []
    for what, measure in measures.items():
        known = [(title, value) for title, each in there if (value := measure(each)) is not None]
        for (worse, before), (better, after) in pairwise(known):
            if after > before:
                harms.append(Harm(name, worse, better, what, before, after))
    return harms
