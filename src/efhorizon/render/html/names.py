"""File names for any MDP name: readable, safe on every file system, and different for different names."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

_UNSAFE = re.compile(r"[^A-Za-z0-9_.=-]+")
_MAX_READABLE = 60


def slug(name: str) -> str:
    """A file name without its ending. The digest makes it unique if the readable part is not."""
    readable = _UNSAFE.sub("-", name)[:_MAX_READABLE].strip(".-")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{readable or 'mdp'}-{digest}"


def page_link(name: str) -> str:
    """Where the page of an MDP is, seen from the site's front page."""
    return quote(f"mdps/{slug(name)}.html")
