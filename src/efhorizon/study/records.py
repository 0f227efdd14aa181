"""What a study stores besides its analyses, one record for each thing: a run, the study itself, its folder's marker.

A record is written with its fields in this order. UNSET stands for what older versions did not write; it is not written
either.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from efhorizon.io.decode import MAX_ITEMS, Count, Number, Positive, Record, Text, is_shallow, plain
from efhorizon.study.sweep import Settings

RESULTS_FORMAT: Final = "efhorizon-results"
STUDY_FORMAT: Final = "efhorizon-study"
FORMAT_VERSION: Final = 1


class RunProtocol(Record, frozen=True):
    """The rules of a run: see `agents.deep.protocol.Protocol`."""

    max_steps: Positive
    evaluation_interval: Positive | UnsetType = UNSET
    window: Positive | UnsetType | None = UNSET


class RunProvenance(Record, frozen=True, kw_only=True):
    """What made a row."""

    table_fingerprint: Text | UnsetType = UNSET
    efhorizon: str | UnsetType = UNSET
    made: str | UnsetType = UNSET
    code: Text | UnsetType = UNSET  # the version of the learner
    source: str | UnsetType = UNSET
    packages: dict[str, str] | UnsetType = UNSET
    python: str | UnsetType = UNSET
    machine: str | UnsetType = UNSET


def file_name(*parts: str) -> str:
    """The name of a row's file, or with fewer parts what the names of several rows begin with."""
    return "__".join(re.sub(r"[^A-Za-z0-9.=-]", "_", part) for part in parts)


class RunKey(Struct, frozen=True):
    """What a row is about: equal keys mean the same experiment."""

    id: str
    algorithm: str
    backend: str
    setting: str
    seed: int
    hyperparameters: Settings
    protocol: RunProtocol
    fingerprint: str  # of the table
    code: str  # the version of the learner

    @property
    def name(self) -> str:
        """The name of the row's file."""
        content = json.dumps(plain(self), sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:10]
        return file_name(self.id, self.algorithm, self.backend, self.setting, f"seed{self.seed}", digest)


class Row(Record, frozen=True):
    """One run."""

    id: Text
    algorithm: Text
    backend: Text
    setting: Text
    seed: Count
    sample_complexity: Count | None  # None: not reached within the steps run
    solved_by: Text | None
    steps: Count  # timesteps run
    best_return: Number | None
    final_return: Number | None
    optimal_return: Number
    # Points. PPO and DQN: timestep, return of the greedy episode, mean return of the training episodes since the last
    # point (None: there was none). GORP: timestep, then median, 10th and 90th percentile over its runs of the expected
    # return of the policy so far.
    learning_curve: Annotated[list[tuple[Number | None, ...]], Meta(max_length=MAX_ITEMS)]
    wall_seconds: Number
    hyperparameters: Settings
    protocol: RunProtocol
    provenance: RunProvenance
    # PPO and DQN: whether the run ended after the first gradient step, and what random play needs by the same rule
    trained: bool | UnsetType = UNSET
    random_play_steps: Number | UnsetType | None = UNSET  # None: more than can be waited for

    def __post_init__(self) -> None:
        if not _is_curve(self.learning_curve, 4 if self.algorithm == "gorp" else 3):
            raise ValueError("the points of the learning curve must each be a timestep and two numbers (GORP: three)")
        if not is_shallow(self.hyperparameters):
            raise ValueError("hyperparameters: nested too deeply")

    @property
    def budget(self) -> float:
        """Timesteps that the run could have."""
        return float(self.protocol.max_steps)


def _is_curve(points: list[tuple[Number | None, ...]], length: int) -> bool:
    """Whole timesteps, then numbers. The mean return of training episodes, last of three, may be missing."""
    if not points or set(map(len, points)) != {length}:
        return not points
    steps, returns, *others = zip(*points, strict=True)
    required = returns if length == 3 else (*returns, *others[0], *others[1])
    return set(map(type, steps)) == {int} and None not in required


class ResultsMarker(Record, frozen=True):
    """What makes a folder a results folder: results.json."""

    format: str = RESULTS_FORMAT
    format_version: int = FORMAT_VERSION


class PlannedRuns(Struct, frozen=True):
    """What was to be run of one algorithm; GORP has its own seeds and steps."""

    algorithm: str
    settings: list[str]
    seeds: int | UnsetType = UNSET
    steps: int | UnsetType = UNSET


class PlanRecord(Struct, frozen=True, kw_only=True):
    names: list[str]
    runs: list[PlannedRuns]
    max_k: int
    max_states: int | None
    max_minutes: Number | None
    note: str | None = None  # what readers of the report should know
    image_runs: list[PlannedRuns] | UnsetType = UNSET
    policies: list[str] | UnsetType = UNSET  # labels of the policies that MDPs were studied with


Stage = Literal["build", "analyze", "run"]
Status = Literal["made", "kept", "left out", "failed"]


class StageOutcome(Struct, frozen=True):
    """The result for one environment in one stage."""

    name: str = field(name="id")
    stage: Stage
    status: Status
    text: str  # a result, or the reason why there is none
    seconds: float | UnsetType = UNSET  # not in study.json

    @property
    def is_lost(self) -> bool:
        return self.status in ("left out", "failed")


class StudyRecord(Record, frozen=True, kw_only=True):
    """What was planned, and the result for each environment: study.json."""

    format: Literal["efhorizon-study"] = STUDY_FORMAT
    format_version: Literal[1] = FORMAT_VERSION
    efhorizon: str
    plan: PlanRecord
    outcomes: list[StageOutcome]
