"""Pictures of the states of a table, drawn by its environment while the table is built.

Later, a table may be all that is left of an environment of one's own, and a file may not say which code to import. So
pictures are kept beside the observations, of tables with at most 2,000 states; those of larger tables are drawn when
they are asked for, where the environment is registered with Gymnasium or the user names it (suites/drawing.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efhorizon.errors import EfhorizonError
from efhorizon.mdp import TabularMDP
from efhorizon.suites import registry
from efhorizon.suites.drawing import PICTURE_FORMAT, PICTURE_NOTE, RGB, TEXT
from efhorizon.suites.rendering import Drawing

MOST_STATES = 2_000
MOST_BYTES = 256 << 20  # before compression
_WIDTHS = (320, 160)  # pixels, at most: the second where the first takes too much space


def with_pictures(
    mdp: TabularMDP, make_simulator: Callable[[], Any], on_message: Callable[[str], None] = lambda message: None
) -> TabularMDP:
    """The table with a picture of each state, where its suite draws them and the environment can; else as it is."""
    suite = registry.suite(mdp.metadata.get("suite"))
    if not suite.draws_when_built or mdp.states is None:
        return mdp
    if mdp.num_states > MOST_STATES:
        return mdp.with_metadata(**{PICTURE_NOTE: f"the table has more than {MOST_STATES:,} states"})
    on_message(f"{mdp.metadata.get('id')}: drawing {mdp.num_states:,} states")
    try:
        drawings = _drawings(mdp, make_simulator)
        pictures, mapping = _distinct(drawings)
    except EfhorizonError as error:
        return mdp.with_metadata(**{PICTURE_NOTE: str(error)})
    stored_as = TEXT if isinstance(drawings[0], str) else RGB
    return TabularMDP(
        mdp.transitions,
        (mdp.reward_codes, mdp.reward_values),
        mdp.horizon,
        screens=mdp.screens,
        screen_mapping=mdp.screen_mapping,
        base_states=mdp.base_states,
        pictures=pictures,
        picture_mapping=mapping,
        states=mdp.states,
        unexplored=mdp.unexplored,
        metadata={**mdp.metadata, PICTURE_FORMAT: stored_as},
    )


def _drawings(mdp: TabularMDP, make_simulator: Callable[[], Any]) -> list[Drawing]:
    assert mdp.states is not None
    found: list[Drawing] = []
    with contextlib.closing(make_simulator()) as simulator:
        for state in range(mdp.num_states):
            simulator.set_state(mdp.states[state])
            drawing: Drawing = simulator.drawing()
            found.append(drawing if isinstance(drawing, str) else _shrunk(drawing, mdp.num_states))
    return found


def _shrunk(image: NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
    """Every n-th pixel, so that as many pictures as these take little space."""
    for width in _WIDTHS:
        step = -(-max(image.shape[:2]) // width)
        small = image[::step, ::step]
        if small.size * count <= MOST_BYTES:
            break
    return small


def _distinct(drawings: list[Drawing]) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The drawings without repetitions [P, H, W, C], and which of them each state shows."""
    longest = max(len(each.encode()) for each in drawings if isinstance(each, str)) if _are_texts(drawings) else 0
    images = [_text_image(each, longest) if isinstance(each, str) else each for each in drawings]
    if len({image.shape for image in images}) > 1:
        raise EfhorizonError("the environment draws pictures of different sizes")
    numbers: dict[bytes, int] = {}
    mapping = [numbers.setdefault(image.tobytes(), len(numbers)) for image in images]
    _, first = np.unique(mapping, return_index=True)
    return np.stack([images[state] for state in first.tolist()]), np.array(mapping, np.int32)


def _are_texts(drawings: list[Drawing]) -> bool:
    kinds = {isinstance(each, str) for each in drawings}
    if len(kinds) > 1:
        raise EfhorizonError("the environment draws pictures of some states and text of others")
    return kinds == {True}


def _text_image(text: str, longest: int) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode().ljust(longest, b"\0"), np.uint8).reshape(1, -1, 1)
