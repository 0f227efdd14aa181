"""What the paper's authors published about an MDP beside what we found: figure by figure, and how well they agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from efhorizon.evaluation.original import Original, OriginalMdp
from efhorizon.evaluation.records import EXPLORATION, MdpSummary
from efhorizon.evaluation.source import StudyData

ALGORITHMS = ("ppo", "dqn", "gorp")
_LEAST = 5  # pairs from which a correlation is given


@dataclass(frozen=True)
class Pair:
    """One figure: theirs and ours. None: not known; infinite: not within the budget."""

    theirs: float | None
    ours: float | None

    @property
    def is_known(self) -> bool:
        return self.theirs is not None and self.ours is not None


@dataclass(frozen=True)
class BesideRow:
    """One MDP."""

    name: str
    same_table: bool | None  # the same states, transitions and rewards; None: one of the tables is not known
    num_states: Pair
    min_k: Pair
    epw: Pair
    effective_horizon: Pair  # theirs: Appendix C; ours: exact where `is_exact`
    is_exact: bool
    sticky_min_k: int | None  # theirs
    needed: dict[str, Pair]  # timesteps by algorithm


@dataclass(frozen=True)
class Agreement:
    """How a figure agrees over all MDPs where both are known."""

    figure: str
    num_mdps: int
    num_equal: int
    rank_correlation: float | None  # Spearman's; None for fewer than five MDPs or where one side does not vary


@dataclass(frozen=True)
class Beside:
    """Everything side by side."""

    rows: tuple[BesideRow, ...]
    agreements: tuple[Agreement, ...]
    only_theirs: tuple[str, ...]
    num_only_ours: int
    num_violations: int  # MDPs where our exact effective horizon is above their upper bound on it; same table only
    notes: tuple[str, ...]


def beside(published: Original, data: StudyData) -> Beside:
    """The MDPs that both have, in order of their names."""
    ours = {each.name: each for each in data.summaries if each.type != EXPLORATION}
    theirs = published.by_name
    common = sorted(ours.keys() & theirs.keys())
    rows = tuple(_row(theirs[name], ours[name], data) for name in common)
    figures = {
        "states": [row.num_states for row in rows],
        "least k": [row.min_k for row in rows],
        "effective planning window": [row.epw for row in rows],
        "effective horizon": [row.effective_horizon for row in rows],
        **{f"{algorithm.upper()}, timesteps": [row.needed[algorithm] for row in rows] for algorithm in ALGORITHMS},
    }
    above = [
        row
        for row in rows
        if row.same_table and row.is_exact and _above(row.effective_horizon.ours, row.effective_horizon.theirs)
    ]
    return Beside(
        rows,
        tuple(_agreement(name, pairs) for name, pairs in figures.items()),
        tuple(sorted(theirs.keys() - ours.keys())),
        len(ours.keys() - theirs.keys()),
        len(above),
        tuple(published.notes),
    )


def _row(theirs: OriginalMdp, ours: MdpSummary, data: StudyData) -> BesideRow:
    analysis = data.analyses.get(ours.name)
    fingerprint = None if analysis is None else analysis.fingerprint
    known = theirs.fingerprint is not None and fingerprint is not None
    return BesideRow(
        ours.name,
        theirs.fingerprint == fingerprint if known else None,
        Pair(theirs.num_states, ours.num_states),
        Pair(theirs.min_k, ours.k_min),
        Pair(theirs.epw, ours.epw),
        Pair(theirs.effective_horizon, ours.effective_horizon),
        ours.effective_horizon_kind == "exact",
        None if theirs.sticky is None else theirs.sticky.min_k,
        {name: Pair(_needed(theirs, name), ours.sample_complexities.get(name)) for name in ALGORITHMS},
    )


def _needed(mdp: OriginalMdp, algorithm: str) -> float | None:
    if algorithm in mdp.needed:
        value = mdp.needed[algorithm]
        return math.inf if value is None else value
    by_k = [math.inf if value is None else value for value in mdp.gorp.values()]
    return min(by_k, default=None) if algorithm == "gorp" else None


def _above(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and first > second * (1 + 1e-9)


def _agreement(name: str, pairs: Sequence[Pair]) -> Agreement:
    known = [(pair.theirs, pair.ours) for pair in pairs if pair.theirs is not None and pair.ours is not None]
    equal = sum(math.isclose(theirs, ours, rel_tol=1e-9) for theirs, ours in known)
    finite = [(theirs, ours) for theirs, ours in known if math.isfinite(theirs) and math.isfinite(ours)]
    return Agreement(name, len(known), equal, _spearman(finite))


def _spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < _LEAST or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(*zip(*pairs, strict=True)).statistic)
