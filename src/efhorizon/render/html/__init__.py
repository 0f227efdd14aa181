"""The report: a study as a web site that opens from disk. Pages, and one call that writes them all."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from efhorizon.suites.simulator import MissingExtraError

if TYPE_CHECKING:
    from efhorizon.evaluation.original import Original
    from efhorizon.render.html.site import WrittenReport

__all__ = ["write_report"]


def write_report(
    study: Path, out: Path, *, published: Original | None = None, with_chance: Path | None = None
) -> WrittenReport:
    """Turn a results directory, an export of one or a summary.csv into a site in `out`; `published` is shown beside,
    and so are the tables with chance of another folder."""
    if find_spec("jinja2") is None:
        raise MissingExtraError("report", "jinja2")
    from efhorizon.render.html import site

    return site.write_report(study, out, published=published, with_chance=with_chance)
