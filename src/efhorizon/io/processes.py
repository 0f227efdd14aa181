"""Starting worker processes that do not run the user's script again.

A fresh process imports the script that is being run, in case it needs something defined there. A script that builds a
table and is not written for that would build it again, in every worker. Workers of this package need nothing from it,
unless the script itself registers environments with Gymnasium.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pickle import PicklingError
from types import ModuleType
from typing import Any

import gymnasium

_lock = threading.Lock()


def start(process: Any) -> None:
    """Start a process of a "spawn" context; one that does need the script, such as a class of it, gets it."""
    if any(getattr(spec.entry_point, "__module__", None) == "__main__" for spec in gymnasium.registry.values()):
        process.start()
        return
    try:
        with _hidden_script():
            process.start()
    except (PicklingError, AttributeError):
        process.start()


@contextmanager
def _hidden_script() -> Iterator[None]:
    """For a moment the main module has no name or file from which it could be imported again."""
    with _lock:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = script
