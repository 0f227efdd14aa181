"""What the paper's authors published about their MDPs with sticky actions: summary_sticky.csv, and a file per MDP."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from efhorizon.errors import StoreError
from efhorizon.io.decode import MAX_TEXT, Count, Text, json_object, text_of
from efhorizon.io.files import read_bytes

FILE: Final = "summary_sticky.csv"
ANALYZED: Final = "consolidated_analyzed_sticky_0.25.json"
_COMPLEXITY = "sample_complexity_"
_Timesteps = Annotated[float, Meta(gt=0, lt=1.7e308)]


class Sticky(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One MDP with sticky actions; None where nothing is said. Its states contain the action before."""

    num_states: Count | None = None
    min_k: Count | None = None
    epw: Count | None = None
    needed: dict[Text, _Timesteps | None] = field(default_factory=dict)  # by algorithm; None: not within budget


def sticky_summaries(folder: Path) -> dict[str, Sticky]:
    """The lines of summary_sticky.csv by the names of the MDPs."""
    file, what = folder / FILE, f"a {FILE}"
    if not file.exists():
        return {}
    reader = csv.DictReader(io.StringIO(text_of(read_bytes(file, what, MAX_TEXT), file, what), newline=""))
    found: dict[str, Sticky] = {}
    try:
        for line in reader:
            name = line.get("mdp_name")
            if not name:
                raise StoreError(f"{file}: not {what}: a line has no mdp_name")
            if name in found:
                raise StoreError(f"{file}: {name[:80]} appears twice")
            found[name] = Sticky(
                num_states=_whole(line.get("num_states")),
                min_k=_whole(line.get("k_min")),
                epw=_whole(line.get("epw")),
                needed={
                    column.removeprefix(_COMPLEXITY): None if math.isinf(value) else value
                    for column in reader.fieldnames or ()
                    if column.startswith(_COMPLEXITY) and (value := _number(line.get(column))) is not None
                },
            )
    except csv.Error as error:
        raise StoreError(f"{file}: not {what}: {error}") from None
    return found


def sticky_analysis(folder: Path, summary: Sticky | None) -> Sticky | None:
    """The same with what the file beside the table says, which comes first."""
    path, what = folder / ANALYZED, "a published JSON file"
    if not path.exists():
        return summary
    content = json_object(text_of(read_bytes(path, what, MAX_TEXT), path, what), str(path), what)
    said = {name: _whole(content.get(name)) for name in ("num_states", "min_k", "epw")}
    return replace(summary or Sticky(), **{name: value for name, value in said.items() if value is not None})


def _number(text: object) -> float | None:
    """A positive number, which may be infinite; None for anything else."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return None
    try:
        value = float(text)
    except (ValueError, OverflowError):
        return None
    return value if value > 0 else None


def _whole(text: object) -> int | None:
    value = _number(text)
    return int(value) if value is not None and value < 2**53 and value == int(value) else None
