"""Fixtures for tests of agents."""

from __future__ import annotations

import pytest

from efhorizon import TabularMDP
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target


@pytest.fixture(scope="session")
def gridworld(tmp_path_factory: pytest.TempPathFactory) -> TabularMDP:
    """The table of MiniGrid-Empty-5x5-v0."""
    pytest.importorskip("minigrid")
    options = Options(out=tmp_path_factory.mktemp("tables"), num_workers=1, verify_episodes=0)
    mdp = build(catalogue_target("MiniGrid-Empty-5x5-v0"), options).mdp
    assert mdp is not None
    return mdp
