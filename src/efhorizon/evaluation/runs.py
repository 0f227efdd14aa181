"""From run rows to what practice needed: which rows count, and the sample complexity, budget and return they give.

The sample complexity of a setting is the median over seeds, that of an algorithm the least over its settings.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from efhorizon.agents.deep.protocol import setting_sample_complexity
from efhorizon.io.decode import plain
from efhorizon.study.analysis_record import SEPARATOR, AnyAnalysis
from efhorizon.study.records import Row

TABLE_BACKEND = "table"
STARTS = (
    "exploration_policy",
    "initial",
    "exploration_network",
)  # hyperparameters that say what a run started from, by a digest
SHORTEST_DIGEST = 8  # as in the names of settings
_MOST_DIGITS = 18  # of a part of a version
SettingKey = tuple[str, str, str, str]  # MDP, algorithm, backend, setting


@dataclass(frozen=True)
class Practice:
    """What one algorithm needed on one MDP."""

    sample_complexity: float  # infinite if not reached
    budget: float
    final_return: float | None


@dataclass(frozen=True)
class Selection:
    """The rows that count, by the name of their MDP and their algorithm, and what was passed over."""

    rows: dict[tuple[str, str], list[Row]]
    notes: tuple[str, ...]


def mdp_of(row: Row, names: Collection[str]) -> str | None:
    """The MDP that a row is about, one of `names`; None if there is none.

    A run that started from a given policy or parameters is about NAME@POLICY, never NAME: POLICY is in the row's own
    id, or it is the beginning of the digest of what the run started from.
    """
    digests = [str(row.hyperparameters[start]) for start in STARTS if row.hyperparameters.get(start)]
    if not digests or SEPARATOR in row.id:
        return row.id if row.id in names else None
    for name in sorted(names):
        base, _, policy = name.rpartition(SEPARATOR)
        if base == row.id and len(policy) >= SHORTEST_DIGEST and any(each.startswith(policy) for each in digests):
            return name
    return None


def rows_that_count(rows: Sequence[Row], analyses: Mapping[str, AnyAnalysis]) -> Selection:
    """The rows that fit these analyses."""
    networks = {name: each.explorer.network for name, each in analyses.items() if each.explorer is not UNSET}
    return selected_rows(rows, {name: each.fingerprint for name, each in analyses.items()}, networks)


def selected_rows(
    rows: Sequence[Row], fingerprints: Mapping[str, str | None], networks: Mapping[str, str] | None = None
) -> Selection:
    """One row per run: MDP, algorithm, backend, setting, seed. `fingerprints` has every MDP that was analyzed, and
    `networks` the network behind the policy of every variant.

    A row from a table or with a network other than the one that was analyzed does not count. If a setting was run again
    with other code or another budget, the rows of only one version count: the one with the largest budget, then the
    most seeds, then the newest, so that the choice never depends on the order of files. A setting with fewer seeds than
    most of its algorithm and budget is still being run, and the seeds that finish first are no fair sample: it does not
    count yet.
    Rows of Stable-Baselines3 count only for an MDP and algorithm without rows on the table.
    """
    named = [(name, row) for row in rows if (name := mdp_of(row, fingerprints)) is not None]
    on_table_analyzed = [(name, row) for name, row in named if _is_of_table(row, fingerprints[name])]
    current = [(name, row) for name, row in on_table_analyzed if _is_of_network(row, (networks or {}).get(name))]
    settings: dict[SettingKey, list[Row]] = defaultdict(list)
    for name, row in current:
        settings[name, row.algorithm, row.backend, row.setting].append(row)
    newest = {key: _one_version(own) for key, own in sorted(settings.items())}
    usual = _usual_seeds(newest)
    whole = {
        (*key, seed): row
        for key, own in newest.items()
        if len(own) >= usual[_kind(key, own)]
        for seed, row in own.items()
    }
    on_table = {key[:2] for key, row in whole.items() if row.backend == TABLE_BACKEND}
    kept = {key: row for key, row in whole.items() if row.backend == TABLE_BACKEND or key[:2] not in on_table}
    grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for (name, algorithm, *_), row in kept.items():
        grouped[name, algorithm].append(row)
    num_newest = sum(len(own) for own in newest.values())
    counted = (
        (len(rows) - len(named), "of MDPs (or of starts) without a complete analysis: left out"),
        (len(named) - len(on_table_analyzed), "made on a table other than the one analyzed: left out"),
        (len(on_table_analyzed) - len(current), "begun with a network other than the one analyzed: left out"),
        (len(current) - num_newest, "of settings run again with other code or budget: left out"),
        (num_newest - len(whole), "of settings with fewer seeds than others, so unfinished: left out"),
        (len(whole) - len(kept), "by Stable-Baselines3: left out because there are rows on the table too"),
        (
            sum(row.backend != TABLE_BACKEND for row in kept.values()),
            "by Stable-Baselines3: used because there are no others",
        ),
    )
    return Selection(dict(grouped), tuple(f"{_rows(count)} {what}" for count, what in counted if count))


def practice(rows: Sequence[Row]) -> Practice:
    """The result of one algorithm on one MDP, from its rows."""
    settings: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        settings[row.setting].append(row)
    complexities = {
        name: setting_sample_complexity(row.sample_complexity for row in seeds) for name, seeds in settings.items()
    }
    returns = {name: _median_return(seeds) for name, seeds in settings.items()}
    # the best setting needs the least; among those that did not get there, the one with the highest return
    best = min(settings, key=lambda name: (complexities[name], -_number(returns[name]), name))
    # a setting that did not get there needs more than its budget, which bounds the smallest over settings
    return Practice(complexities[best], min(row.budget for row in rows), returns[best])


def _is_of_table(row: Row, fingerprint: str | None) -> bool:
    of_row = row.provenance.table_fingerprint
    return fingerprint is None or not of_row or of_row == fingerprint


def _is_of_network(row: Row, network: str | None) -> bool:
    """Whether a run on a variant started from the network whose policy was analyzed."""
    return network is None or network in (row.hyperparameters.get(start) for start in STARTS)


def _one_version(rows: Sequence[Row]) -> dict[int, Row]:
    """The rows of a setting by seed, all made with the same hyperparameters, protocol and code."""
    if len({_version(row) for row in rows}) == 1 and len({row.seed for row in rows}) == len(rows):
        return {row.seed: row for row in sorted(rows, key=lambda row: row.seed)}  # nothing to choose from
    versions: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: json.dumps(plain(row), sort_keys=True)):
        versions[_version(row)].setdefault(row.seed, row)
    best = max(versions, key=lambda version: (*_preference(versions[version]), version))
    return dict(sorted(versions[best].items()))


def _version(row: Row) -> str:
    """What a row was made with."""
    return json.dumps((row.hyperparameters, plain(row.protocol), row.provenance.code or None), sort_keys=True)


def _usual_seeds(settings: Mapping[SettingKey, Mapping[int, Row]]) -> dict[tuple[str, str, float], int]:
    """The number of seeds that most settings of a kind have; the smaller of two equally frequent."""
    numbers: dict[tuple[str, str, float], list[int]] = defaultdict(list)
    for key, rows in settings.items():
        numbers[_kind(key, rows)].append(len(rows))
    return {kind: min(statistics.multimode(found)) for kind, found in numbers.items()}


def _kind(key: SettingKey, rows: Mapping[int, Row]) -> tuple[str, str, float]:
    """Settings that are run with equally many seeds: images, say, may have had fewer timesteps and fewer seeds."""
    _, algorithm, backend, _ = key
    return algorithm, backend, next(iter(rows.values())).budget


def _preference(rows: Mapping[int, Row]) -> tuple[float, int, tuple[int, ...], str]:
    row = next(iter(rows.values()))
    version = row.provenance.efhorizon or ""
    numbers = tuple(int(part[:_MOST_DIGITS]) if part.isdecimal() else 0 for part in version.split("."))
    made = max(row.provenance.made or "" for row in rows.values())
    return row.budget, len(rows), numbers, made


def _median_return(rows: Sequence[Row]) -> float | None:
    returns = [row.final_return for row in rows if row.final_return is not None]
    return float(statistics.median(returns)) if returns else None


def _number(value: float | None) -> float:
    return float("-inf") if value is None else value


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
