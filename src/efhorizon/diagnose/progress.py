"""How far a diagnosis is, in one line."""

from __future__ import annotations

from efhorizon.diagnose.survey import Findings


def progress_line(name: str, findings: Findings, doing: str) -> str:
    """What is being done, and how much of the budget is spent."""
    part = f" ({findings.steps_played / findings.budget:.0%})" if findings.budget else ""
    return f"{name}: {doing}; {findings.steps_played:,} steps{part}"
