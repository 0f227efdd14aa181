"""From an analysis file to the theory's part of a summary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from efhorizon.errors import StoreError
from efhorizon.evaluation._fields import Fields
from efhorizon.evaluation.formulas import SIMPLE_HORIZON, SIMPLE_TITLE, horizon_bound, horizon_of, worst_case_bound
from efhorizon.evaluation.records import EXPLORATION, ORIGINAL, SEPARATOR, SHAPED, MdpSummary, log10_timesteps

FORMAT, FORMAT_VERSION = "efhorizon-analysis", 1
UNIFORM = "uniform"


def checked_name(content: Mapping[str, Any], where: str) -> str:
    """The name of the MDP in an analysis file, once the file's format has been checked."""
    if content.get("format") != FORMAT:
        raise StoreError(f"{where}: not an analysis")
    if content.get("format_version") != FORMAT_VERSION:
        raise StoreError(f"{where}: made by another version of efhorizon (format {content.get('format_version')!r})")
    fields = Fields(content, where)
    name, policy = fields.text("id"), fields.optional_text("exploration") or UNIFORM
    return name if policy == UNIFORM or name.endswith(SEPARATOR + policy) else name + SEPARATOR + policy


def is_complete(content: Mapping[str, Any]) -> bool:
    """Whether every state was explored; the figures of other analyses are intervals."""
    analysis = content.get("analysis")
    return isinstance(analysis, dict) and analysis.get("complete") is True


def has_something_to_learn(content: Mapping[str, Any]) -> bool:
    """Whether some action sequence pays more than another, so far as the file says."""
    analysis = content["analysis"]
    return analysis.get("worst_return") is None or analysis["worst_return"] != analysis.get("optimal_return")


def fingerprint(content: Mapping[str, Any]) -> str | None:
    """Of the table that was analyzed, where the file says."""
    table = content.get("table")
    value = table.get("fingerprint") if isinstance(table, dict) else None
    return value if isinstance(value, str) else None


def titles_of(content: Mapping[str, Any], where: str) -> dict[str, str]:
    """Titles of bounds for people."""
    titles = Fields(content, where).fields("titles")
    return {name: titles.text(name) for name in titles.names()} | {SIMPLE_HORIZON: SIMPLE_TITLE}


def theory_summary(content: Mapping[str, Any], where: str) -> MdpSummary:
    """A summary of a complete analysis, still without runs."""
    name = checked_name(content, where)
    outer = Fields(content, where)
    fields = outer.fields("analysis")
    horizon, num_actions = fields.integer("horizon", least=1), fields.integer("num_actions", least=1)
    effective = fields.fields("effective_horizon")
    value, simple = effective.optional_number("value"), _simple_horizon(effective.fields("by_k"), num_actions)
    unshaped = outer.optional_text("unshaped")
    is_uniform = (outer.optional_text("exploration") or UNIFORM) == UNIFORM
    return MdpSummary(
        name=name,
        origin=outer.text("suite"),
        type=EXPLORATION if not is_uniform else SHAPED if unshaped else ORIGINAL,
        game=outer.optional_text("game") or name,
        unshaped=unshaped,
        horizon=horizon,
        num_actions=num_actions,
        num_states=fields.integer("num_states", least=1),
        reward_min=fields.optional_number("worst_return"),
        reward_exploration=fields.optional_number("exploration_return"),
        reward_optimal=fields.optional_number("optimal_return"),
        reward_optimal_probability=fields.optional_number("optimal_return_probability"),
        reward_factor=outer.optional_number("reward_factor"),
        k_min=fields.optional_integer("min_k", least=1),
        epw=fields.optional_integer("epw", least=1),
        min_state_action_occupancy=fields.optional_number("min_state_action_occupancy"),
        min_sum_state_action_occupancy=fields.optional_number("min_sum_state_action_occupancy"),
        effective_horizon=math.inf if value is None else value,
        effective_horizon_kind=effective.optional_text("kind"),
        effective_horizon_simple=simple,
        bounds=_bounds(fields, horizon, num_actions) | {SIMPLE_HORIZON: horizon_bound(horizon, num_actions, simple)},
        sample_complexities={},
        budgets={},
        returns={},
    )


def _bounds(fields: Fields, horizon: int, num_actions: int) -> dict[str, float]:
    """Every registered bound. One that is null promises nothing, whatever the reason: it counts as infinite."""
    given = fields.fields("sample_complexity")
    reasons = fields.mapping("reasons")
    found: dict[str, float] = {}
    for name in given.names():
        timesteps = given.optional_number(name)
        found[name] = math.inf if timesteps is None else log10_timesteps(timesteps)
        if timesteps is None and name == "worst_case" and name not in reasons:
            found[name] = worst_case_bound(horizon, num_actions)  # finite, but an integer too long for JSON
    return found


def _simple_horizon(by_k: Fields, num_actions: int) -> float:
    """Theorem 5.4's bound on the effective horizon: the least over k."""
    horizons = [math.inf]
    for k in by_k.names():
        m = by_k.fields(k).optional_integer("theorem_m", least=1)
        if m is not None and k.isdecimal():
            horizons.append(horizon_of(num_actions, int(k), m))
    return min(horizons)
