"""Errors whose message is one clear line for the user; the command line prints them without a traceback."""

from __future__ import annotations


class EfhorizonError(Exception):
    """Base of every error that a user can cause or fix."""


class InvalidTableError(EfhorizonError, ValueError):
    """A table breaks its contract: a wrong shape, a transition out of range, a reward that is not finite."""


class StoreError(EfhorizonError):
    """A file or store cannot be read or written, or its content is not what its checksum says."""
