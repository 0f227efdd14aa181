"""Pictures of states that the user asked for; if a picture fails, the result is still printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from efhorizon.errors import EfhorizonError
from efhorizon.io.png import write_png
from efhorizon.mdp import TabularMDP
from efhorizon.suites.drawing import picture
from efhorizon.suites.simulator import Simulator


@dataclass(frozen=True)
class SavedPicture:
    """Where a picture is, or why there is none; neither if none was asked for."""

    image: Path | None = None
    failure: str | None = None


def saved(
    mdp: TabularMDP, state: int | None, file: Path | None, make_simulator: Callable[[], Simulator] | None = None
) -> SavedPicture:
    """Save the picture of a state as `file`, if that is given; see `picture` for the simulator."""
    if file is None:
        return SavedPicture()
    if state is None:
        return SavedPicture(failure=f"{file}: not written, there is no deciding state to draw")
    try:
        return SavedPicture(write_png(file, picture(mdp, state, make_simulator)))
    except Exception as error:  # whatever it is: the result that the picture goes with is not to be lost
        reason = error.strerror if isinstance(error, OSError) else error
        if not isinstance(error, EfhorizonError | OSError):
            reason = f"{type(error).__name__}: {error}"
        return SavedPicture(failure=f"{file}: not written, {reason or error}")
