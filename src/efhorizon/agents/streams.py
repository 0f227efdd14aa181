"""Random numbers in compiled loops: one stream for each run, and what is drawn from it.

SplitMix64 with a different odd increment for each run (Steele, Lea and Flood 2014): `words` holds its state and its
increment, uint64 [2], so results do not depend on how runs are shared out among threads. A draw below n multiplies 32
random bits by n: each outcome's chance is off by less than 2^-32, far below what runs can show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.compiled import Floats, Words, compiled

_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32), np.uint64(11)
_FLOAT_UNIT = 2.0**-53
_ALTERNATING = np.uint64(0xAAAAAAAAAAAAAAAA)
_MIN_BIT_CHANGES = 24  # of an increment, as in Java's SplittableRandom


def streams(rng: np.random.Generator, num_runs: int) -> NDArray[np.uint64]:
    """A random stream for each run [N, 2]: its state and its increment."""
    words = rng.integers(0, 2**64, size=(num_runs, 2), dtype=np.uint64)
    words[:, 1] |= np.uint64(1)
    changes = np.unpackbits((words[:, 1] ^ (words[:, 1] >> np.uint64(1))).view(np.uint8).reshape(num_runs, 8), axis=1)
    words[changes.sum(axis=1) < _MIN_BIT_CHANGES, 1] ^= _ALTERNATING
    return words


@compiled
def mixed(word: Any) -> Any:
    """The output function of SplitMix64."""
    word = (word ^ (word >> _S30)) * _MIX_1
    word = (word ^ (word >> _S27)) * _MIX_2
    return word ^ (word >> _S31)


@compiled
def drawn_below(words: Words, limit: int) -> Any:
    """A uniform integer in 0 .. limit - 1, for limits below 2^32."""
    words[0] += words[1]
    return np.int64(((mixed(words[0]) >> _S32) * np.uint64(limit)) >> _S32)


@compiled
def drawn_action(words: Words, time: int, state: int, num_actions: int, probabilities: Floats) -> int:
    """An action of the exploration policy; one with probability 0 is never drawn, however sums are rounded."""
    if not len(probabilities):
        any_action: int = drawn_below(words, num_actions)
        return any_action
    row = probabilities[min(time, len(probabilities) - 1), state]
    words[0] += words[1]
    left = np.float64(mixed(words[0]) >> _S11) * _FLOAT_UNIT
    last = 0
    for action in range(num_actions):
        if row[action] > 0:
            last = action
            left -= row[action]
            if left < 0:
                break
    return last
