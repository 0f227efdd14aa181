"""index.parquet: one row per MDP, with what theory says, what practice needed, and which parts are in the data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from efhorizon.dataset import registry as registries
from efhorizon.dataset.registry import MdpEntry
from efhorizon.evaluation import summary_csv
from efhorizon.evaluation.source import StudyData
from efhorizon.study import export

FILE: Final = "index.parquet"
_NAME = "mdp_name"
_OWN: Final = {  # columns besides those of summary.csv
    "suite": "string",
    "kind": "string",
    "base": "string",
    "num_states": "int64",
    "fingerprint": "string",
    "verified": "bool",
    "num_runs": "int64",
    "table": "string",
    "bridge": "string",
    "analysis": "string",
    "runs": "string",
    "pictures": "string",
    "screens": "string",
}


def columns(data: StudyData) -> dict[str, str]:
    """All columns and their types."""
    return {name: export.column_type(name) for name in summary_csv.columns(data.summaries)} | _OWN


def encoded_index(data: StudyData, entries: Mapping[str, MdpEntry]) -> bytes:
    """The content of the file. A part is the path of it; empty where it is not in the data set."""
    summaries = {each.name: summary_csv.fields_of(each) for each in data.summaries}
    rows = []
    for name, entry in sorted(entries.items()):
        paths = {kind: part.path for kind, part in entry.parts.items()}
        rows.append(
            {
                **summaries.get(name, {}),
                _NAME: name,
                "origin": entry.suite,
                "horizon": entry.horizon,
                "num_actions": entry.num_actions,
                "suite": entry.suite,
                "kind": entry.kind,
                "base": entry.base,
                "num_states": entry.num_states,
                "fingerprint": entry.fingerprint,
                "verified": entry.verified,
                "num_runs": entry.num_runs,
                **{kind: paths.get(kind) for kind in (registries.TABLE, registries.BRIDGE, registries.ANALYSIS)},
                **{kind: paths.get(kind) for kind in (registries.RUNS, registries.PICTURES, registries.SCREENS)},
            }
        )
    return export.encoded_list(FILE, rows, columns(data))
