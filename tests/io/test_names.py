"""Names that come from files never become paths."""

from __future__ import annotations

import pytest

from efhorizon import catalog
from efhorizon.io.names import UnsafeNameError, is_safe_name, safe_name


def test_every_name_in_the_catalogue_is_safe() -> None:
    assert all(safe_name(entry.name) == entry.name for entry in catalog.entries())
    assert safe_name("FrozenLake-v1-is_slippery=False-T100")
    assert safe_name("Höhle 7")


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", ".hidden", "-rf", "~", "a/b", "/etc/x", "..\\x", "a\0b", "a\nb", "\x1b[31m", " a", "a" * 201),
        *("\u202e", "\ud800", None, 3, ["a"]),
    ],
)
def test_what_is_no_plain_name_is_refused_in_one_line(name: object) -> None:
    assert not is_safe_name(name)
    with pytest.raises(UnsafeNameError, match="cannot be used as the name of a file") as error:
        safe_name(name)
    assert "\n" not in str(error.value)
    assert str(error.value).isprintable()
