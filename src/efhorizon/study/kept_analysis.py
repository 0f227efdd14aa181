"""What `efhorizon analyze` found, kept where `evaluate` and `report` look for it.

The analysis is there already, so keeping it takes little more than drawing its pictures. Whatever goes wrong here is
said in one line: the analysis itself is never lost by it.
"""

from __future__ import annotations

from pathlib import Path

from efhorizon.bounds.analysis import Analysis
from efhorizon.bounds.unfinished import AnytimeAnalysis
from efhorizon.mdp import TabularMDP
from efhorizon.study.analyses import analysis_record, is_current
from efhorizon.study.failures import reason_of
from efhorizon.study.results import Results


def keep_analysis(
    folder: Path, mdp: TabularMDP, analysis: Analysis | AnytimeAnalysis, *, max_k: int, is_uniform: bool
) -> str | None:
    """Write an analysis into a results folder; returns why it was not written, or None.

    A report compares analyses by the paper's rules: complete tables, no discount, uniform exploration and ties. An
    analysis of a study, which has other rules for ties beside these, stays as it is; so does a finished one where this
    one was cut short by its time budget.
    """
    unsuitable = _unsuitable(analysis, is_uniform)
    if unsuitable is not None:
        return f"not kept in {folder}: {unsuitable}"
    assert isinstance(analysis, Analysis)
    try:
        results = Results.made(folder)
        if not is_current(results, mdp, max_k=max_k, with_ties=analysis.is_finished):
            record, pictures = analysis_record(mdp, max_k=max_k, analysis=analysis)
            results.write_analysis(record, pictures)
    except Exception as error:
        return f"not kept in {folder}: {reason_of(error)}"
    return None


def _unsuitable(analysis: Analysis | AnytimeAnalysis, is_uniform: bool) -> str | None:
    if not isinstance(analysis, Analysis):
        return "the table is unfinished"
    if analysis.gamma != 1:
        return "reports are about undiscounted returns"
    if not is_uniform:
        return "reports are about random exploration (for policies to start from: efhorizon study --policies)"
    return None if analysis.ties == "uniform" else "reports are about ties broken at random"
