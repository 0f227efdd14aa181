"""Tables that several tests of bounds need."""

from __future__ import annotations

import pytest

from efhorizon import TabularMDP
from efhorizon.build.pipeline import Options, build
from efhorizon.build.target import catalogue_target


@pytest.fixture(scope="session")
def minigrid_tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TabularMDP]:
    pytest.importorskip("minigrid")
    tables = {}
    for name in ("MiniGrid-Empty-5x5-v0", "MiniGrid-KeyCorridorS3R1-v0"):
        mdp = build(catalogue_target(name), Options(out=tmp_path_factory.mktemp("tables"), num_workers=1)).mdp
        assert mdp is not None
        tables[name] = mdp
    return tables
