"""Without its package, Gymnax is one line that says what to install; everything else works."""

from __future__ import annotations

import sys

import pytest

from efhorizon import catalog
from efhorizon.suites.gymnax import GYMNAX, BatchedGymnax, GymnaxSimulator, _rules, picture_of_screen
from efhorizon.suites.simulator import MissingExtraError


@pytest.mark.parametrize("kind", [GymnaxSimulator, BatchedGymnax])
def test_a_missing_package_is_one_line(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    _rules.cache_clear()
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'efhorizon\[gymnax\]'"):
        kind("Catch-bsuite")


def test_names_are_known_without_it() -> None:
    entry = catalog.entry("gymnax-Breakout-MinAtar")
    assert (entry.suite, entry.game, entry.num_actions) == ("gymnax", "Breakout-MinAtar", 3)
    assert GYMNAX.action_names(entry.game) == ("stay", "left", "right")


def test_later_planes_lie_above_earlier_ones() -> None:
    import numpy as np

    screen = np.zeros((2, 3, 4), np.uint8)
    screen[0, 1, :2] = 1
    picture = picture_of_screen(screen)
    assert picture.shape[2] == 3
    scale = picture.shape[0] // 2
    assert picture[0, scale].tolist() == [230, 80, 60]
    assert not picture[0, 0].any()
