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


def test_growth_that_slows_is_expected_to_go_on_slowing() -> None:
    """At the growth of the last three layers, 40 more would take years: 1.5^40 is 20 million."""
    sizes = (1, 8, 48, 192, 512, 1024, 1536, 1792)
    starts = tuple(sum(sizes[:n]) for n in range(len(sizes) + 1))
    seen = Progress(
        num_actions=2,
        depth=len(sizes) - 1,
        num_states=starts[-1],
        num_expanded=starts[-2],
        num_pairs=2 * starts[-2],
        seconds=10.0,
        memory=0,
        layer_starts=starts,
    )
    growth, slowing = (1792 / 512) ** (1 / 3), (1792 / 512 * 8 / 512) ** (1 / 18)  # over three layers; half of that
    to_come = sum(1792 * growth**n * slowing ** (n * (n + 1) / 2) for n in range(41))
    seconds = to_come / starts[-2] * 10
    assert (
        time_left(catalogue_target("freeway_10_fs30", 48), seen) == f"about {seconds:.0f} seconds left at this growth"
    )
    assert 30 < seconds < 50


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
