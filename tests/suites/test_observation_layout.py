"""Observations of any Gymnasium space: stored exactly, readable by people, and the same numbers live and in a table."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from efhorizon import InvalidTableError, SimulatorError
from efhorizon.suites.observation_layout import (
    layout_as_json,
    layout_of_space,
    picture_of,
    readable,
    screen_of,
    stored_layout,
    value_of,
)
from efhorizon.suites.observation_reader import (
    MOST_VALUES,
    ObservationReader,
    image_for_network,
    is_image,
    reading_notes,
)

SPACES: list[gymnasium.Space[Any]] = [
    spaces.Discrete(7),
    spaces.Discrete(5, start=-2),
    spaces.Discrete(100_000),
    spaces.MultiDiscrete([3, 400, 2]),
    spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[0, 1], [-3, 7]]),
    spaces.MultiBinary((2, 3)),
    spaces.Box(-1, 1, (3,), np.float32),
    spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
    spaces.Box(-300, 300, (4,), np.int16),
    spaces.Box(0, 255, (5,), np.uint8),
    spaces.Box(0, 255, (9, 8, 3), np.uint8),
    spaces.Box(0, 1, (2,), np.bool_),
    spaces.Text(20),
    spaces.Dict({"b": spaces.Discrete(3), "a": spaces.Tuple((spaces.Box(0, 9, (2,), int), spaces.MultiBinary(2)))}),
]


def plain(value: Any) -> Any:
    """What a space gives, in the plain types of JSON."""
    if isinstance(value, dict):
        return {name: plain(own) for name, own in value.items()}
    if isinstance(value, tuple):
        return [plain(own) for own in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_what_is_stored_is_what_was_observed(space: gymnasium.Space[Any]) -> None:
    layout = layout_of_space(space)
    again = stored_layout({"observation": json.loads(json.dumps(layout_as_json(layout)))})
    assert again == layout
    space.seed(3)
    observed = [space.sample() for _ in range(20)]
    screens = [screen_of(layout, each) for each in observed]
    assert {screen.shape for screen in screens} == {screens[0].shape}
    assert [value_of(layout, screen) for screen in screens] == list(map(plain, observed))
    assert all(screen.dtype == np.uint8 and screen.ndim == 3 for screen in screens)


@pytest.mark.parametrize("space", [each for each in SPACES if not is_image(layout_of_space(each))], ids=str)
def test_a_live_observation_reads_as_the_stored_one(space: gymnasium.Space[Any]) -> None:
    layout = layout_of_space(space)
    space.seed(4)
    observed = [space.sample() for _ in range(30)]
    stored = np.stack([screen_of(layout, each) for each in observed])
    read = ObservationReader(layout, stored)
    vectors = read.vectors(stored)
    assert vectors.dtype == np.float32
    for observation, vector in zip(observed, vectors, strict=True):
        assert np.array_equal(read.vectors(screen_of(layout, observation)[None])[0], vector)
    different = {json.dumps(plain(each)) for each in observed}
    assert len(np.unique(vectors, axis=0)) == len(different)  # nothing that differs is lost


def test_numbers_that_a_network_reads() -> None:
    space = spaces.Dict(
        {"at": spaces.Box(0, 9, (2,), np.int64), "has": spaces.Discrete(3), "x": spaces.Box(-1, 1, (1,))}
    )
    layout = layout_of_space(space)
    observed = [{"at": [4, 0], "has": 2, "x": [0.5]}, {"at": [1, 2], "has": 0, "x": [-0.25]}]
    stored = np.stack([screen_of(layout, each) for each in observed])
    assert ObservationReader(layout, stored).vectors(stored).tolist() == [
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.5],
        [0.25, 0.5, 1.0, 0.0, 0.0, -0.25],
    ]
    assert readable(layout, stored[0]) == "{'at': [4, 0], 'has': 2, 'x': [0.5]}"


def test_of_very_many_values_only_those_that_occur_are_columns() -> None:
    layout = layout_of_space(spaces.Discrete(10**9))
    stored = np.stack([screen_of(layout, value) for value in (5, 10**8, 77)])
    assert ObservationReader(layout, stored).vectors(stored).tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert reading_notes(layout) == [
        "an observation has 1,000,000,000 possible values; agents see those that occur as one-hot vectors"
    ]
    assert reading_notes(layout_of_space(spaces.Discrete(500))) == []
    many = np.stack([screen_of(layout, value) for value in range(MOST_VALUES + 1)])
    with pytest.raises(InvalidTableError, match="8,193 values occur"):
        ObservationReader(layout, many)


def test_images_for_networks_and_for_people(rng: np.random.Generator) -> None:
    for shape, seen, is_seen_as_image in (
        ((84, 84, 4), (84, 84, 4), True),
        ((64, 64, 3), (64, 64, 3), True),
        ((210, 160, 3), (105, 80, 3), True),
        ((3, 48, 40), (48, 40, 3), True),
        ((400, 40), (400, 40, 1), True),  # shrinking it would make it too narrow
        ((35, 90, 3), None, False),
        ((7, 7, 3), None, False),
    ):
        layout = layout_of_space(spaces.Box(0, 255, shape, np.uint8))
        screen = screen_of(layout, rng.integers(0, 256, shape).astype(np.uint8))
        assert is_image(layout) == is_seen_as_image
        if is_seen_as_image:
            assert image_for_network(screen).shape == seen
            assert picture_of(layout, screen) is not None
    block = np.zeros((256, 256, 1), np.uint8)
    block[:2, :2, 0] = [[10, 20], [30, 40]]
    assert image_for_network(block)[0, 0, 0] == 25
    assert picture_of(layout, screen) is None  # 7 x 7 is no picture


@pytest.mark.parametrize(
    ("space", "observation", "why"),
    [
        (spaces.Discrete(3), 3, None),  # outside, but one byte holds it, so nothing is lost
        (spaces.Discrete(3), 300, "outside"),
        (spaces.Discrete(3), -1, "outside"),
        (spaces.Box(0, 1, (2,), np.uint8), [0.5, 1], "outside"),
        (spaces.Box(0, 1, (2,), np.float32), [0.5], "shape"),
        (spaces.Dict({"a": spaces.Discrete(2)}), {"b": 1}, "KeyError"),
    ],
)
def test_an_observation_outside_its_space_is_refused(space: Any, observation: Any, why: str | None) -> None:
    layout = layout_of_space(space)
    if why is None:
        screen_of(layout, observation)
    else:
        with pytest.raises(SimulatorError, match=f"observation_space.*{why}"):
            screen_of(layout, observation)


def test_infinite_observations_and_bad_layouts_are_refused() -> None:
    layout = layout_of_space(spaces.Box(-np.inf, np.inf, (1,), np.float64))
    stored = screen_of(layout, [1e300])[None]
    with pytest.raises(InvalidTableError, match="infinity"):
        ObservationReader(layout, stored).vectors(stored)
    for bad in ({"kind": "numbers", "dtype": "O", "shape": [1]}, {"kind": "x"}, {"kind": "numbers", "shape": [1]}):
        with pytest.raises(InvalidTableError, match="what its observations are"):
            stored_layout({"observation": bad})


def test_a_space_that_nobody_knows_is_read_as_text() -> None:
    space = spaces.Sequence(spaces.Discrete(3))
    layout = layout_of_space(space)
    assert readable(layout, screen_of(layout, (1, 2))) == "'[1, 2]'"
    long_texts = ["x" * 500, "x" * 499 + "y"]
    assert len({screen_of(layout, text).tobytes() for text in long_texts}) == 2
