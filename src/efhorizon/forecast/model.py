"""The fitted model: a small table of numbers that comes with the package, and its reader and writer.

Its version is a digest of its content, so that a forecast that names a version can always be traced to the numbers
behind it, and a file that was changed by hand is refused. `make forecast` writes it anew from the rows of the study.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta

from efhorizon.errors import StoreError
from efhorizon.forecast.columns import COMPARED, USED
from efhorizon.forecast.error_curve import ErrorCurve
from efhorizon.io.decode import Count, Finite, Positive, Record, Text, plain, read_object, record_of
from efhorizon.io.files import written_aside

FORMAT: Final = "efhorizon-forecast-model"
FORMAT_VERSION: Final = 1
PATH = Path(__file__).with_name("model.json")
_WHAT = "a forecast model"
_DIGEST_LENGTH = 8

Chance = Annotated[float, Meta(ge=0.0, le=1.0)]
Above0 = Annotated[float, Meta(gt=0.0)]


class AlgorithmModel(Record, frozen=True, kw_only=True):
    """What is known about one algorithm. Everything is in powers of ten of timesteps."""

    num_mdps: Positive  # that it was fitted on
    num_solved: Positive
    num_families: Positive
    budget: Positive  # timesteps of the longest runs
    typical_bound: Finite  # stands for a bound where there is none
    intercept: Finite
    coefficients: dict[Text, Finite]  # by column
    errors: list[Finite]  # of MDPs that were left out: the curve of `error_curve.py`
    chances: list[Chance]
    tail: Above0
    spreads: dict[Text, Above0]  # of the columns by which MDPs are compared
    reach: Above0  # how far from all others most MDPs of the study are
    seen: list[list[Finite]]  # the MDPs of the study in these columns

    def __post_init__(self) -> None:
        if list(self.coefficients) != [column.name for column in USED]:
            raise ValueError(f"coefficients must be those of {', '.join(column.name for column in USED)}")
        if any(self.coefficients[column.name] < 0 for column in USED if column.sign > 0):
            raise ValueError("a coefficient that theory says is positive is negative")
        if list(self.spreads) != [column.name for column in COMPARED] or not self.seen:
            raise ValueError(f"spreads must be those of {', '.join(column.name for column in COMPARED)}")
        if any(len(row) != len(COMPARED) for row in self.seen):
            raise ValueError(f"each row of seen must have {len(COMPARED)} numbers")
        if not 2 <= len(self.errors) == len(self.chances) or not (_rises(self.errors) and _rises(self.chances)):
            raise ValueError("errors and chances must rise, and be equally many")

    @property
    def curve(self) -> ErrorCurve:
        return ErrorCurve(tuple(self.errors), tuple(self.chances), self.tail)


class Content(Record, frozen=True, kw_only=True):
    """Everything in the file but its version."""

    format: Literal["efhorizon-forecast-model"] = FORMAT
    format_version: Literal[1] = FORMAT_VERSION
    rule: Text  # what counted as solved: see evaluation/rules.py
    num_runs: Count  # rows of the study behind it
    algorithms: dict[Literal["ppo", "dqn"], AlgorithmModel]


class Model(Record, frozen=True, kw_only=True):
    """The model with its version."""

    version: Text
    content: Content


def versioned(content: Content) -> Model:
    """A model with the version that its content has."""
    return Model(version=_version(content), content=content)


@cache
def shipped_model() -> Model:
    """The model that comes with this version of efhorizon."""
    return read_model(PATH)


def read_model(path: Path) -> Model:
    """A model from a file; one whose content is not what its version says is refused."""
    model = record_of(read_object(path, _WHAT), Model, str(path))
    expected = _version(model.content)
    if model.version != expected:
        raise StoreError(f"{path}: not the model that it says: its content is {expected}, not {model.version[:60]}")
    return model


def write_model(path: Path, model: Model) -> None:
    """Write a model, one line for each row of numbers."""
    with written_aside(path) as temporary:
        temporary.write_text(encoded_model(model))


def encoded_model(model: Model) -> str:
    """The content of the file."""
    content = plain(model)
    rows = {name: each.pop("seen") for name, each in content["content"]["algorithms"].items()}
    for name, each in content["content"]["algorithms"].items():
        each["seen"] = f"<{name}>"
    text = json.dumps(content, indent=1)
    for name, seen in rows.items():
        lines = ",\n".join(f"     {json.dumps(row)}" for row in seen)
        text = text.replace(f'"<{name}>"', f"[\n{lines}\n    ]")
    return text + "\n"


def _version(content: Content) -> str:
    text = json.dumps(plain(content), sort_keys=True)
    return f"forecast-{FORMAT_VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]}"


def _rises(values: list[float]) -> bool:
    return all(low < high for low, high in pairwise(values))
