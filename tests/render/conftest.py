"""The synthetic studies are on the path, and reports that several tests look at are written once."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_study import HOSTILE, Shape, write_study

from efhorizon.render.html.site import WrittenReport, write_report


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifteen MDPs, the first with a name that means ill."""
    return write_study(tmp_path_factory.mktemp("study"), Shape(num_mdps=15, names=(HOSTILE,)))


@pytest.fixture(scope="session")
def report(study: Path, tmp_path_factory: pytest.TempPathFactory) -> WrittenReport:
    return write_report(study, tmp_path_factory.mktemp("site") / "report", num_resamples=50)
