"""An analysis as a study stores it: what theory says about one MDP, which state decides it, and its inputs.

UNSET stands for what older versions did not write; it is not written either.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Generic, Literal, TypeGuard, TypeVar

from msgspec import UNSET, Meta, UnsetType, field

from efhorizon.bounds.interval import Interval
from efhorizon.errors import StoreError
from efhorizon.gorp.ties import Ties
from efhorizon.io.decode import (
    LARGEST_FLOAT,
    MAX_ITEMS,
    Count,
    LargeNumber,
    LargePositive,
    Number,
    Positive,
    Probability,
    Record,
    Text,
    is_shallow,
    json_object,
    record_of,
)
from efhorizon.study.answer_record import (
    ChangeFigures,
    Numbers,
    ReasonFigures,
    ReasonScene,
    WhyBasis,
    check_distribution,
)

FORMAT: Final = "efhorizon-analysis"
FORMAT_VERSION: Final = 1
UNIFORM = "uniform"  # the exploration policy of the paper
SEPARATOR = "@"  # NAME@POLICY is the MDP NAME started from an exploration policy that is not the uniform one

Figure = int | float | Interval | None  # an interval in an unfinished table
Fact = bool | Number | str | None
NOISE = "noise"  # a fact: how often a demonstrator takes a random action


def _is_finite(interval: Interval) -> bool:
    """Both ends are numbers that a float can hold."""
    return all(end is None or -LARGEST_FLOAT <= end <= LARGEST_FLOAT for end in interval)


class EpisodesForK(Record, frozen=True, kw_only=True):
    """How many episodes m GORP needs for each sequence of k actions: exactly, at most, and by Theorem 5.4."""

    exact_m: LargePositive | None = None
    least_possible_m: int | UnsetType | None = UNSET
    upper_m: LargePositive | None = None
    theorem_m: LargePositive | None = None
    method: Text | None = None  # what gave the m that is used
    exact_reason: Text | None = None  # why there is no such m
    upper_reason: Text | None = None
    theorem_reason: Text | None = None


class HorizonFigures(Record, frozen=True, kw_only=True):
    """The effective horizon, H_k = k + log_A m, least over k."""

    value: Number | Interval | None = None
    k: Positive | None = None
    m: LargePositive | None = None
    kind: Text | None = None  # "exact", "upper" or "interval"
    by_k: dict[Positive, EpisodesForK] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.value, Interval) and not _is_finite(self.value):
            raise ValueError("value must be from one number to another")


class WitnessFigures(Record, frozen=True, kw_only=True):
    """A state that decides a bound."""

    time: Count
    state: Count
    k: Positive | UnsetType = UNSET  # of the Q-function
    q_values: Numbers = field(default_factory=list)
    optimal_q_values: Numbers = field(default_factory=list)
    optimal_value: Number | None = None
    gap: Number | None = None
    margin: Number | None = None


class FailureFigures(Record, frozen=True, kw_only=True):
    """Where GORP with the exact k and m is most likely to take its first action that is not optimal."""

    time: Count
    state: Count
    failure_probability: Number


class TieFigures(Record, frozen=True, kw_only=True):
    """The effective horizon if GORP breaks ties by another rule."""

    value: Number | None = None
    k: Positive | None = None
    m: LargePositive | None = None
    kind: Text | None = None  # "exact" or "upper"
    exact_m: dict[Positive, LargePositive] = field(default_factory=dict)  # by k, as far as it is known
    reason: Text | None = None  # why it is not exact


class MeasureFigures(Record, frozen=True, kw_only=True):
    """A measure of hardness; `low` and `high` are the interval of an estimate."""

    value: Number | None = None
    low: Number | None = None
    high: Number | None = None
    reason: Text | None = None  # why there is no value
    note: Text | None = None  # how an estimate was made
    harder: Literal["larger", "smaller"]  # which values mean a harder environment


class GoalFigures(Record, frozen=True, kw_only=True):
    """Theorem B.4, for MDPs that pay for reaching a goal."""

    is_goal_mdp: bool = False
    p: Number | None = None
    effective_horizon: Number | None = None


class CompleteFigures(Record, frozen=True, kw_only=True):
    """What theory says about a table whose every state was explored."""

    id: str | None = None
    complete: bool
    num_states: Positive
    num_actions: Positive
    horizon: Positive
    gamma: Number | None = None
    optimal_return: Number | None = None
    exploration_return: Number | None = None
    worst_return: Number | None = None
    optimal_return_probability: Probability | None = None
    exploration_length: Number | UnsetType | None = UNSET  # timesteps of an exploring episode, on average
    min_k: Positive | None = None
    epw: Positive | None = None
    min_state_occupancy: Number | None = None
    min_sum_state_occupancy: Number | None = None
    min_state_action_occupancy: Number | None = None
    min_sum_state_action_occupancy: Number | None = None
    covering_length: LargeNumber | None = None
    covering_length_lower: LargeNumber | None = None
    effective_horizon: HorizonFigures
    sample_complexity: dict[str, LargeNumber | None]  # timesteps by bound; None: infinite, or see `reasons`
    goal_mdp: GoalFigures | None = None
    lower_bound: LargeNumber | None = None
    deciding_state: WitnessFigures | None = None
    theorem_states: dict[Positive, WitnessFigures | None] = field(default_factory=dict)  # by k
    most_failures: FailureFigures | None = None
    ties: Ties | UnsetType = UNSET  # the rule with which the effective horizon holds: uniform if it is not set
    reasons: dict[str, str]  # why a bound does not apply
    exact_by_ties: dict[Ties, TieFigures] | UnsetType = UNSET  # the effective horizon with other rules
    measures: dict[str, MeasureFigures] | UnsetType = UNSET  # other measures of hardness; with a policy, there are none
    why: Annotated[list[ReasonFigures], Meta(max_length=MAX_ITEMS)] | UnsetType = UNSET  # where it was looked for
    why_basis: WhyBasis | UnsetType = UNSET

    def __post_init__(self) -> None:
        if isinstance(self.effective_horizon.value, Interval):
            raise ValueError("the effective horizon of a complete table must be a number")


class UnfinishedFigures(Record, frozen=True, kw_only=True):
    """What is known about a table with unexplored states: intervals."""

    id: str | None = None
    complete: bool
    num_explored_states: Count | None = None
    num_unexplored_states: Count | None = None
    reward_bounds: Numbers = field(default_factory=list)
    num_actions: Positive
    horizon: Positive
    gamma: Number | None = None
    num_states: Number | Interval | None = None
    optimal_return: Number | Interval | None = None
    exploration_return: Number | Interval | None = None
    worst_return: Number | Interval | None = None
    optimal_return_probability: Number | Interval | None = None
    min_k: Number | Interval | None = None
    epw: Number | Interval | None = None
    min_state_occupancy: Number | Interval | None = None
    min_sum_state_occupancy: Number | Interval | None = None
    min_state_action_occupancy: Number | Interval | None = None
    min_sum_state_action_occupancy: Number | Interval | None = None
    covering_length: LargeNumber | Interval | None = None
    effective_horizon: HorizonFigures
    sample_complexity: dict[str, LargeNumber | Interval | None]
    reasons: dict[str, str]

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, Interval) and not _is_finite(value):
                raise ValueError(f"{name} must be from one number to another, not {str(list(value))[:60]}")


class ReplayDifference(Record, frozen=True, kw_only=True):
    actions: list[int]
    what: str
    expected: str
    found: str


class Replay(Record, frozen=True, kw_only=True):
    """How a table was verified: what was replayed in a fresh environment."""

    verified: bool = False
    episodes: Count | None = None
    steps: Count | None = None
    screens_compared: bool | None = None
    optimal_return: Number | None = None
    seconds: Number | None = None
    difference: ReplayDifference | None = None
    exact: bool | UnsetType = UNSET
    complete: bool | UnsetType = UNSET
    pairs: Count | UnsetType = UNSET
    pairs_replayed: Count | UnsetType = UNSET
    pairs_drawn: Count | UnsetType | None = UNSET
    next_states: Count | UnsetType | None = UNSET
    next_states_recognised: Count | UnsetType | None = UNSET
    states: Count | UnsetType = UNSET
    states_replayed: Count | UnsetType = UNSET
    raw_states: Count | UnsetType | None = UNSET
    raw_states_from_reset: Count | UnsetType | None = UNSET


class TableFigures(Record, frozen=True, kw_only=True):
    """The table that was analyzed."""

    num_states: Count | None = None
    num_raw_states: Count | None = None
    fingerprint: str | None = None
    layers: Annotated[list[Count], Meta(max_length=MAX_ITEMS)] = field(
        default_factory=list
    )  # states that can be reached at each time
    frameskip: Positive | None = None
    verification: Replay | None = None


class ReturnHistogram(Record, frozen=True, kw_only=True):
    """A distribution of returns."""

    returns: Numbers = field(default_factory=list)
    probabilities: Numbers = field(default_factory=list)

    def __post_init__(self) -> None:
        check_distribution(self.returns, self.probabilities)


class DecidingAction(Record, frozen=True, kw_only=True):
    action: Count | None = None
    name: Text
    q: Number
    optimal_q: Number
    is_optimal: bool = False
    histogram: ReturnHistogram | None = None


class DecidingState(Record, frozen=True, kw_only=True):
    """The state where a greedy policy is closest to a mistake, or where the bound of Theorem 5.4 is attained."""

    k: Positive = 1  # what its actions are worth is Q^k
    time: Count
    state: Count
    picture: Text | None = None
    observation: Text | UnsetType = UNSET  # what is observed there, in one line; of environments that are not listed
    drawing: Text | UnsetType = UNSET  # the state as text, where the environment draws text
    actions: Annotated[list[DecidingAction], Meta(max_length=MAX_ITEMS)]


class EpisodeSheet(Record, frozen=True, kw_only=True):
    """An optimal episode as a sheet of frames, row by row."""

    picture: Text
    frames: Positive
    columns: Positive
    width: Positive  # of a frame
    height: Positive
    actions: Annotated[list[str], Meta(max_length=MAX_ITEMS)]
    rewards: Numbers


class StageSeconds(Record, frozen=True, kw_only=True):
    build: Number | None = None
    verify: Number | None = None
    analyze: Number | None = None


class PolicyRecord(Record, frozen=True, kw_only=True):
    """The policy that explores, and that PPO starts from: a network, and where it comes from."""

    label: Text
    title: Text | None = None  # for people
    method: Text | None = None  # "cloned" or "pretrained", say
    facts: dict[Text, Fact] = field(default_factory=dict)  # such as noise, steps, levels
    network: Text  # digest of its parameters
    probabilities: Text  # digest of what it says on the table
    num_states: Positive  # in which it says something; more than the MDP has if it sees several frames

    @property
    def noise(self) -> float | None:
        """The noise of the demonstrator that was cloned, where that is known."""
        noise = self.facts.get(NOISE)
        if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise <= 1:
            return None
        return float(noise)


class AnalysisSettings(Record, frozen=True, kw_only=True):
    max_k: Positive | None = None
    gamma: Number | None = None
    exploration: str | None = None
    network: Text | UnsetType = UNSET  # digest of the parameters behind the exploration policy; UNSET: uniform
    cut_short: bool | UnsetType = UNSET  # whether a time budget ended the search for exact figures


class AnalysisProvenance(Record, frozen=True, kw_only=True):
    """What an analysis was made from. One whose inputs, up to `bounds`, have changed is made again."""

    table_fingerprint: str | None = None
    table_inputs: Any = None  # as the table has them: screens are no part of the fingerprint
    code: str | None = None
    settings: AnalysisSettings | None = None
    bounds: dict[str, str | None] = field(
        default_factory=dict
    )  # the version of each registered bound; None if it is unknown
    measures: dict[str, str | None] | UnsetType = UNSET  # the version of each measure, as of bounds
    efhorizon: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    python: str | None = None
    machine: str | None = None

    def __post_init__(self) -> None:
        if not is_shallow(self.table_inputs):
            raise ValueError("table_inputs: nested too deeply")


FiguresT_co = TypeVar("FiguresT_co", bound=CompleteFigures | UnfinishedFigures, covariant=True)


class AnalysisRecord(Record, Generic[FiguresT_co], frozen=True, kw_only=True):
    """An analysis: what theory says about one MDP."""

    format: Literal["efhorizon-analysis"] = FORMAT
    format_version: Literal[1] = FORMAT_VERSION
    id: Text
    suite: Text
    game: Text | None = None
    unshaped: Text | None = None  # the MDP whose rewards were shaped
    shaping: Text | None = None
    reward_factor: Number | None = None
    exploration: Text | None = None
    explorer: PolicyRecord | UnsetType = UNSET  # where that is not the uniform policy
    figures: FiguresT_co = field(name="analysis")
    titles: dict[str, str] = field(default_factory=dict)  # of the bounds, for people
    table: TableFigures | None = None
    deciding: DecidingState | None = None
    reason_scenes: Annotated[list[ReasonScene], Meta(max_length=MAX_ITEMS)] | UnsetType = UNSET  # as `figures.why`
    changes: Annotated[list[ChangeFigures], Meta(max_length=MAX_ITEMS)] | UnsetType = UNSET  # best first; where tried
    start_picture: Text | None = None
    start_observation: Text | UnsetType = UNSET  # as in `deciding`
    start_drawing: Text | UnsetType = UNSET
    picture_note: Text | UnsetType = UNSET  # why there are no pictures
    observation_note: Text | UnsetType = UNSET  # what to know about what agents see
    sees_images: bool | UnsetType = UNSET  # whether agents see images; of environments that are not listed
    episode: EpisodeSheet | None = None
    seconds: StageSeconds | None = None
    provenance: AnalysisProvenance | None = None

    @property
    def policy(self) -> str:
        """The exploration policy."""
        return self.exploration or UNIFORM

    @property
    def name(self) -> str:
        """The MDP's name, with the exploration policy where that is not the uniform one."""
        is_named = self.policy == UNIFORM or self.id.endswith(SEPARATOR + self.policy)
        return self.id if is_named else self.id + SEPARATOR + self.policy

    @property
    def fingerprint(self) -> str | None:
        """Of the table that was analyzed, where the file says."""
        return None if self.table is None else self.table.fingerprint

    @property
    def pictures(self) -> dict[str, str]:
        """Names of pictures, seen from the results folder, by what they show."""
        named = {
            "start": self.start_picture,
            "deciding": None if self.deciding is None else self.deciding.picture,
            "episode": None if self.episode is None else self.episode.picture,
        }
        scenes = () if self.reason_scenes is UNSET else self.reason_scenes
        named |= {f"reason-{number}": scene.picture for number, scene in enumerate(scenes, 1)}
        return {kind: name for kind, name in named.items() if name is not None}


AnyAnalysis = AnalysisRecord[CompleteFigures | UnfinishedFigures]


def is_complete(analysis: AnyAnalysis) -> TypeGuard[AnalysisRecord[CompleteFigures]]:
    """Whether every state was explored; the figures of other analyses are intervals."""
    return isinstance(analysis.figures, CompleteFigures)


def decoded_analysis(text: str, where: str) -> AnyAnalysis:
    """The analysis in a JSON text."""
    return analysis_of(json_object(text, where, "an analysis"), where)


def analysis_of(content: dict[str, Any], where: str) -> AnyAnalysis:
    """The analysis that a JSON object is."""
    if content.get("format") != FORMAT:
        raise StoreError(f"{where}: not an analysis")
    if content.get("format_version") != FORMAT_VERSION:
        raise StoreError(
            f"{where}: made by another version of efhorizon (format {str(content.get('format_version'))[:40]})"
        )
    figures = content.get("analysis")
    if isinstance(figures, dict) and figures.get("complete") is False:
        return record_of(content, AnalysisRecord[UnfinishedFigures], where)
    return record_of(content, AnalysisRecord[CompleteFigures], where)
