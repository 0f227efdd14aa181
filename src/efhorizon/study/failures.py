"""Why something went wrong, in one line."""

from __future__ import annotations

import os
import traceback

from efhorizon.errors import EfhorizonError


def reason_of(error: BaseException) -> str:
    """An error's own words where it is one of ours; else its kind and place in the code, so that it can be found."""
    text = " ".join(str(error).split())
    if isinstance(error, EfhorizonError):
        return text
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else text
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"unexpected {type(error).__name__}: {text}{place}"
