"""The pictures of an analysis: the start state, the states that make it hard, an optimal episode."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from efhorizon.errors import EfhorizonError
from efhorizon.io.png import encoded_png
from efhorizon.mdp import TabularMDP
from efhorizon.planning.problem import Problem
from efhorizon.study.analysis_record import EpisodeSheet
from efhorizon.study.answer_record import ReasonFigures, ReasonScene
from efhorizon.study.scenes import optimal_episode, shrunk, sprite_sheet
from efhorizon.suites.action_names import action_names
from efhorizon.suites.drawing import observation_text, picture, text_drawing

Pictures = dict[str, bytes]  # PNG files by name, seen from the results folder


def drawn(mdp: TabularMDP, state: int, name: str, pictures: Pictures) -> str | None:
    """Draw a state and return the picture's name; None if the table has nothing that can be drawn."""
    try:
        image = shrunk(picture(mdp, state), max_width=2 * 160)
    except EfhorizonError:
        return None  # an observation that is not a picture, or a suite that is not installed
    file = f"pictures/{name}.png"
    pictures[file] = encoded_png(image)
    return file


def picture_note(mdp: TabularMDP) -> str | None:
    """Why a table's states cannot be drawn; None if they can."""
    try:
        picture(mdp, 0)
    except EfhorizonError as error:
        return str(error)
    return None


def told(mdp: TabularMDP, state: int) -> tuple[str | UnsetType, str | UnsetType]:
    """What is observed in a state, and what its environment draws of it as text, where a table has them."""
    try:
        return observation_text(mdp, state) or UNSET, text_drawing(mdp, state) or UNSET
    except EfhorizonError:
        return UNSET, UNSET


def reason_scenes(mdp: TabularMDP, why: Sequence[ReasonFigures], name: str, pictures: Pictures) -> list[ReasonScene]:
    """What the states of the reasons look like; a state that two reasons share is drawn once."""
    scenes: dict[int, ReasonScene] = {}
    for number, reason in enumerate(why, 1):
        if reason.state not in scenes:
            observation, drawing = told(mdp, reason.state)
            scenes[reason.state] = ReasonScene(
                picture=drawn(mdp, reason.state, f"{name}-reason-{number}", pictures),
                observation=observation,
                drawing=drawing,
            )
    return [scenes[reason.state] for reason in why]


def episode_sheet(given: Problem, name: str, pictures: Pictures) -> EpisodeSheet | None:
    """Draw an optimal episode; None if it cannot be drawn."""
    mdp = given.mdp
    if picture_note(mdp) is not None:
        return None
    episode = optimal_episode(given.timeline, given.optimal)
    try:
        sheet = sprite_sheet(mdp, episode.states)
    except EfhorizonError:
        return None
    file = f"pictures/{name}.png"
    pictures[file] = encoded_png(sheet.image)
    names = action_names(mdp.metadata, mdp.num_actions)
    return EpisodeSheet(
        picture=file,
        frames=sheet.frames,
        columns=sheet.columns,
        width=sheet.width,
        height=sheet.height,
        actions=[names[action] for action in episode.actions],
        rewards=list(episode.rewards),
    )
