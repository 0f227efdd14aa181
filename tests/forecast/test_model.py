"""The file of the model: read, written, refused where it was changed, and the same bytes from the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import forecast_model
import pytest
from usual_features import USUAL

from efhorizon.errors import EfhorizonError, StoreError
from efhorizon.forecast.fitting import LEAST_FAMILIES, Outcome, algorithm_model
from efhorizon.forecast.model import PATH, encoded_model, read_model, shipped_model, write_model


def test_the_model_is_read_and_written_unchanged(tmp_path: Path) -> None:
    write_model(tmp_path / "model.json", shipped_model())
    assert (tmp_path / "model.json").read_bytes() == PATH.read_bytes()
    assert read_model(tmp_path / "model.json") == shipped_model()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"num_mdps": 1', '"num_mdps": 2', "not the model that it says"),
        ('"rule": "learnt"', '"rule": "paper"', "not the model that it says"),
        ('"tail": ', '"tail": -', "must be a finite number"),
        ('"no_bound": ', '"no_bonus": ', "coefficients must be those of bound, no_bound"),
        ('"version": "forecast', '"version": "other', "not the model that it says"),
        ('"intercept": ', '"intercept": "x', "not a forecast model"),
        ('"reach"', '"beach"', "reach is missing|does not know"),
    ],
)
def test_a_model_that_was_changed_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = PATH.read_text()
    assert old in text
    path = tmp_path / "model.json"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(StoreError, match=message) as raised:
        read_model(path)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_a_model_in_which_theory_is_turned_around_is_refused(tmp_path: Path) -> None:
    content = json.loads(PATH.read_text())
    content["content"]["algorithms"]["ppo"]["coefficients"]["bound"] = -0.1
    path = tmp_path / "model.json"
    path.write_text(json.dumps(content))
    with pytest.raises(StoreError, match="theory says"):
        read_model(path)


def test_too_few_families() -> None:
    rows = [Outcome(str(place), f"family {place % 2}", USUAL, 1000.0, 5e6) for place in range(10)]
    with pytest.raises(EfhorizonError, match=f"at least {LEAST_FAMILIES} families, and there are 2"):
        algorithm_model(rows)


def test_the_order_of_rows_makes_no_difference() -> None:
    rows = [Outcome(f"{p:02}", f"family {p % 4}", USUAL, 1000.0 * (p + 1), 5e6) for p in range(20)]
    assert algorithm_model(rows) == algorithm_model(rows[::-1])


def test_the_published_rows_give_the_shipped_model_byte_for_byte() -> None:
    """If the rows have grown: `make forecast`."""
    from efhorizon.evaluation.source import study_data

    data = study_data(forecast_model.ROWS)
    assert encoded_model(forecast_model.model_of(data)) == PATH.read_text()


def test_the_page_is_about_the_shipped_model() -> None:
    assert f"`{shipped_model().version}`" in forecast_model.PAGE.read_text()
