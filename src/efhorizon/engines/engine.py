"""One interface for pools of workers, wherever they run.

Tasks go out in order and their results come back in order, whichever worker was faster, so what is made from them does
not depend on how many workers there are, nor on where they are.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

_UsedT = TypeVar("_UsedT", covariant=True)  # what a worker makes and keeps: it does the tasks


class Engine(Protocol[_UsedT]):
    """Takes tasks, each a function of what a worker has made, and gives their results in order."""

    @property
    def has_room(self) -> bool:
        """Whether a worker can take another task."""
        ...

    def submit(self, task: Callable[[_UsedT], Any]) -> None: ...

    def next_result(self) -> Any:
        """The result of the oldest task; waits for it."""
        ...

    def memory(self) -> int:
        """Resident bytes of all workers, as far as they are known here."""
        ...

    def close(self) -> None: ...


def failure_text(error: Exception) -> str:
    """What went wrong in the environment, and where."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(where.filename)}:{where.lineno}"
    return f"the environment failed: {type(error).__name__}: {error} ({place})"
