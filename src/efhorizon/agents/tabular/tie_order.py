"""How GORP on a table breaks ties between action sequences: `gorp/ties.py` explains the three rules.

Ties against GORP need its exact success at every later choice, and so for every m again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from efhorizon.agents.tabular.runs import InvalidSettingError, PreparedTable
from efhorizon.compiled import Integers
from efhorizon.gorp.decisions import TooManySequencesError
from efhorizon.gorp.exact_success import ExactSuccess, UndecidedError
from efhorizon.gorp.ties import TIES, Ties, lowest_first
from efhorizon.planning.problem import problem
from efhorizon.planning.return_units import NoLatticeError


class TieOrder(NamedTuple):
    """Which of several tied actions is taken. P pairs of a timeline."""

    is_uniform: bool  # one of the sequences is drawn; else the action of the lowest rank
    successors: Integers  # [P, A], pairs; [0, 0] where ranks are those of the actions' own numbers
    ranks: Integers  # [P, A] or [0, 0]


class TieBreaker:
    """A rule for ties on one table, for action sequences of one length."""

    def __init__(self, prepared: PreparedTable, k: int, ties: Ties) -> None:
        if ties not in TIES:
            raise InvalidSettingError(f"ties must be one of {', '.join(TIES)}, got {ties!r}")
        self._ties = ties
        if ties == "adversarial":
            self._problem = problem(prepared.mdp, policy=prepared.policy)
            try:
                self._success = ExactSuccess(self._problem, k, ties)
            except (NoLatticeError, TooManySequencesError) as error:
                raise _no_adversary(error) from None

    def order(self, m: int) -> TieOrder:
        nothing = np.zeros((0, 0), np.int32)
        if self._ties != "adversarial":
            return TieOrder(self._ties == "uniform", nothing, nothing)
        try:
            pairs, order = self._success.worst_order(m)
        except (NoLatticeError, UndecidedError) as error:
            raise _no_adversary(error) from None
        successors = self._problem.timeline.successors
        ranks = lowest_first(*successors.shape).astype(np.int32)  # a run that is elsewhere has failed
        ranks[pairs] = np.argsort(order, axis=1)
        return TieOrder(False, successors, ranks)


def _no_adversary(error: Exception) -> InvalidSettingError:
    return InvalidSettingError(f"GORP cannot be run with adversarial ties here: {error}")
