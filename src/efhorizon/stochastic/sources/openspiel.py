"""OpenSpiel's games for one player with explicit chance nodes (extra `openspiel`).

A state of the table is a place where the player moves. After an action, chance nodes are followed to all their
outcomes, each with its probability, until the player moves again or the game is over; the reward is the difference of
the player's returns. Actions that are not legal in a state end the episode there with the game's least utility, so that
no optimal policy takes them.

States with equal texts (`str(state)`) are taken for one state. A text can leave something out, so random episodes are
then played from the start, and what can follow each of their states is compared with the table. If something differs,
the game is searched again with whole histories as states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from efhorizon.errors import EfhorizonError
from efhorizon.stochastic.mdp import StochasticMDP, as_fraction
from efhorizon.stochastic.sources.explored import MAX_STATES, explored

PREFIX = "openspiel:"
_CHANCE, _PLAYER = -1, 0
_CHECKED_EPISODES = 50


class OpenSpielError(EfhorizonError):
    """A game that is not there, or not for one player with explicit chance."""


def from_openspiel(
    name: str,
    horizon: int | None = None,
    *,
    max_states: int = MAX_STATES,
    on_states: Callable[[int], None] | None = None,
) -> StochasticMDP:
    """The exact table of a game, by its name with parameters: `catch`, `2048`, `blackjack`, `catch(rows=5)`."""
    game = _game(name)
    length = horizon if horizon is not None else game.max_game_length()
    for key in (str, _history):
        search = _Search(game, key)
        mdp, texts = explored(
            search.initial(name),
            search.outcomes,
            game.num_distinct_actions(),
            length,
            metadata=_metadata(name, length),
            max_states=max_states,
            on_states=on_states,
        )
        if key is _history or _agrees(search, mdp, texts):
            return mdp
    raise AssertionError("histories agree with themselves")


class _Search:
    """The outcomes of states that are known by a text."""

    def __init__(self, game: Any, key: Callable[[Any], str]) -> None:
        self._game, self._key = game, key
        self._penalty = float(game.min_utility())
        self._kept: dict[str, Any] = {}

    def initial(self, name: str) -> dict[str, Fraction | float]:
        found: dict[str, Fraction | float] = {}
        for chance, state in _player_moves(self._game.new_initial_state(), Fraction(1)):
            if state.is_terminal():
                raise OpenSpielError(f"{name}: the game can be over before the player moves")
            text = self.text(state)
            found[text] = found.get(text, 0) + chance
        return found

    def text(self, state: Any) -> str:
        found = self._key(state)
        self._kept.setdefault(found, state)
        return found

    def outcomes(self, text: str, action: int) -> list[tuple[Fraction | float, float, str | None]]:
        return self.outcomes_of(self._kept[text], action)

    def outcomes_of(self, state: Any, action: int) -> list[tuple[Fraction | float, float, str | None]]:
        before = state.player_return(_PLAYER)
        if action not in state.legal_actions():
            return [(Fraction(1), self._penalty - before, None)]
        after = state.clone()
        after.apply_action(action)
        return [
            (chance, found.player_return(_PLAYER) - before, None if found.is_terminal() else self.text(found))
            for chance, found in _player_moves(after, Fraction(1))
        ]

    def start(self) -> Any:
        return self._game.new_initial_state()


def _agrees(search: _Search, mdp: StochasticMDP, texts: list[str]) -> bool:
    """Play random episodes: whether what can follow each state is what the table says."""
    number = {text: state for state, text in enumerate(texts)}
    rng = np.random.default_rng(0)
    for _ in range(_CHECKED_EPISODES):
        state = _drawn(search.start(), rng)
        for _ in range(mdp.horizon - 1):
            if state.is_terminal():
                break
            row = number.get(search.text(state))
            if row is None:
                return False
            for action in range(mdp.num_actions):
                found: dict[tuple[float, int], float] = {}
                for chance, reward, text in search.outcomes_of(state, action):
                    place = (reward, -1 if text is None else number.get(text, -2))
                    found[place] = found.get(place, 0.0) + float(chance)
                stored = {(reward, after): float(chance) for chance, reward, after in mdp.outcomes(row, action)}
                if stored.keys() != found.keys() or any(abs(stored[at] - found[at]) > 1e-12 for at in stored):
                    return False
            state.apply_action(int(rng.choice(state.legal_actions())))
            state = _drawn(state, rng)
    return True


def _drawn(state: Any, rng: np.random.Generator) -> Any:
    """The state in which the player moves next, with chance drawn."""
    while not state.is_terminal() and state.current_player() == _CHANCE:
        actions, chances = zip(*state.chance_outcomes(), strict=True)
        state.apply_action(int(rng.choice(actions, p=np.array(chances) / sum(chances))))
    return state


def _history(state: Any) -> str:
    return str(state.serialize())


def _metadata(name: str, length: int) -> dict[str, Any]:
    identifier = "".join(sign if sign.isalnum() or sign in "_.=-" else "_" for sign in name).strip("_")
    return {"id": f"openspiel_{identifier}-T{length}", "suite": "openspiel", "game": name, "frameskip": 1}


def games() -> list[str]:
    """The names of games for one player with explicit chance or none."""
    pyspiel = _pyspiel()
    wanted = []
    for kind in pyspiel.registered_games():
        has_modes = kind.chance_mode in (
            pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
            pyspiel.GameType.ChanceMode.DETERMINISTIC,
        )
        if has_modes and kind.min_num_players <= 1 and kind.default_loadable:
            wanted.append(kind.short_name)
    return sorted(wanted)


def _player_moves(state: Any, chance: Fraction | float) -> Iterator[tuple[Fraction | float, Any]]:
    """Where the player moves next, or the game is over, with its probability."""
    if state.is_terminal() or state.current_player() != _CHANCE:
        yield chance, state
        return
    for action, probability in state.chance_outcomes():
        if probability > 0:
            share = as_fraction(float(probability)) or float(probability)
            following = state.clone()
            following.apply_action(action)
            yield from _player_moves(following, chance * share)


def _game(name: str) -> Any:
    pyspiel = _pyspiel()
    try:
        game = pyspiel.load_game(name)
    except Exception as error:  # whatever OpenSpiel says of an unknown name is one line for the user
        raise OpenSpielError(
            f"{name}: OpenSpiel does not know this game ({str(error).splitlines()[0][:200]})"
        ) from None
    kind = game.get_type()
    if game.num_players() != 1:
        raise OpenSpielError(f"{name}: a game for {game.num_players()} players; only games for one become tables")
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise OpenSpielError(f"{name}: its chance is sampled, so its probabilities are not known")
    return game


def _pyspiel() -> Any:
    try:
        import pyspiel
    except ImportError:
        raise OpenSpielError("OpenSpiel is not installed: pip install 'efhorizon[openspiel]'") from None
    return pyspiel
