"""File names of pages."""

from __future__ import annotations

import re

import pytest

from efhorizon.render.html.names import page_link, slug

NAMES = [
    "freeway_10_fs30",
    "Freeway_10_fs30",
    "a/b",
    "a\\b",
    "..",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    'quote"s and spaces',
    "é\N{SNOWMAN}",
    "",
    "\ud800",
    "nul\x00",
    "CON",
    "x" * 5000,
]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_a_safe_file_name(name: str) -> None:
    made = slug(name)
    assert re.fullmatch(r"[A-Za-z0-9_=][A-Za-z0-9_.=-]*-[0-9a-f]{8}", made)
    assert len(made) <= 70
    assert page_link(name) == f"mdps/{made}.html".replace("=", "%3D")


def test_different_names_have_different_files_on_every_file_system() -> None:
    assert len({slug(name).lower() for name in NAMES}) == len(NAMES)


def test_usual_names_can_be_read() -> None:
    assert slug("MiniGrid-Empty-5x5-v0").startswith("MiniGrid-Empty-5x5-v0-")
