"""The model behind forecasts and docs/study/forecast.md, both made from data/study.

python tests/support/forecast_model.py            say whether the committed files are what the rows give
python tests/support/forecast_model.py --write    write them: `make forecast`
"""

from __future__ import annotations

import sys
from pathlib import Path

from efhorizon.evaluation.forecast_check import forecast_checks
from efhorizon.evaluation.forecast_rows import RULE, forecast_rows
from efhorizon.evaluation.source import StudyData, study_data
from efhorizon.forecast.fitting import fitted_model
from efhorizon.forecast.model import PATH, Model, encoded_model
from efhorizon.render.markdown.forecast_page import FILE, forecast_page

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "data" / "study"
PAGE = ROOT / "docs" / "study" / FILE


def model_of(data: StudyData) -> Model:
    """The model that the rows give."""
    return fitted_model(forecast_rows(data, RULE), rule=RULE, num_runs=len(data.runs))


def page_of(data: StudyData, model: Model) -> str:
    """The page that the rows give: a minute or two, for every family is left out of everything once."""

    def say(family: str) -> None:
        print(f"leaving out {family}", file=sys.stderr)

    return forecast_page(model, forecast_checks(data, say), data.titles)


def main() -> int:
    data = study_data(ROWS)
    model = model_of(data)
    contents = {PATH: encoded_model(model), PAGE: page_of(data, model)}
    is_same = True
    for path, content in contents.items():
        same = path.exists() and path.read_text() == content
        is_same = is_same and same
        if "--write" in sys.argv[1:]:
            path.write_text(content)
        print(f"{path.relative_to(ROOT)}: {'unchanged' if same else 'changed'}")
    return 0 if is_same or "--write" in sys.argv[1:] else 1


if __name__ == "__main__":
    raise SystemExit(main())
