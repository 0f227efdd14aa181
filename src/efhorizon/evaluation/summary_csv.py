"""summary.csv, one line per MDP: the format in which the paper's authors published their figures, read and written.

Their columns come first, ours after them. A published file has no bounds: those of the paper are computed from its
columns (`formulas.py`). Unknown columns are ignored. `inf` means not reached, an empty field unknown.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from efhorizon.agents.deep.protocol import PAPER_STEPS
from efhorizon.agents.deep.random_play import RandomPlay
from efhorizon.bounds.registry import measure_titles
from efhorizon.errors import StoreError
from efhorizon.evaluation import formulas
from efhorizon.evaluation.records import (
    DEEP_RL,
    EXPLORATION,
    GORP,
    ORIGINAL,
    SHAPED,
    MdpSummary,
    Measurement,
    PolicySummary,
)
from efhorizon.io.checksums import read_listed
from efhorizon.io.decode import LARGEST_INTEGER, MAX_TEXT, text_of
from efhorizon.study.csv_text import encoded_csv, text_of_cell
from efhorizon.study.sweep import TRAINING_WINDOW
from efhorizon.suites.registry import suite

FILE = "summary.csv"
PUBLISHED_COLUMNS = (
    "mdp_name",
    "origin",
    "type",
    "horizon",
    "num_actions",
    "num_states_consolidated",
    "reward_min",
    "reward_exploration",
    "reward_optimal",
    "reward_optimal_probability",
    "reward_factor",
    "k_min",
    "epw",
    "min_state_action_occupancy",
    "min_sum_state_action_occupancy",
    "effective_horizon",
    "effective_horizon_simple",
    *(f"reward_{algorithm}" for algorithm in (*DEEP_RL, GORP)),
    *(f"sample_complexity_{algorithm}" for algorithm in (*DEEP_RL, GORP)),
)
OWN_COLUMNS = ("base_mdp_name", "family", "effective_horizon_kind", "random_play_steps")  # then budgets and bounds
PUBLISHED_BUDGETS = {"ppo": float(PAPER_STEPS), "dqn": float(PAPER_STEPS)}  # the rest are kinds of GORP
PUBLISHED_GORP_BUDGET = 1e8
PUBLISHED_TYPES = {"base": ORIGINAL, "reward_shaping": SHAPED, "exploration_policy": EXPLORATION}
_TYPES_IN_FILE = {ours: theirs for theirs, ours in PUBLISHED_TYPES.items()}
_LEARNT = "learnt_sample_complexity_"
_LABEL, _TITLE, _METHOD, _NOISE = POLICY_COLUMNS = ("policy_label", "policy_title", "policy_method", "policy_noise")
_REQUIRED = ("mdp_name", "horizon", "num_actions")
_STATES = ("num_states_consolidated", "num_state_consolidated")  # the authors' README has the second spelling
_TIES = "effective_horizon_ties_"
_HARDNESS, _EASINESS = "hardness_", "easiness_"  # measures: what larger values mean
_COMPLEXITY, _RETURN, _BUDGET, _BOUND = "sample_complexity_", "reward_", "budget_", re.compile(r"(?s)bound_(.+)_log10")
_HORIZON_AND_FRAMESKIP, _LEVEL = re.compile(r"_\d+_fs\d+(-v\d+)?$"), re.compile(r"_(easy|hard|exploration)_l\d+$")
_SHAPING = re.compile(r"-[A-Za-z]+Shaped(?=-v\d+$)")


def read_summaries(path: Path) -> list[MdpSummary]:
    """The MDPs of a file, ours or the published one."""
    what = "a summary.csv"
    text = text_of(read_listed(path, what, MAX_TEXT), path, what)
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        _check_header(list(reader.fieldnames or ()), path)
        return checked_summaries(_summaries(reader, path), str(path))
    except csv.Error as error:
        raise StoreError(f"{path}: not a table of comma-separated values: {error}") from None


def _check_header(header: Sequence[str], path: Path) -> None:
    missing = [name for name in _REQUIRED if name not in header] + ([] if set(_STATES) & set(header) else [_STATES[0]])
    if missing:
        raise StoreError(f"{path}: not a summary.csv: no column {', '.join(missing)}")
    if twice := [name for name, count in Counter(header).items() if name and count > 1]:
        raise StoreError(f"{path}: not a summary.csv: the column {twice[0][:60]} is there twice")


def _summaries(reader: csv.DictReader[str], path: Path) -> Iterator[MdpSummary]:
    for line in reader:
        where = f"{path}: line {reader.line_num}"
        if None in line or None in line.values():
            raise StoreError(f"{where} does not have the {len(reader.fieldnames or ())} fields of the header")
        yield summary_of({name: text_of_cell(cell) for name, cell in line.items()}, where)


def checked_summaries(summaries: Iterable[MdpSummary], where: str) -> list[MdpSummary]:
    """All of them; a name that appears twice is refused."""
    found: dict[str, MdpSummary] = {}
    for summary in summaries:
        if summary.name in found:
            raise StoreError(f"{where}: {summary.name} appears twice")
        found[summary.name] = summary
    return list(found.values())


def encoded_summaries(summaries: Sequence[MdpSummary]) -> bytes:
    """The content of a file; the same summaries give the same bytes."""
    return encoded_csv(columns(summaries), map(fields_of, summaries))


def columns(summaries: Sequence[MdpSummary]) -> list[str]:
    """The header: published columns, then ours, those of single algorithms, and bounds: the paper's, then others."""
    known = dict.fromkeys((*PUBLISHED_COLUMNS, *OWN_COLUMNS))
    more = {name for summary in summaries for name in fields_of(summary) if name not in known}
    bounds = sorted(name for name in more if name.startswith("bound_"))
    papers = [column for name in formulas.TITLES if (column := _bound_column(name)) in more]
    return [*known, *sorted(more - set(bounds)), *dict.fromkeys((*papers, *bounds))]


def fields_of(summary: MdpSummary) -> dict[str, str | float | None]:
    """The columns of one MDP by name."""
    return {
        "mdp_name": summary.name,
        "origin": summary.origin,
        "type": _TYPES_IN_FILE.get(summary.type, summary.type),
        "horizon": summary.horizon,
        "num_actions": summary.num_actions,
        "num_states_consolidated": summary.num_states,
        "reward_min": summary.reward_min,
        "reward_exploration": summary.reward_exploration,
        "reward_optimal": summary.reward_optimal,
        "reward_optimal_probability": summary.reward_optimal_probability,
        "reward_factor": summary.reward_factor,
        "k_min": summary.k_min,
        "epw": summary.epw,
        "min_state_action_occupancy": summary.min_state_action_occupancy,
        "min_sum_state_action_occupancy": summary.min_sum_state_action_occupancy,
        "effective_horizon": summary.effective_horizon,
        "effective_horizon_simple": summary.effective_horizon_simple,
        **{_RETURN + algorithm: value for algorithm, value in summary.returns.items()},
        **{_COMPLEXITY + algorithm: value for algorithm, value in summary.sample_complexities.items()},
        "base_mdp_name": summary.base_name if summary.type == EXPLORATION else summary.unshaped,
        "family": summary.family,
        "effective_horizon_kind": summary.effective_horizon_kind,
        **{_TIES + rule: value for rule, value in summary.effective_horizons_by_ties.items()},
        **{_BUDGET + algorithm: value for algorithm, value in summary.budgets.items()},
        "random_play_steps": summary.random_play,
        **{_LEARNT + algorithm: value for algorithm, value in (summary.learnt or {}).items()},
        **_policy_fields(summary.policy),
        **{
            (_EASINESS if measure.is_easiness else _HARDNESS) + name: measure.value
            for name, measure in summary.measures.items()
        },
        **{_bound_column(name): value for name, value in summary.bounds.items()},
    }


def _policy_fields(policy: PolicySummary | None) -> dict[str, str | float | None]:
    """Columns that only files with variants have."""
    if policy is None:
        return {}
    return {_LABEL: policy.label, _TITLE: policy.title, _METHOD: policy.method, _NOISE: policy.noise}


def summary_of(line: Mapping[str, str], where: str) -> MdpSummary:
    """The MDP of one line; an empty field is not known."""
    fields = _Line(line, where)
    name = fields.text("mdp_name")
    if name is None:
        raise StoreError(f"{where}: mdp_name is empty")
    origin, type_ = fields.text("origin") or "unknown", fields.text("type") or ORIGINAL
    type_ = PUBLISHED_TYPES.get(type_, type_)
    base = fields.text("base_mdp_name") or _SHAPING.sub("", name)
    complexities, learnt = fields.with_prefix(_COMPLEXITY), fields.with_prefix(_LEARNT)
    returns = {name: fields.finite(_RETURN + name) for name in complexities}
    budgets = {name: fields.positive(_BUDGET + name) or _published_budget(name) for name in complexities}
    horizon, num_actions = fields.count("horizon"), fields.count("num_actions")
    num_states = fields.count(_STATES[0] if _STATES[0] in line else _STATES[1])
    k_min, epw = fields.optional_count("k_min"), fields.optional_count("epw")
    occupancy = fields.share("min_state_action_occupancy")
    effective_horizon, simple = fields.positive("effective_horizon"), fields.positive("effective_horizon_simple")
    bounds = {formulas.WORST_CASE: formulas.worst_case_bound(horizon, num_actions)}
    bounds[formulas.UCB] = formulas.ucb_bound(horizon, num_actions, num_states)
    if occupancy is not None:
        bounds[formulas.COVERING_LENGTH] = formulas.covering_length_bound(horizon, num_actions, num_states, occupancy)
    if epw is not None:
        bounds[formulas.EPW] = formulas.window_bound(horizon, num_actions, epw)
    if effective_horizon is not None:
        bounds[formulas.EFFECTIVE_HORIZON] = formulas.horizon_bound(horizon, num_actions, effective_horizon)
    if simple is not None:
        bounds[formulas.SIMPLE_HORIZON] = formulas.horizon_bound(horizon, num_actions, simple)
    written = {match[1]: fields.number(match[0]) for column in line if (match := _BOUND.fullmatch(column))}
    if written:  # our own file says what bounds there are
        bounds = {bound: value for bound, value in written.items() if value is not None}
    return MdpSummary(
        name=name,
        origin=origin,
        type=type_,
        family=fields.text("family") or suite(origin).family(fields.text("game") or game_of(base)),
        unshaped=base if type_ == SHAPED else None,
        horizon=horizon,
        num_actions=num_actions,
        num_states=num_states,
        reward_min=fields.finite("reward_min"),
        reward_exploration=fields.finite("reward_exploration"),
        reward_optimal=fields.finite("reward_optimal"),
        reward_optimal_probability=fields.share("reward_optimal_probability"),
        reward_factor=fields.finite("reward_factor"),
        k_min=k_min,
        epw=epw,
        min_state_action_occupancy=occupancy,
        min_sum_state_action_occupancy=fields.finite("min_sum_state_action_occupancy"),
        effective_horizon=effective_horizon,
        effective_horizon_kind=fields.text("effective_horizon_kind"),
        effective_horizon_simple=simple,
        bounds=bounds,
        sample_complexities=complexities,
        budgets=budgets,
        returns={algorithm: value for algorithm, value in returns.items() if value is not None},
        random_play=fields.positive("random_play_steps") or _random_play(fields, horizon),
        learnt=learnt if any(column.startswith(_LEARNT) for column in line) else None,
        effective_horizons_by_ties=fields.with_prefix(_TIES),
        policy=_policy_of(fields),
        measures=_measures_of(fields, line),
    )


def _measures_of(fields: _Line, line: Mapping[str, str]) -> dict[str, Measurement]:
    found = {}
    for prefix in (_HARDNESS, _EASINESS):
        for column in (column for column in line if column.startswith(prefix)):
            value = fields.finite(column)
            if value is not None:
                found[column.removeprefix(prefix)] = Measurement(value, prefix == _EASINESS)
    return found


def _policy_of(fields: _Line) -> PolicySummary | None:
    label = fields.text(_LABEL)
    if label is None:
        return None
    return PolicySummary(label, fields.text(_TITLE), fields.text(_METHOD), fields.share(_NOISE))


def _random_play(fields: _Line, horizon: int) -> float | None:
    """Of a file that does not say what random play needs: at most so much, for no episode is longer than T."""
    probability = fields.share("reward_optimal_probability")
    return None if probability is None else RandomPlay(probability, horizon).steps_needed(TRAINING_WINDOW)


def game_of(name: str) -> str:
    """pong of pong_20_fs30, maze of maze_easy_l0_30_fs1, and other names as they are."""
    return _LEVEL.sub("", _HORIZON_AND_FRAMESKIP.sub("", name))


def _bound_column(name: str) -> str:
    return f"bound_{name}_log10"


def titles(summaries: Sequence[MdpSummary]) -> dict[str, str]:
    """Titles of the bounds of a file, which carries none itself."""
    names = dict.fromkeys(name for summary in summaries for name in (*summary.bounds, *summary.measures))
    known = measure_titles() | formulas.TITLES
    return {name: known.get(name, name.replace("_", " ")) for name in names}


def _published_budget(algorithm: str) -> float:
    return PUBLISHED_BUDGETS.get(algorithm, PUBLISHED_GORP_BUDGET)


class _Line:
    """The fields of one line."""

    def __init__(self, line: Mapping[str, str], where: str) -> None:
        self._line, self._where = line, where

    def with_prefix(self, prefix: str) -> dict[str, float]:
        """Positive numbers by what follows the prefix in their columns' names."""
        columns = [column for column in self._line if column.startswith(prefix)]
        return {
            column.removeprefix(prefix): value for column in columns if (value := self.positive(column)) is not None
        }

    def text(self, name: str) -> str | None:
        return self._line.get(name) or None

    def number(self, name: str) -> float | None:
        """It may be infinite."""
        text = self.text(name)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            raise self._wrong(name, "a number") from None
        if value == -math.inf:
            raise self._wrong(name, "a number, or inf")
        return None if math.isnan(value) else value

    def finite(self, name: str) -> float | None:
        value = self.number(name)
        if value == math.inf:
            raise self._wrong(name, "a finite number")
        return value

    def share(self, name: str) -> float | None:
        value = self.number(name)
        if value is not None and not 0 <= value <= 1:
            raise self._wrong(name, "between 0 and 1")
        return value

    def positive(self, name: str) -> float | None:
        value = self.number(name)
        if value is not None and value <= 0:
            raise self._wrong(name, "positive")
        return value

    def count(self, name: str) -> int:
        value = self.optional_count(name)
        if value is None:
            raise self._wrong(name, "a whole number of at least 1")
        return value

    def optional_count(self, name: str) -> int | None:
        """Whole numbers, which other programs may have written as 3.0."""
        value = self.number(name)
        if value is None or math.isinf(value):
            return None
        if value != int(value) or value < 1:
            raise self._wrong(name, "a whole number of at least 1")
        if value >= LARGEST_INTEGER:
            raise self._wrong(name, f"a whole number of at most {LARGEST_INTEGER:,}")
        return int(value)

    def _wrong(self, name: str, wanted: str) -> StoreError:
        return StoreError(f"{self._where}: {name} must be {wanted}, not {(self._line.get(name) or '')[:60]!r}")
