"""What `efhorizon what-if` found, kept with the analysis of the same table, where `report` looks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import UNSET
from msgspec.structs import replace

from efhorizon.errors import StoreError
from efhorizon.mdp import TabularMDP
from efhorizon.study.analysis_record import AnalysisRecord, CompleteFigures, is_complete
from efhorizon.study.answer_record import ChangeFigures
from efhorizon.study.failures import reason_of
from efhorizon.study.results import Results
from efhorizon.what_if.trial import Trial, WhatIf
from efhorizon.what_if.trials import what_if

MOST_KEPT = 12  # changes of one table


def keep_changes(folder: Path, mdp: TabularMDP, found: WhatIf) -> str | None:
    """Write what was tried into the analysis of the table; returns why it was not written, or None."""
    name = found.id
    if name is None:
        return f"not kept in {folder}: the table has no name"
    results = Results(folder)
    try:
        if not results.has_analysis(name):
            return f"not kept in {folder}: it has no analysis of {name} (efhorizon analyze {name})"
        analysis = results.analysis(name)
        if not is_complete(analysis) or analysis.fingerprint != mdp.fingerprint():
            return f"not kept in {folder}: the analysis there is of another table (efhorizon analyze {name})"
        results.write_analysis(replace(analysis, changes=changes_of(found)), {})
    except (StoreError, OSError) as error:
        return f"not kept in {folder}: {reason_of(error)}"
    return None


def add_changes(results: Results, mdp: TabularMDP, analysis: AnalysisRecord[CompleteFigures]) -> bool:
    """Try changes of a table and write them into its analysis, unless it has them already; whether that was done."""
    if analysis.changes is not UNSET:
        return False
    results.write_analysis(replace(analysis, changes=changes_of(what_if(mdp))), {})
    return True


def changes_of(found: WhatIf) -> list[ChangeFigures]:
    """The best of what was tried, without what makes no difference or could not be compared."""
    worth_showing = ("helps", "only on paper", "hurts")
    return [_record(trial) for trial in found.trials if trial.verdict in worth_showing][:MOST_KEPT]


def _record(trial: Trial) -> ChangeFigures:
    after = trial.after
    return ChangeFigures(
        title=trial.title,
        kind=trial.kind,
        verdict=trial.verdict,
        needs=trial.needs,
        horizon=None if after is None else after.effective_horizon,
        horizon_kind=None if after is None else after.kind,
        timesteps=None if after is None else after.timesteps,
        factor=trial.factor,
        forecast={} if after is None else {name: each.timesteps.median for name, each in after.forecasts.items()},
        stays_optimal=_stays_optimal(trial),
        caveats=list(trial.caveats),
    )


def _stays_optimal(trial: Trial) -> Literal["yes", "partly", "no"] | None:
    if trial.kept is None:
        return None
    return "yes" if trial.kept.every else "partly" if trial.kept.some else "no"
