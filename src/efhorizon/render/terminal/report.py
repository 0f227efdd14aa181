"""A report that was written."""

from __future__ import annotations

from efhorizon.render.html.site import WrittenReport
from efhorizon.render.numbers import counted, size
from efhorizon.render.terminal.layout import Parts, literal


def written_report(report: WrittenReport) -> Parts:
    files = f"{counted(report.num_files, 'file')}, {size(report.num_bytes)}"
    yield f"{counted(report.num_mdps, 'MDP')}, {files}: {literal(report.index)}"
