"""The analysis of one table with chance, as it is stored: in a results folder, and as one line of an export."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta

from efhorizon._version import __version__
from efhorizon.io.behaviour import version_name
from efhorizon.io.decode import MAX_ITEMS, Count, Number, Positive, Probability, Record, Text, record_of
from efhorizon.mdp import TabularMDP
from efhorizon.stochastic import analysis
from efhorizon.stochastic.analysis import StochasticAnalysis
from efhorizon.study.records import RunProvenance
from efhorizon.suites.registry import suite


class GapRecord(Record, frozen=True, kw_only=True):
    """What was found for one k."""

    k: Positive
    solvable: bool  # every greedy action within 1e-4 of optimal
    strictly_solvable: bool
    greedy_return: Number
    gap: Number | None  # None: every action ties, or floats cannot tell
    undecided: bool
    reached_gap: Number | None
    effective_horizon: Number | None


class StochasticRecord(Record, frozen=True, kw_only=True):
    """One table with chance. None: not known, or there is none."""

    id: Text
    made_from: Text | None  # the deterministic table that it has sticky actions of
    suite: Text
    family: Text
    unshaped: Text | None
    sticky: Probability | None
    horizon: Positive
    num_actions: Positive
    num_states: Positive  # as the paper's authors count them
    num_table_states: Positive
    num_reachable_pairs: Positive
    min_k: Positive | None
    strict_min_k: Positive | None
    epw: Count | None
    optimal_return: Number
    random_return: Number
    worst_return: Number
    greedy_returns: Annotated[list[Number], Meta(max_length=MAX_ITEMS)]
    effective_horizon: Number | None  # min over k of H_k
    effective_horizon_k: Positive | None
    effective_horizon_is_minimum: bool
    normalised_effective_horizon: Number | None
    strict_effective_horizon: Number | None
    reached_effective_horizon: Number | None
    gaps: Annotated[list[GapRecord], Meta(max_length=MAX_ITEMS)]
    ucb_timesteps: Number | None
    covering_length: Count | None  # episodes, at most
    provenance: RunProvenance


def code() -> str:
    """The version of the analysis."""
    return version_name("stochastic analysis", analysis.BEHAVIOUR)


def sticky_record(mdp: TabularMDP, found: StochasticAnalysis) -> StochasticRecord:
    """The record of a table with sticky actions; `mdp` is the table without them."""
    content, metadata = found.as_json(), mdp.metadata
    name, of_suite = str(metadata.get("id")), str(metadata.get("suite") or "unknown")
    bounds, kept = content["bounds"], set(StochasticRecord.__struct_fields__)
    fields: dict[str, Any] = {key: value for key, value in content.items() if key in kept}
    return record_of(
        fields
        | {
            "made_from": name,
            "suite": of_suite,
            "family": suite(of_suite).family(metadata.get("game") or name),
            "unshaped": metadata.get("unshaped"),
            "ucb_timesteps": bounds["ucb"]["order"],
            "covering_length": bounds["covering_length"]["upper"],
            "provenance": {
                "table_fingerprint": mdp.fingerprint(),
                "efhorizon": __version__,
                "made": datetime.now(UTC).isoformat(timespec="seconds"),
                "code": code(),
            },
        },
        StochasticRecord,
        str(content["id"]),
    )
