"""Stochastic MDPs as tables: a few outcomes for each pair of a state and an action.

    outcome = (probability, reward, successor)        outcomes of pair (s, a): offsets[s A + a] .. offsets[s A + a + 1]

Successor -1 ends the episode. Legend: S states, A actions, N outcomes, V distinct probabilities, R distinct rewards,
I initial states. Probabilities and rewards are codes into short tables of values, so an outcome takes 6 to 8 bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import FrozenInstanceError
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efhorizon.errors import InvalidTableError
from efhorizon.mdp import MAX_HORIZON, TabularMDP

_MAX_DENOMINATOR = 10**6  # of a probability that is read as a fraction
_SUM_TOLERANCE = 1e-9  # of the probabilities of one pair that are no fractions
_MAX_VALUES = 1 << 32
Outcome = tuple[Fraction | float, float, int]


class StochasticMDP:
    """A frozen, validated table with chance.

    `is_exact`: every probability is a fraction with a small denominator, and those of each pair sum to exactly 1; then
    ties between values are decided exactly.

    >>> half = Fraction(1, 2)
    >>> mdp = StochasticMDP.from_outcomes([[[(half, 1.0, -1), (half, 0.0, 0)]]], horizon=3)
    >>> mdp.num_states, mdp.num_actions, mdp.num_outcomes, mdp.is_exact
    (1, 1, 2, True)
    """

    num_states: int
    num_actions: int
    horizon: int
    offsets: NDArray[np.int64]  # [S A + 1]
    successors: NDArray[np.int32]  # [N]
    reward_codes: NDArray[np.unsignedinteger[Any]]  # [N]
    reward_values: NDArray[np.float64]  # [R]
    probability_codes: NDArray[np.unsignedinteger[Any]]  # [N]
    probability_values: NDArray[np.float64]  # [V]
    initial_states: NDArray[np.int32]  # [I]
    initial_probabilities: NDArray[np.float64]  # [I]
    base_states: NDArray[np.int32] | None  # [S], of the table that this one was made from
    previous_actions: NDArray[np.int32] | None  # [S], with sticky actions; -1: none
    metadata: Mapping[str, Any]
    is_exact: bool

    def __init__(
        self,
        shape: tuple[int, int],
        outcomes: Mapping[str, ArrayLike],
        horizon: int,
        *,
        initial: tuple[ArrayLike, ArrayLike] | None = None,
        base_states: ArrayLike | None = None,
        previous_actions: ArrayLike | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Build and validate a table of `shape` (states, actions).

        `outcomes` holds the arrays offsets, successors, reward_codes, reward_values, probability_codes and
        probability_values. `initial` is (states, probabilities); by default episodes begin in state 0.
        """
        num_states, num_actions = shape
        if num_states < 1 or num_actions < 1 or num_states > np.iinfo(np.int32).max:
            raise InvalidTableError(f"a table needs at least one state and one action, got {shape}")
        if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or not 1 <= horizon <= MAX_HORIZON:
            raise InvalidTableError(f"horizon must be an integer from 1 to {MAX_HORIZON:,}, got {horizon!r}")
        arrays = _checked_outcomes(shape, outcomes)
        states, chances = _checked_initial(initial, num_states)
        fractions = [as_fraction(value) for value in arrays["probability_values"].tolist()]
        starts = [fraction for value in chances.tolist() if (fraction := as_fraction(value)) is not None]
        exact = _check_sums(arrays, fractions) and len(starts) == len(chances) and sum(starts, Fraction(0)) == 1
        values: dict[str, Any] = {
            "num_states": int(num_states),
            "num_actions": int(num_actions),
            "horizon": int(horizon),
            **arrays,
            "initial_states": _frozen(states),
            "initial_probabilities": _frozen(chances),
            "base_states": _origin(base_states, num_states, "base_states"),
            "previous_actions": _origin(previous_actions, num_states, "previous_actions"),
            "metadata": MappingProxyType(dict(metadata or {})),
            "is_exact": bool(exact),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Sequence[Sequence[Sequence[Outcome]]],
        horizon: int,
        *,
        initial: Mapping[int, Fraction | float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> StochasticMDP:
        """From nested lists: outcomes[s][a] is a list of (probability, reward, successor).

        Equal outcomes of a pair become one; outcomes of probability 0 are left out.
        """
        num_actions = len(outcomes[0]) if outcomes else 0
        flat: list[tuple[Fraction | float, float, int]] = []
        offsets = [0]
        for state, row in enumerate(outcomes):
            if len(row) != num_actions:
                raise InvalidTableError(f"state {state} has {len(row)} actions, state 0 has {num_actions}")
            for pair in row:
                merged: dict[tuple[float, int], Fraction | float] = {}
                for probability, reward, successor in pair:
                    if probability:
                        known = merged.get((float(reward), int(successor)), Fraction(0))
                        merged[float(reward), int(successor)] = _sum(known, probability)
                flat.extend((chance, reward, successor) for (reward, successor), chance in merged.items())
                offsets.append(len(flat))
        chances = [float(chance) for chance, _, _ in flat]
        rewards, reward_codes = np.unique([reward for _, reward, _ in flat], return_inverse=True)
        probabilities, probability_codes = np.unique(chances, return_inverse=True)
        return cls(
            (len(outcomes), num_actions),
            {
                "offsets": np.array(offsets, np.int64),
                "successors": np.array([successor for _, _, successor in flat], np.int64),
                "reward_codes": _codes(reward_codes, len(rewards)),
                "reward_values": rewards,
                "probability_codes": _codes(probability_codes, len(probabilities)),
                "probability_values": probabilities,
            },
            horizon,
            initial=None if initial is None else (list(initial), [float(chance) for chance in initial.values()]),
            metadata=metadata,
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __repr__(self) -> str:
        name = self.metadata.get("id", "unnamed")
        return (
            f"StochasticMDP({name}: {self.num_states} states, {self.num_actions} actions, "
            f"{self.num_outcomes} outcomes, horizon {self.horizon})"
        )

    @property
    def num_outcomes(self) -> int:
        return len(self.successors)

    @property
    def sticky(self) -> float | None:
        """The chance that the previous action is repeated, where the table was made with sticky actions."""
        value = self.metadata.get("sticky")
        return None if value is None else float(value)

    @property
    def is_deterministic(self) -> bool:
        return self.num_outcomes == self.num_states * self.num_actions and len(self.initial_states) == 1

    def probability_fractions(self) -> list[Fraction]:
        """The distinct probabilities [V]; exact where `is_exact`."""
        return [as_fraction(value) or Fraction(value) for value in self.probability_values.tolist()]

    def outcomes(self, state: int, action: int) -> list[tuple[Fraction, float, int]]:
        """(probability, reward, successor) of one pair."""
        pair = state * self.num_actions + action
        span = slice(int(self.offsets[pair]), int(self.offsets[pair + 1]))
        chances = [self.probability_values[code].item() for code in self.probability_codes[span]]
        return [
            (as_fraction(chance) or Fraction(chance), float(self.reward_values[code]), int(successor))
            for chance, code, successor in zip(chances, self.reward_codes[span], self.successors[span], strict=True)
        ]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that is stored, by name."""
        found: dict[str, NDArray[Any]] = {
            "offsets": self.offsets,
            "successors": self.successors,
            "reward_codes": self.reward_codes,
            "reward_values": self.reward_values,
            "probability_codes": self.probability_codes,
            "probability_values": self.probability_values,
            "initial_states": self.initial_states,
            "initial_probabilities": self.initial_probabilities,
        }
        origins = {"base_states": self.base_states, "previous_actions": self.previous_actions}
        return found | {name: array for name, array in origins.items() if array is not None}

    def with_horizon(self, horizon: int) -> StochasticMDP:
        """The same table with another horizon; its name says so."""
        if horizon > self.horizon and self.metadata.get("cut_at_horizon"):
            raise InvalidTableError(f"this table was built for {self.horizon} steps; build it again for {horizon}")
        changes = {} if horizon == self.horizon else {"id": f"{self.metadata.get('id', 'table')}-T{horizon}"}
        return self._changed(horizon, changes)

    def with_metadata(self, **changes: Any) -> StochasticMDP:
        return self._changed(self.horizon, changes)

    def _changed(self, horizon: int, changes: Mapping[str, Any]) -> StochasticMDP:
        return StochasticMDP(
            (self.num_states, self.num_actions),
            self.arrays(),
            horizon,
            initial=(self.initial_states, self.initial_probabilities),
            base_states=self.base_states,
            previous_actions=self.previous_actions,
            metadata={**self.metadata, **changes},
        )

    def fingerprint(self) -> str:
        """A hash of the table as it is numbered."""
        digest = hashlib.sha256(f"efhorizon-stochastic-1:{self.num_states}:{self.num_actions}:{self.horizon}".encode())
        for name, array in sorted(self.arrays().items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def as_fraction(value: float) -> Fraction | None:
    """The fraction with a small denominator that this float is the rounding of, or None."""
    found = Fraction(value).limit_denominator(_MAX_DENOMINATOR)
    if float(found) == value or (value != 0 and abs(float(found) / value - 1) < 4e-16):
        return found
    return None


def from_deterministic(mdp: TabularMDP) -> StochasticMDP:
    """A deterministic table as a stochastic one: one outcome for each pair."""
    num_pairs = mdp.num_states * mdp.num_actions
    return StochasticMDP(
        (mdp.num_states, mdp.num_actions),
        {
            "offsets": np.arange(num_pairs + 1, dtype=np.int64),
            "successors": mdp.transitions.reshape(-1),
            "reward_codes": mdp.reward_codes.reshape(-1),
            "reward_values": mdp.reward_values,
            "probability_codes": np.zeros(num_pairs, np.uint8),
            "probability_values": np.ones(1),
        },
        mdp.horizon,
        base_states=np.arange(mdp.num_states, dtype=np.int32),
        metadata=mdp.metadata,
    )


def _sum(first: Fraction | float, second: Fraction | float) -> Fraction | float:
    """Floats that stand for fractions are added as such: three times a third is 1."""
    parts = [part if isinstance(part, Fraction) else as_fraction(float(part)) for part in (first, second)]
    if parts[0] is None or parts[1] is None:
        return float(first) + float(second)
    return parts[0] + parts[1]


def _codes(codes: NDArray[Any], count: int) -> NDArray[Any]:
    return codes.reshape(-1).astype(np.min_scalar_type(max(0, count - 1)))


def _checked_outcomes(shape: tuple[int, int], outcomes: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
    num_states, num_actions = shape
    offsets = np.asarray(outcomes["offsets"])
    successors = np.asarray(outcomes["successors"])
    if offsets.shape != (num_states * num_actions + 1,) or offsets.dtype.kind not in "iu":
        raise InvalidTableError(f"offsets must be integers [{num_states * num_actions + 1}], got {offsets.shape}")
    if successors.ndim != 1 or successors.dtype.kind not in "iu" or not len(successors):
        raise InvalidTableError("successors must be integers [outcomes], at least one")
    offsets = offsets.astype(np.int64)
    if offsets[0] != 0 or int(offsets[-1]) != len(successors) or (np.diff(offsets) < 1).any():
        raise InvalidTableError("offsets must ascend from 0 to the number of outcomes: each pair has at least one")
    if int(successors.min()) < -1 or int(successors.max()) >= num_states:
        raise InvalidTableError(f"a successor lies outside -1 .. {num_states - 1}")
    found: dict[str, NDArray[Any]] = {"offsets": offsets, "successors": successors.astype(np.int32)}
    for name in ("reward", "probability"):
        codes, values = np.asarray(outcomes[f"{name}_codes"]), np.asarray(outcomes[f"{name}_values"], np.float64)
        if codes.shape != successors.shape or codes.dtype.kind != "u" or values.ndim != 1:
            raise InvalidTableError(f"{name} codes must be unsigned integers, one for each outcome")
        if int(codes.max()) >= len(values) or not np.isfinite(values).all():
            raise InvalidTableError(f"{name} codes must lie below the number of values, which must be finite")
        found[f"{name}_codes"], found[f"{name}_values"] = codes, values
    chances = found["probability_values"]
    if (chances <= 0).any() or (chances > 1 + _SUM_TOLERANCE).any():
        raise InvalidTableError("probabilities must lie above 0 and not above 1")
    if (np.abs(found["reward_values"]) > np.finfo(np.float32).max).any():
        raise InvalidTableError("rewards must be finite in float32")
    return {name: _frozen(array) for name, array in found.items()}


def _checked_initial(
    initial: tuple[ArrayLike, ArrayLike] | None, num_states: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    if initial is None:
        return np.zeros(1, np.int32), np.ones(1)
    states, chances = np.asarray(initial[0]), np.asarray(initial[1], np.float64)
    if states.ndim != 1 or states.dtype.kind not in "iu" or states.shape != chances.shape or not len(states):
        raise InvalidTableError("the initial states must be integers, each with a probability")
    if int(states.min()) < 0 or int(states.max()) >= num_states or len(np.unique(states)) != len(states):
        raise InvalidTableError(f"the initial states must be different ones of 0 .. {num_states - 1}")
    if not np.isfinite(chances).all() or (chances <= 0).any() or abs(float(chances.sum()) - 1) > _SUM_TOLERANCE:
        raise InvalidTableError(f"the initial probabilities sum to {float(chances.sum()):.9g}, not 1")
    order = np.argsort(states)
    return states[order].astype(np.int32), chances[order]


def _check_sums(arrays: Mapping[str, NDArray[Any]], fractions: Sequence[Fraction | None]) -> bool:
    """Refuse pairs whose probabilities do not sum to 1; whether all are fractions that do so exactly."""
    offsets, codes, values = arrays["offsets"], arrays["probability_codes"], arrays["probability_values"]
    sums = np.add.reduceat(values[codes], offsets[:-1])
    wrong = np.flatnonzero(np.abs(sums - 1) > _SUM_TOLERANCE)
    if len(wrong):
        raise InvalidTableError(f"the probabilities of pair {int(wrong[0])} sum to {float(sums[wrong[0]]):.9g}, not 1")
    if any(fraction is None for fraction in fractions):
        return False
    # with a common denominator, sums of numerators are exact integers
    known = [fraction for fraction in fractions if fraction is not None]
    denominator = int(np.lcm.reduce(np.array([fraction.denominator for fraction in known], dtype=object)))
    if denominator > 2**40:
        return False
    numerators = np.array([int(fraction * denominator) for fraction in known], np.int64)
    return bool((np.add.reduceat(numerators[codes], offsets[:-1]) == denominator).all())


def _origin(array: ArrayLike | None, num_states: int, name: str) -> NDArray[np.int32] | None:
    if array is None:
        return None
    found = np.asarray(array)
    if found.shape != (num_states,) or found.dtype.kind not in "iu":
        raise InvalidTableError(f"{name} must be integers [{num_states}], got {found.dtype} {found.shape}")
    return _frozen(found.astype(np.int32))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array
