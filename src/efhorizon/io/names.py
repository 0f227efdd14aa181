"""Names from files: whether they may become the name of a file here."""

from __future__ import annotations

from efhorizon.errors import EfhorizonError

_MAX_BYTES = 200  # most file systems take 255; the rest is for endings such as "-start.png"
_SEPARATORS = frozenset("/\\")


class UnsafeNameError(EfhorizonError, ValueError):
    """A name that a file gave cannot be the name of a file here."""


def is_safe_name(name: object) -> bool:
    """Whether a name is a plain file name: not a path, not hidden, not an option, nothing that does not print."""
    return (
        isinstance(name, str)
        and 0 < len(name.encode(errors="replace")) <= _MAX_BYTES
        and name.isprintable()
        and name == name.strip()
        and name[0] not in ".-~"
        and not any(character in _SEPARATORS for character in name)
    )


def safe_name(name: object) -> str:
    """The name, if it is a plain file name; otherwise it is refused in one line."""
    if not isinstance(name, str) or not is_safe_name(name):
        raise UnsafeNameError(f"{str(name)[:80]!r} cannot be used as the name of a file")
    return name
