"""Which arrays cannot be one table: said before anything is read."""

from __future__ import annotations

import numpy as np
import pytest

from efhorizon.errors import InvalidTableError
from efhorizon.io.shapes import check_shapes


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (3, 3, 3)])
def test_a_table_has_states_and_actions(shape: tuple[int, ...]) -> None:
    arrays = {"transitions": np.zeros(shape, np.int32), "reward_codes": np.zeros(shape, np.uint8)}
    with pytest.raises(InvalidTableError, match="both at least 1"):
        check_shapes(arrays | {"reward_values": np.zeros(1)})


def test_one_state_and_one_action_are_enough() -> None:
    arrays = {"transitions": np.zeros((1, 1), np.int32), "reward_codes": np.zeros((1, 1), np.uint8)}
    check_shapes(arrays | {"reward_values": np.zeros(1)})
