"""The functions behind `import efhorizon as ef`: thin, over what the commands use too. See docs/library.md."""

from efhorizon.library.analyzing import analyze
from efhorizon.library.building import build, load
from efhorizon.library.changing import what_if
from efhorizon.library.diagnosing import diagnose
from efhorizon.library.forecasting import forecast
from efhorizon.library.running import Training, gorp, train
from efhorizon.library.studying import Study, report, study

__all__ = [
    "Study",
    "Training",
    "analyze",
    "build",
    "diagnose",
    "forecast",
    "gorp",
    "load",
    "report",
    "study",
    "train",
    "what_if",
]
