"""What a build says about the time that is left."""

from __future__ import annotations

import pytest

from efhorizon.build.explore import Progress
from efhorizon.build.outlook import progress_line, time_left
from efhorizon.build.target import catalogue_target


@pytest.mark.parametrize(
    ("horizon", "num_states", "seconds"),
    [
        (4, 15, 10),  # the last layer: 5 states of 15, 2 actions each, one pair a second
        (4, 31, 10),  # states at the horizon are not expanded, however many have been met
        (5, 20, 42),  # one more layer, of 16 states if it doubles as those before did
        (5, 35, 50),  # 20 states of it have been met already
        (6, 20, 106),
    ],
)
def test_time_left_counts_the_states_that_are_to_be_expanded(horizon: int, num_states: int, seconds: int) -> None:
    target = catalogue_target("freeway_10_fs30", horizon)
    assert time_left(target, progress(num_states)) == f"about {seconds} seconds left at this growth"


@pytest.mark.parametrize(
    ("horizon", "expanded"),
    [
        (4, "10 of 15 states expanded"),  # the other 20 are at the horizon
        (5, "10 of 35 states expanded"),
    ],
)
def test_states_at_the_horizon_do_not_count(horizon: int, expanded: str) -> None:
    assert expanded in progress_line(catalogue_target("freeway_10_fs30", horizon), progress(35))


def progress(num_states: int) -> Progress:
    """Ten states of five layers are expanded."""
    return Progress(
        num_actions=2,
        depth=3,
        num_states=num_states,
        num_expanded=10,
        num_pairs=20,
        seconds=20.0,
        memory=0,
        layer_starts=(0, 1, 3, 7, 15),
    )
