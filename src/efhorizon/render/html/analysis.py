"""An analysis file as the pages need it: every field checked once, here, so that pages can trust it.

The file may come from anybody. A field of the wrong type is an error that names the MDP and the field; what may be
missing is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from efhorizon.errors import StoreError
from efhorizon.evaluation._fields import Fields

_MAX_ITEMS = 100_000  # of any list in the file
_MAX_TEXT = 2_000


@dataclass(frozen=True)
class Interval:
    """A figure of an unfinished table."""

    low: float
    high: float | None  # None: no limit is known


Figure = int | float | Interval | None


@dataclass(frozen=True)
class HorizonAtK:
    """What is known of H_k = k + log_A m."""

    k: int
    exact_m: int | None
    upper_m: int | None
    theorem_m: int | None
    method: str | None
    exact_reason: str | None
    upper_reason: str | None
    theorem_reason: str | None


@dataclass(frozen=True)
class Histogram:
    returns: tuple[float, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True)
class ActionLaw:
    """What follows one action, or several that nothing tells apart, in the deciding state."""

    names: tuple[str, ...]
    q: float
    optimal_q: float
    is_optimal: bool
    histogram: Histogram | None


@dataclass(frozen=True)
class TheoremState:
    """Where Theorem 5.4 is decided, for k = 1."""

    time: int
    state: int
    gap: float | None


@dataclass(frozen=True)
class Deciding:
    """The state where a greedy policy is closest to a mistake, or where the bound of Theorem 5.4 is attained."""

    time: int
    state: int
    k: int  # what its actions are worth is Q^k
    picture: str | None
    actions: tuple[ActionLaw, ...]


@dataclass(frozen=True)
class Failures:
    """Where GORP with the exact k and m goes wrong most often."""

    time: int
    state: int
    probability: float


@dataclass(frozen=True)
class Episode:
    """An optimal episode as a sprite sheet, frames row by row."""

    picture: str
    frames: int
    columns: int
    width: int  # of a frame
    height: int
    actions: tuple[str, ...]
    rewards: tuple[float, ...]


@dataclass(frozen=True)
class Analysis:
    """What theory says about one MDP."""

    name: str
    suite: str
    game: str | None
    unshaped: str | None
    shaping: str | None
    exploration: str
    is_complete: bool
    figures: Mapping[str, Figure]  # optimal_return, min_k, epw, ...: every plain number of the analysis
    horizon: int
    num_actions: int
    effective_horizon: Figure
    effective_k: int | None
    effective_m: int | None
    effective_kind: str | None
    by_k: tuple[HorizonAtK, ...]
    sample_complexity: Mapping[str, Figure]
    reasons: Mapping[str, str]
    titles: Mapping[str, str]
    goal_p: float | None
    theorem_state: TheoremState | None
    failures: Failures | None
    deciding: Deciding | None
    layers: tuple[int, ...]
    num_raw_states: int | None
    fingerprint: str | None
    frameskip: int | None
    verification: Mapping[str, Any] | None
    start_picture: str | None
    episode: Episode | None
    seconds: Mapping[str, float]
    provenance: Mapping[str, Any]


def analysis_of(name: str, content: Mapping[str, Any]) -> Analysis:
    """The checked content of an analysis file."""
    where = f"analysis of {name}"
    outer, inner = Fields(content, where), Fields(content, where).fields("analysis")
    given = outer.mapping("analysis")
    effective = inner.fields("effective_horizon")
    table = Fields(_object(content, "table", where), f"{where}: table")
    return Analysis(
        name=name,
        suite=outer.text("suite"),
        game=outer.optional_text("game"),
        unshaped=outer.optional_text("unshaped"),
        shaping=outer.optional_text("shaping"),
        exploration=outer.optional_text("exploration") or "uniform",
        is_complete=given.get("complete") is True,
        figures={key: _figure(value, key, where) for key, value in given.items() if _is_figure(value)},
        horizon=inner.integer("horizon", least=1),
        num_actions=inner.integer("num_actions", least=1),
        effective_horizon=_figure(_object(given, "effective_horizon", where).get("value"), "effective_horizon", where),
        effective_k=effective.optional_integer("k", least=1),
        effective_m=effective.optional_integer("m", least=1),
        effective_kind=effective.optional_text("kind"),
        by_k=_by_k(_object(_object(given, "effective_horizon", where), "by_k", where), where),
        sample_complexity={
            bound: _figure(value, bound, where) for bound, value in _object(given, "sample_complexity", where).items()
        },
        reasons=_texts(_object(given, "reasons", where), f"{where}: reasons"),
        titles=_texts(_object(content, "titles", where), f"{where}: titles"),
        goal_p=Fields(_object(given, "goal_mdp", where), f"{where}: goal_mdp").optional_number("p"),
        theorem_state=_theorem_state(_object(given, "theorem_states", where).get("1"), f"{where}: theorem_states"),
        failures=_failures(_object(given, "most_failures", where), where),
        deciding=_deciding(_object(content, "deciding", where), f"{where}: deciding"),
        layers=tuple(int(size) for size in _numbers(_object(content, "table", where), "layers", where)),
        num_raw_states=table.optional_integer("num_raw_states"),
        fingerprint=table.optional_text("fingerprint"),
        frameskip=table.optional_integer("frameskip", least=1),
        verification=_object(_object(content, "table", where), "verification", where) or None,
        start_picture=outer.optional_text("start_picture"),
        episode=_episode(_object(content, "episode", where), f"{where}: episode"),
        seconds=_seconds(_object(content, "seconds", where), f"{where}: seconds"),
        provenance=_object(content, "provenance", where),
    )


def _by_k(content: Mapping[str, Any], where: str) -> tuple[HorizonAtK, ...]:
    entries = []
    for k, entry in content.items():
        if not k.isdecimal() or not isinstance(entry, dict):
            raise StoreError(f"{where}: effective_horizon.by_k holds {k[:20]!r}, which is no k")
        fields = Fields(entry, f"{where}: by_k {k}")
        entries.append(
            HorizonAtK(
                k=int(k),
                exact_m=fields.optional_integer("exact_m", least=1),
                upper_m=fields.optional_integer("upper_m", least=1),
                theorem_m=fields.optional_integer("theorem_m", least=1),
                method=fields.optional_text("method"),
                exact_reason=fields.optional_text("exact_reason"),
                upper_reason=fields.optional_text("upper_reason"),
                theorem_reason=fields.optional_text("theorem_reason"),
            )
        )
    return tuple(sorted(entries, key=lambda entry: entry.k))


def _failures(content: Mapping[str, Any], where: str) -> Failures | None:
    if not content:
        return None
    fields = Fields(content, f"{where}: most_failures")
    return Failures(fields.integer("time"), fields.integer("state"), float(fields.number("failure_probability")))


def _theorem_state(content: object, where: str) -> TheoremState | None:
    if not isinstance(content, dict):
        return None
    fields = Fields(content, where)
    return TheoremState(fields.integer("time"), fields.integer("state"), fields.optional_number("gap"))


def _deciding(content: Mapping[str, Any], where: str) -> Deciding | None:
    if not content:
        return None
    fields = Fields(content, where)
    actions = content.get("actions")
    if not isinstance(actions, list) or len(actions) > _MAX_ITEMS or not all(isinstance(a, dict) for a in actions):
        raise StoreError(f"{where}: actions must be a list of objects")
    laws = [_law(action, f"{where}: action {number}") for number, action in enumerate(actions)]
    return Deciding(
        time=fields.integer("time"),
        state=fields.integer("state"),
        k=fields.optional_integer("k") or 1,
        picture=fields.optional_text("picture"),
        actions=_merged(laws),
    )


def _law(content: Mapping[str, Any], where: str) -> ActionLaw:
    fields = Fields(content, where)
    return ActionLaw(
        names=(fields.text("name"),),
        q=_finite(fields.number("q"), "q", where),
        optimal_q=_finite(fields.number("optimal_q"), "optimal_q", where),
        is_optimal=content.get("is_optimal") is True,
        histogram=_histogram(_object(content, "histogram", where), where),
    )


def _histogram(content: Mapping[str, Any], where: str) -> Histogram | None:
    if not content:
        return None
    returns, probabilities = (tuple(_numbers(content, name, where)) for name in ("returns", "probabilities"))
    if len(returns) != len(probabilities) or not all(0 <= p <= 1 + 1e-9 for p in probabilities):
        raise StoreError(f"{where}: the histogram has {len(returns)} returns and {len(probabilities)} probabilities")
    return Histogram(returns, probabilities) if returns else None


def _merged(laws: list[ActionLaw]) -> tuple[ActionLaw, ...]:
    """Actions in which nothing differs share a line: of Atari's 18 often only a few do different things."""
    merged: dict[tuple[Any, ...], list[str]] = {}
    for law in laws:
        merged.setdefault((law.q, law.optimal_q, law.is_optimal, law.histogram), []).extend(law.names)
    return tuple(ActionLaw(tuple(names), *figures) for figures, names in merged.items())


def _episode(content: Mapping[str, Any], where: str) -> Episode | None:
    if not content:
        return None
    fields = Fields(content, where)
    actions = content.get("actions")
    if not isinstance(actions, list) or len(actions) > _MAX_ITEMS or not all(isinstance(a, str) for a in actions):
        raise StoreError(f"{where}: actions must be a list of texts")
    return Episode(
        picture=fields.text("picture"),
        frames=fields.integer("frames", least=1),
        columns=fields.integer("columns", least=1),
        width=fields.integer("width", least=1),
        height=fields.integer("height", least=1),
        actions=tuple(action[:_MAX_TEXT] for action in actions),
        rewards=tuple(_numbers(content, "rewards", where)),
    )


def _seconds(content: Mapping[str, Any], where: str) -> dict[str, float]:
    fields = Fields(content, where)
    return {name: value for name in fields.names() if (value := fields.optional_number(name)) is not None}


def _texts(content: Mapping[str, Any], where: str) -> dict[str, str]:
    for name, value in content.items():
        if not isinstance(value, str):
            raise StoreError(f"{where}: {name[:60]!r} must be a text")
    return {name: value[:_MAX_TEXT] for name, value in content.items()}


def _object(content: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """A nested object; empty where it is null or missing."""
    value = content.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StoreError(f"{where}: {name} must be an object, not {str(value)[:60]!r}")
    return value


def _numbers(content: Mapping[str, Any], name: str, where: str) -> list[float]:
    """A list of finite numbers; empty where it is null or missing."""
    value = content.get(name) or []
    if not isinstance(value, list) or len(value) > _MAX_ITEMS:
        raise StoreError(f"{where}: {name} must be a list of at most {_MAX_ITEMS:,} numbers")
    return [_finite(item, name, where) for item in value]


def _is_figure(value: object) -> bool:
    return value is None or (isinstance(value, int | float | list) and not isinstance(value, bool))


def _figure(value: object, name: str, where: str) -> Figure:
    """A number, or [low, high] in an unfinished analysis."""
    if value is None:
        return None
    if isinstance(value, list):
        if len(value) != 2 or value[0] is None:
            raise StoreError(f"{where}: {name} must be a number or [low, high]")
        low, high = value
        return Interval(_finite(low, name, where), None if high is None else _finite(high, name, where))
    return _finite(value, name, where)


def _finite(value: object, name: str, where: str) -> float:
    """A number; integers may be larger than any float."""
    is_float = isinstance(value, float) and math.isfinite(value)
    if not is_float and (not isinstance(value, int) or isinstance(value, bool)):
        raise StoreError(f"{where}: {name} holds {str(value)[:60]!r}, which is no finite number")
    return value  # type: ignore[return-value]
