"""Shared fixtures; `support` is on the path, for worker processes too, so that all tests find its modules."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20230501)
