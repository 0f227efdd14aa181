"""What makes a folder a report: a small file that only `write_report` writes."""

from __future__ import annotations

import os
from pathlib import Path

from efhorizon._version import __version__
from efhorizon.errors import StoreError
from efhorizon.io.decode import read_object
from efhorizon.io.files import write_json

MARKER, FORMAT, FORMAT_VERSION = "report.json", "efhorizon-report", 1


def write_marker(folder: Path) -> None:
    write_json(folder / MARKER, {"format": FORMAT, "format_version": FORMAT_VERSION, "efhorizon": __version__})


def is_report(folder: Path) -> bool:
    """Whether a folder is one that `write_report` made."""
    try:
        content = read_object(folder / MARKER, "the mark of a report")
    except StoreError:
        return False
    return content.get("format") == FORMAT


def check_replaceable(out: Path, study: Path) -> None:
    """Refuse to overwrite anything but a report, and never the study itself."""
    if Path(os.path.realpath(study)).is_relative_to(os.path.realpath(out)):  # other than resolve(), fine with circles
        raise StoreError(f"{out}: contains the results themselves; choose another folder for the report")
    if out.exists() and not out.is_dir():
        raise StoreError(f"{out}: not a folder; choose another one for the report (nothing was written)")
    if out.is_dir() and any(out.iterdir()) and not is_report(out):
        raise StoreError(f"{out}: not empty and not a report; choose another folder (nothing was written)")
